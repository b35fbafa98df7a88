//! The trial run: the speed of the disk, from which sizes, times and the announcement follow.

use crate::burst;
use crate::measured;
use crate::request::{Common, STREAM_BS_BYTES};
use crate::scenario::Site;
use crate::scenarios::ladder::Sizes;
use std::fs::File;
use std::io::{self, Write as _};
use std::time::{Duration, Instant};
use wrote_jobs::findings::Burst;
use wrote_jobs::jobs::Permissions;
use wrote_jobs::spec::JobSpec;
use wrote_machine::{space, watch};
use wrote_result::Error;

/// The most time of each of the trial's parts, a last flush not counted.
pub(crate) const TIME: Duration = Duration::from_millis(250);
const BYTES_MAX: u64 = 256 << 20;
/// Writes in flight: enough to keep most devices busy.
const IODEPTH: u32 = 8;
/// The small writes whose median time counts, each with its flush.
const SAVES: usize = 5;
const SAVE_BYTES: usize = 4 << 10;

/// The speed of a disk, by a short trial run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// Of a direct stream, its flush counted.
    pub bytes_per_s: f64,
    /// The time of one small write with its flush.
    pub flush: Duration,
    /// The bytes that the disk takes faster than that, if it does.
    pub burst: Option<Burst>,
}

/// Returns the most bytes that a trial run writes.
pub(crate) fn bytes_max(common: &Common) -> u64 {
    let bs_bytes = common.stream_bs_bytes.unwrap_or(STREAM_BS_BYTES);
    let bytes = match common.wear {
        Some(crate::Wear::Low) => BYTES_MAX / 4,
        _ => BYTES_MAX,
    };
    common.size_bytes.map_or(bytes, |size| size.min(bytes)).max(bs_bytes)
}

impl Trial {
    /// Measures the disk, unless that was done before. Returns the bytes written, too. All ranks
    /// learn the speed of the slowest.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] where a write or a flush failed.
    pub(crate) fn of(site: &Site, common: &Common) -> Result<(Trial, u64), Error> {
        if let Some(trial) = site.speed.get() {
            return Ok((*trial, 0));
        }
        let flush = save(site)?;
        let (bytes_per_s, bytes, burst) = stream(site, common)?;
        let limits = || watch::limits(site.device());
        let burst = burst.or_else(|| burst::of_limit(&limits(), bytes_per_s));
        let bytes_per_s = burst.as_ref().map_or(bytes_per_s, |burst| burst.bytes_per_s);
        let trial = Trial {
            burst,
            bytes_per_s: site.least(bytes_per_s)?,
            flush: Duration::from_secs_f64(1.0 / site.least(1.0 / flush.as_secs_f64().max(1e-9))?),
        };
        Ok((*site.speed.get_or_init(|| trial), bytes))
    }
}

/// Returns the median time of a small write with its flush.
fn save(site: &Site) -> Result<Duration, Error> {
    let path = site.file("trial", 0);
    let failed = |error: io::Error| Error::Failed(format!("{}: {error}", path.display()));
    let mut file = File::create_new(&path).map_err(failed)?;
    let (began, mut times) = (Instant::now(), Vec::new());
    while times.len() < SAVES && (times.is_empty() || began.elapsed() < TIME) {
        let before = Instant::now();
        file.write_all(&[0xa5; SAVE_BYTES]).and_then(|()| file.sync_data()).map_err(failed)?;
        times.push(before.elapsed());
    }
    measured::clear(std::slice::from_ref(&path), site.scratch.path())?;
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

/// Returns the speed of a stream in bytes per second, the bytes written, and the burst in it. The
/// flush at its end shows the device's speed where the file system refuses direct I/O.
///
/// On a disk whose first write takes as long as a trial, that write is the trial: a whole queue
/// might take a minute.
fn stream(site: &Site, common: &Common) -> Result<(f64, u64, Option<Burst>), Error> {
    let bs_bytes = common.stream_bs_bytes.unwrap_or(STREAM_BS_BYTES);
    let bytes = bytes_max(common).min(space::room_bytes(site.target) / 2);
    let first = Sizes { bs_bytes, size_bytes: bs_bytes, iodepth: 1, numjobs: 1, rate: None };
    let (first_bytes, elapsed, _) = write_once(&first, site)?;
    if elapsed >= TIME {
        return Ok((first_bytes as f64 / elapsed.as_secs_f64(), first_bytes, None));
    }
    let size_bytes = (bytes / bs_bytes).max(1) * bs_bytes;
    let iodepth = common.iodepth.unwrap_or(IODEPTH);
    let sizes = Sizes { size_bytes, iodepth, ..first };
    let (bytes, elapsed, burst) = write_once(&sizes, site)?;
    Ok((bytes as f64 / elapsed.as_secs_f64().max(1e-9), first_bytes + bytes, burst))
}

/// Writes a file of `sizes` for the time of a trial. Returns its bytes, the time, and the burst.
fn write_once(sizes: &Sizes, site: &Site) -> Result<(u64, Duration, Option<Burst>), Error> {
    let files = site.files("trial", 1);
    let job = sizes.fill(sizes.bs_bytes, sizes.iodepth);
    let job = JobSpec { runtime: Some(TIME), ..job };
    let permissions = Permissions { fill: true, ..Permissions::default() };
    let group = site.run_jobs(&job.on_each(&files, None), permissions)?;
    measured::clear(&files, site.scratch.path())?;
    let burst = burst::find(&group.jobs[0].trail);
    Ok((group.written_bytes(), group.elapsed, burst))
}
