//! The content of a segment: its bytes up to the end of the last batch, and their checksum.

use crate::error::StoreError;
use bytes::{Bytes, BytesMut};
use std::fmt;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use wrote::log::Segment;
use xxhash_rust::xxh3::Xxh3;

/// Bytes that are read at once.
pub(crate) const PIECE_BYTES: usize = 1 << 20;

/// XXH3 of 128 bits over a segment's content, as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Checksum(u128);

impl Checksum {
    #[cfg(test)]
    pub(crate) fn of(bytes: &[u8]) -> Checksum {
        Checksum(xxhash_rust::xxh3::xxh3_128(bytes))
    }

    pub(crate) fn read(digits: &str) -> Option<Checksum> {
        let is_whole = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        u128::from_str_radix(digits, 16).ok().filter(|_| is_whole).map(Checksum)
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Computes a [`Checksum`] piece by piece.
#[derive(Default)]
pub(crate) struct Summing {
    state: Xxh3,
    pub bytes: u64,
}

impl Summing {
    pub(crate) fn add(&mut self, piece: &[u8]) {
        self.state.update(piece);
        self.bytes += piece.len() as u64;
    }

    pub(crate) fn checksum(&self) -> Checksum {
        Checksum(self.state.digest128())
    }
}

/// The content of a sealed segment, read from front to back.
pub(crate) struct Content {
    file: File,
    left: u64,
}

impl Content {
    /// Checks every record of the segment and opens its file. Blocks.
    pub(crate) fn checked(segment: &Segment) -> Result<Content, StoreError> {
        let opened = Content::open(segment)?;
        segment.check()?;
        // A repair may give the name to another file.
        let named = segment.open()?.metadata();
        let identity = |metadata: Metadata| (metadata.dev(), metadata.ino(), metadata.mtime_nsec());
        match (opened.file.metadata().map(identity), named.map(identity)) {
            (Ok(own), Ok(named)) if own == named => Ok(opened),
            _ => {
                let error = std::io::Error::other("the file was replaced while it was read");
                Err(StoreError::local(segment.path.display().to_string(), error))
            }
        }
    }

    /// Opens the segment's file. Blocks.
    pub(crate) fn open(segment: &Segment) -> Result<Content, StoreError> {
        Ok(Content { file: segment.open()?, left: segment.bytes })
    }

    /// Reads the next piece: [`PIECE_BYTES`], less for the last, empty at the end. Blocks.
    pub(crate) fn next(&mut self, path: &Path) -> Result<Bytes, StoreError> {
        let len = self.left.min(PIECE_BYTES as u64) as usize;
        let mut piece = BytesMut::zeroed(len);
        self.file.read_exact(&mut piece).map_err(|error| of_file(path, error))?;
        self.left -= len as u64;
        Ok(piece.freeze())
    }
}

fn of_file(path: &Path, error: std::io::Error) -> StoreError {
    StoreError::local(path.display().to_string(), error)
}

/// Returns the checksum of a segment's content. Blocks.
pub(crate) fn checksum_of(segment: &Segment) -> Result<Checksum, StoreError> {
    let (mut content, mut summing) = (Content::open(segment)?, Summing::default());
    loop {
        let piece = content.next(&segment.path)?;
        if piece.is_empty() {
            return Ok(summing.checksum());
        }
        summing.add(&piece);
    }
}
