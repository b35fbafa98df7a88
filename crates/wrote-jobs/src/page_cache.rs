//! The page cache of a source file: fills it, drops it, and examines what it holds.

use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use std::fs::File;
use std::io::{IoSliceMut, Read};
use std::path::Path;
use wrote_result::document::{Fallback, SourceCache};
use wrote_result::{Error, Stop};

/// The number of pages of a file that are examined.
const PROBES: u64 = 64;
/// The maximum share of a dropped file that may be in the cache, and the maximum share of a warm
/// file that may be missing from it.
const STRAY_SHARE_MAX: f64 = 0.1;

/// Brings the file's page cache into the requested state. Returns the state reached, and a fallback
/// with the reason if that is not the requested state.
///
/// Drops the file's pages with `posix_fadvise(2)` and `POSIX_FADV_DONTNEED`, which requires that
/// they are already on the device. This requires no privileges and does not affect other files.
pub fn prepare(
    path: &Path,
    wanted: SourceCache,
    stop: &Stop,
) -> Result<(SourceCache, Option<Fallback>), Error> {
    let mut file = File::open(path).map_err(Error::at(path, "open"))?;
    let mut refused = None;
    match wanted {
        SourceCache::Warm => {
            let mut buffer = vec![0; 1 << 20];
            while file.read(&mut buffer).map_err(Error::at(path, "read"))? > 0 {
                stop.check()?;
            }
        }
        SourceCache::Dropped => {
            refused = fadvise(&file, 0, None, Advice::DontNeed)
                .err()
                .map(|errno| format!("posix_fadvise: {}", std::io::Error::from(errno)));
        }
    }
    let len = file.metadata().map_err(Error::at(path, "stat"))?.len();
    let share = match refused {
        Some(because) => Err(because),
        None => held_share(&file, len)
            .map_err(|errno| format!("preadv2 with RWF_NOWAIT: {}", std::io::Error::from(errno))),
    };
    Ok(judged(wanted, share))
}

/// Returns the state reached, judging by the share of the file in the cache.
fn judged(wanted: SourceCache, share: Result<f64, String>) -> (SourceCache, Option<Fallback>) {
    let told = |got: &str, because| {
        Some(Fallback { wanted: format!("{wanted} source"), got: got.into(), because })
    };
    match (wanted, share) {
        // The file has just been read.
        (SourceCache::Warm, Err(_)) => (SourceCache::Warm, None),
        // If the state is unknown, the file's pages are not taken to have been dropped.
        (SourceCache::Dropped, Err(because)) => {
            (SourceCache::Warm, told("what the page cache held", because))
        }
        (SourceCache::Dropped, Ok(share)) if share > STRAY_SHARE_MAX => {
            let because = format!("{:.0} % of it stayed in the page cache", share * 100.0);
            (SourceCache::Warm, told("what the page cache held", because))
        }
        (SourceCache::Warm, Ok(share)) if share < 1.0 - STRAY_SHARE_MAX => {
            let because = format!("only {:.0} % of it stayed in the page cache", share * 100.0);
            (SourceCache::Warm, told("a part of it", because))
        }
        (_, Ok(_)) => (wanted, None),
    }
}

/// Returns the share of the examined pages that are in the page cache, where a read that must not
/// wait finds them (`RWF_NOWAIT`, preadv2(2), Linux 4.14).
fn held_share(file: &File, len: u64) -> Result<f64, Errno> {
    // A read of a missing page starts read-ahead, which this advice limits to one page.
    let _ = fadvise(file, 0, None, Advice::Random);
    let page = rustix::param::page_size() as u64;
    let pages = len.div_ceil(page);
    let probes = pages.min(PROBES);
    let mut held = 0_u64;
    for probe in 0..probes {
        let mut byte = [0];
        let offset = pages * probe / probes * page;
        match preadv2(file, &mut [IoSliceMut::new(&mut byte)], offset, ReadWriteFlags::NOWAIT) {
            Ok(read) => held += u64::from(read > 0),
            Err(Errno::AGAIN) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(if probes == 0 { 1.0 } else { held as f64 / probes as f64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cached_file_is_called_warm_whatever_was_wanted() {
        let (cache, fallback) = judged(SourceCache::Dropped, Ok(0.5));
        assert_eq!(cache, SourceCache::Warm);
        assert_eq!(fallback.unwrap().because, "50 % of it stayed in the page cache");
        assert_eq!(judged(SourceCache::Dropped, Ok(0.0)), (SourceCache::Dropped, None));
        assert_eq!(judged(SourceCache::Warm, Ok(1.0)), (SourceCache::Warm, None));
        assert!(judged(SourceCache::Warm, Ok(0.3)).1.is_some());
    }

    #[test]
    fn an_unknown_state_is_not_called_dropped() {
        let (cache, fallback) = judged(SourceCache::Dropped, Err("preadv2: no".into()));
        assert_eq!((cache, fallback.unwrap().because.as_str()), (SourceCache::Warm, "preadv2: no"));
        assert_eq!(judged(SourceCache::Warm, Err("preadv2: no".into())), (SourceCache::Warm, None));
    }

    #[test]
    fn a_file_that_was_read_is_in_the_cache() {
        let file = fixtures::file();
        std::fs::write(file.path(), vec![1; 300_000]).unwrap();
        let prepared = prepare(file.path(), SourceCache::Warm, &Stop::new()).unwrap();
        assert_eq!(prepared, (SourceCache::Warm, None));
    }
}
