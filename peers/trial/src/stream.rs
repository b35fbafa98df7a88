//! A long file written in pieces of 64 KiB, and durable when the clock stops.

use crate::Result;
use crate::data::Ring;
use crate::outcome::Outcome;
use crate::place::{sync_folder, timed};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// The length of one call of `write_all`, in bytes.
const PIECE_BYTES: usize = 64 << 10;
const RING_BYTES: usize = 64 << 20;
const MIB: usize = 1 << 20;

/// The ways to write a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// `wrote::Writer` with defaults, and `finish`.
    Writer,
    /// `BufWriter<File>` with defaults, `sync_all`, and a sync of the folder.
    BufWriter,
    /// `BufWriter<File>` with a buffer of 1 MiB, `sync_all`, and a sync of the folder.
    BufWriterMib,
    /// `File`, `sync_all`, and a sync of the folder.
    File,
}

/// Writes `bytes` bytes to a file at `path`, and then removes the file.
pub fn stream(by: By, bytes: u64, path: &Path) -> Result<Outcome> {
    let ring = Ring::new(RING_BYTES);
    timed(path, bytes, 0, || write(by, &ring, bytes, path))
}

fn write(by: By, ring: &Ring, bytes: u64, path: &Path) -> Result<()> {
    match by {
        By::Writer => {
            let mut writer = wrote::Writer::create(path)?;
            pieces(&mut writer, ring, bytes)?;
            if !writer.finish()?.durable {
                return Err("it is not durable".into());
            }
            Ok(())
        }
        By::BufWriter => buffered(BufWriter::new(File::create(path)?), ring, bytes, path),
        By::BufWriterMib => {
            buffered(BufWriter::with_capacity(MIB, File::create(path)?), ring, bytes, path)
        }
        By::File => {
            let mut file = File::create(path)?;
            pieces(&mut file, ring, bytes)?;
            Ok(durable(file, path)?)
        }
    }
}

fn buffered(mut writer: BufWriter<File>, ring: &Ring, bytes: u64, path: &Path) -> Result<()> {
    pieces(&mut writer, ring, bytes)?;
    Ok(durable(writer.into_inner()?, path)?)
}

fn pieces(to: &mut impl Write, ring: &Ring, bytes: u64) -> io::Result<()> {
    let whole = bytes / PIECE_BYTES as u64;
    for number in 0..whole {
        to.write_all(ring.piece(number, PIECE_BYTES))?;
    }
    let rest_bytes = (bytes % PIECE_BYTES as u64) as usize;
    to.write_all(&ring.piece(whole, PIECE_BYTES)[..rest_bytes])
}

fn durable(file: File, path: &Path) -> io::Result<()> {
    file.sync_all()?;
    sync_folder(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_way_writes_the_same_bytes_in_order() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let ring = Ring::new(RING_BYTES);
        let expected: Vec<u8> =
            (0..3).flat_map(|number| ring.piece(number, PIECE_BYTES)).copied().collect();
        let length = 2 * PIECE_BYTES + 77;
        for by in By::value_variants() {
            let path = folder.path().join("file");
            write(*by, &ring, length as u64, &path).expect("room");
            assert!(std::fs::read(&path).expect("there") == expected[..length], "{by:?}");
            std::fs::remove_file(&path).expect("there");
        }
    }

    #[test]
    fn nothing_is_left_and_the_outcome_counts_the_bytes() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("file");
        let outcome = stream(By::File, 100_000, &path).expect("room");
        assert_eq!(outcome.bytes, 100_000);
        assert!(outcome.elapsed_s > 0.0 && !path.exists());
    }
}
