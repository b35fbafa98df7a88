//! A small file replaced repeatedly, each time atomically and durably. It is a separate file, like
//! every kind of work.

use crate::Result;
use crate::clock::Clock;
use crate::data::Ring;
use crate::outcome::Outcome;
use crate::place::{Place, sync_folder};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

const SAVE_BYTES: usize = 1000;
const RING_BYTES: usize = 1 << 20;

/// The ways to save a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// `wrote::write`.
    Wrote,
    /// A temporary file, `sync_all`, `rename`, and a sync of the folder.
    Hand,
}

/// Replaces the file at `path` `saves` times. The file is created before the clock starts.
pub fn save(by: By, saves: u64, path: &Path) -> Result<Outcome> {
    let ring = Ring::new(RING_BYTES);
    let place = Place::take(path)?;
    let tried = |error| format!("{}: {error}", path.display());
    replace(path, &[0; SAVE_BYTES]).map_err(tried)?;
    let clock = Clock::start()?;
    for number in 0..saves {
        let content = ring.piece(number, SAVE_BYTES);
        match by {
            By::Wrote => wrote::write(path, content)?,
            By::Hand => replace(path, content).map_err(tried)?,
        }
    }
    let outcome = clock.stop(saves * SAVE_BYTES as u64, saves)?;
    place.check_length(SAVE_BYTES as u64)?;
    check_last(path, &ring, saves)?;
    Ok(outcome)
}

/// Replaces a file with the steps that a careful program performs.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("temporary");
    let mut file = File::create(&temporary)?;
    file.write_all(content)?;
    file.sync_all()?;
    drop(file);
    std::fs::rename(&temporary, path)?;
    sync_folder(path)
}

fn check_last(path: &Path, ring: &Ring, saves: u64) -> Result<()> {
    let Some(last) = saves.checked_sub(1) else { return Ok(()) };
    if std::fs::read(path)? == ring.piece(last, SAVE_BYTES) {
        return Ok(());
    }
    Err(format!("{}: not what was saved last", path.display()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_way_leaves_what_was_saved_last_and_nothing_when_it_is_over() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for by in By::value_variants() {
            let path = folder.path().join("file");
            assert_eq!(save(*by, 3, &path).expect("room").bytes, 3000, "{by:?}");
            let left = std::fs::read_dir(folder.path()).expect("there").count();
            assert_eq!(left, 0, "{by:?}");
        }
    }

    #[test]
    fn another_content_than_the_last_is_found_out() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("file");
        let ring = Ring::new(RING_BYTES);
        replace(&path, ring.piece(1, SAVE_BYTES)).expect("room");
        check_last(&path, &ring, 2).expect("the second");
        assert!(check_last(&path, &ring, 1).is_err());
    }
}
