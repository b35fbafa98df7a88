//! Many small files that become durable together.

use crate::Result;
use crate::clock::Clock;
use crate::data::Ring;
use crate::outcome::Outcome;
use std::fs::File;
use std::path::Path;

const RING_BYTES: usize = 64 << 20;

/// The ways to write many files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// `wrote::write_many`.
    WriteMany,
    /// `std::fs::write` of each file, and one `syncfs(2)`.
    Syncfs,
}

/// Writes `files` files of `bytes` bytes into the new folder `place`. They are durable when the
/// clock stops.
pub fn many(by: By, files: u64, bytes: u64, place: &Path) -> Result<Outcome> {
    let ring = Ring::new(RING_BYTES);
    std::fs::create_dir(place)?;
    let clock = Clock::start()?;
    let mut all = (0..files)
        .map(|number| (place.join(number.to_string()), ring.piece(number, bytes as usize)));
    match by {
        By::WriteMany => wrote::write_many(all)?,
        By::Syncfs => {
            all.try_for_each(|(path, bytes)| std::fs::write(path, bytes))?;
            rustix::fs::syncfs(File::open(place)?)?;
        }
    }
    clock.stop(files * bytes, files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn each_way_writes_every_byte() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for &by in By::value_variants() {
            let place = folder.path().join(format!("{by:?}"));
            let outcome = many(by, 3, 200_000, &place).expect("room");
            assert_eq!((outcome.bytes, outcome.operations), (600_000, 3));
            let files = std::fs::read_dir(place).expect("a folder").map(|file| file.unwrap());
            let bytes: Vec<u64> = files.map(|file| file.metadata().unwrap().len()).collect();
            assert_eq!(bytes, [200_000; 3]);
        }
    }
}
