//! A file written one byte at a time, through the page cache and without a sync. It is a separate
//! file, like every kind of work.

use crate::Result;
use crate::outcome::Outcome;
use crate::place::timed;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// The size of `BufWriter`'s buffer, in bytes. A larger buffer was not faster.
const BUFFER_BYTES: usize = 64 << 10;

/// The ways to write single bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// `wrote::Writer` through the page cache, and `close`.
    Writer,
    /// `BufWriter<File>` with 64 KiB, and `flush`.
    BufWriter,
}

/// Writes `bytes` bytes to a file at `path`, and removes it.
pub fn bytes(by: By, bytes: u64, path: &Path) -> Result<Outcome> {
    timed(path, bytes, 0, || write(by, bytes, path))
}

fn write(by: By, bytes: u64, path: &Path) -> Result<()> {
    match by {
        By::Writer => {
            let mut writer = wrote::Writer::options().direct(false).open(path)?;
            one_by_one(&mut writer, bytes)?;
            writer.close()?;
        }
        By::BufWriter => {
            let mut writer = BufWriter::with_capacity(BUFFER_BYTES, File::create(path)?);
            one_by_one(&mut writer, bytes)?;
            writer.flush()?;
        }
    }
    Ok(())
}

fn one_by_one(to: &mut impl Write, bytes: u64) -> io::Result<()> {
    for number in 0..bytes {
        to.write_all(&[number as u8])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_way_writes_the_values_in_turn() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let expected: Vec<u8> = (0..200_001).map(|number: u32| number as u8).collect();
        for by in By::value_variants() {
            let path = folder.path().join("file");
            write(*by, 200_001, &path).expect("room");
            assert!(std::fs::read(&path).expect("there") == expected, "{by:?}");
            std::fs::remove_file(&path).expect("there");
        }
    }

    #[test]
    fn nothing_is_left_and_the_outcome_counts_the_bytes() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("file");
        assert_eq!(bytes(By::BufWriter, 1000, &path).expect("room").bytes, 1000);
        assert!(!path.exists());
    }
}
