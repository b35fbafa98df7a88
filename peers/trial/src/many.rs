//! Many files at once by one thread: `Writer`s on one disk, or with a ring each; small files whole.

use crate::Result;
use crate::clock::Clock;
use crate::data::Ring;
use crate::outcome::Outcome;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use wrote::engine::Options;
use wrote::{Disk, Ioengine, Writer};

/// Bytes of one call of `write_all`.
const PIECE_BYTES: usize = 64 << 10;
const RING_BYTES: usize = 64 << 20;
/// Requests in flight of all `Writer`s on the disk, and the bytes of the disk's buffers, which no
/// `Writer` uses.
const IODEPTH: u32 = 64;
const BUFFER_BYTES: usize = 4096;

/// The ways to write many files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// `Writer::options().on(&disk)`.
    Shared,
    /// `Writer::create`.
    Own,
    /// `wrote::write_many`, each file whole.
    WriteMany,
    /// `std::fs::write` of each file, and one `syncfs(2)`.
    Syncfs,
}

/// Writes `files` files of `bytes` bytes into the new folder `place`, a piece of each in turn,
/// durable when the clock stops.
pub fn many(by: By, files: u64, bytes: u64, place: &Path) -> Result<Outcome> {
    let ring = Ring::new(RING_BYTES);
    std::fs::create_dir(place)?;
    let clock = Clock::start()?;
    write(by, &ring, files, bytes, place)?;
    clock.stop(files * bytes, files)
}

fn write(by: By, ring: &Ring, files: u64, bytes: u64, place: &Path) -> Result<()> {
    let mut whole = (0..files)
        .map(|number| (place.join(number.to_string()), ring.piece(number, bytes as usize)));
    let disk = match by {
        By::WriteMany => return Ok(wrote::write_many(whole)?),
        By::Syncfs => {
            whole.try_for_each(|(path, bytes)| std::fs::write(path, bytes))?;
            return Ok(rustix::fs::syncfs(File::open(place)?)?);
        }
        By::Shared => Some(Disk::open(&Options::new(Ioengine::IoUring, IODEPTH, BUFFER_BYTES))?),
        By::Own => None,
    };
    let open = |number: u64| {
        let options = match &disk {
            Some(disk) => Writer::options().on(disk),
            None => Writer::options(),
        };
        options.open(place.join(number.to_string()))
    };
    let mut writers = (0..files).map(open).collect::<Result<Vec<Writer>, _>>()?;
    let mut start = 0;
    while start < bytes {
        let len = (bytes - start).min(PIECE_BYTES as u64) as usize;
        for (number, writer) in (0..).zip(&mut writers) {
            let piece = start / PIECE_BYTES as u64 * files + number;
            writer.write_all(ring.piece(piece, len))?;
        }
        start += len as u64;
    }
    for writer in writers {
        if !writer.finish()?.durable {
            return Err("it is not durable".into());
        }
    }
    Ok(())
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
