//! A file read from start to end, in pieces, lines or single bytes.

use crate::Result;
use crate::clock::Clock;
use crate::outcome::Outcome;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// The ways to read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// `wrote::Reader` with its defaults.
    Reader,
    /// `BufReader<File>` with its default of 8 KiB.
    BufReader,
    /// `BufReader<File>` with 128 KiB.
    #[value(name = "buf-reader-128k")]
    BufReader128,
    /// `BufReader<File>` with 1 MiB.
    BufReaderMib,
}

/// The parts of the file that the caller takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Takes {
    /// Whole buffers (`fill_buf`, `consume`).
    Buffers,
    /// Lines, in one vector (`read_until`).
    Lines,
    /// Single bytes (`bytes`).
    Bytes,
}

/// Reads the file at `path`.
pub fn read(by: By, takes: Takes, path: &Path) -> Result<Outcome> {
    let expected = path.metadata().map_err(|error| format!("{}: {error}", path.display()))?.len();
    let clock = Clock::start()?;
    let bytes = take_all(by, takes, path)?;
    let outcome = clock.stop(bytes, 0)?;
    if bytes == expected {
        return Ok(outcome);
    }
    Err(format!("{}: {bytes} bytes, not {expected}", path.display()).into())
}

fn take_all(by: By, takes: Takes, path: &Path) -> Result<u64> {
    let buffered =
        |bytes| Ok::<_, std::io::Error>(BufReader::with_capacity(bytes, File::open(path)?));
    match (by, takes) {
        (By::Reader, Takes::Bytes) => count(wrote::Reader::open(path)?.bytes()),
        (By::Reader, _) => take(wrote::Reader::open(path)?, takes),
        (By::BufReader, _) => take(BufReader::new(File::open(path)?), takes),
        (By::BufReader128, _) => take(buffered(128 << 10)?, takes),
        (By::BufReaderMib, _) => take(buffered(1 << 20)?, takes),
    }
}

fn take(mut reader: impl BufRead, takes: Takes) -> Result<u64> {
    let mut total = 0;
    match takes {
        Takes::Buffers => loop {
            let len = reader.fill_buf()?.len();
            if len == 0 {
                return Ok(total);
            }
            total += len as u64;
            reader.consume(len);
        },
        Takes::Lines => {
            let mut line = Vec::new();
            loop {
                line.clear();
                let len = reader.read_until(b'\n', &mut line)?;
                if len == 0 {
                    return Ok(total);
                }
                total += len as u64;
            }
        }
        Takes::Bytes => count(Read::bytes(reader)),
    }
}

/// Returns the number of bytes. Also adds them up, to keep the compiler from optimizing the reads
/// away.
fn count(bytes: impl Iterator<Item = std::io::Result<u8>>) -> Result<u64> {
    let (mut total, mut sum) = (0, 0_u64);
    for byte in bytes {
        total += 1;
        sum += u64::from(byte?);
    }
    std::hint::black_box(sum);
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn every_way_takes_the_whole_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("file");
        let bytes: Vec<u8> = (0..300_001_u32).map(|number| (number % 251) as u8).collect();
        std::fs::write(&path, &bytes).expect("room");
        for by in By::value_variants() {
            for takes in Takes::value_variants() {
                let outcome = read(*by, *takes, &path).expect("readable");
                assert_eq!(outcome.bytes, bytes.len() as u64, "{by:?}, {takes:?}");
            }
        }
    }
}
