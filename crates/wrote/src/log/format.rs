//! The two formats of a log. Below the rooms of both, which all ask for it.

use super::record;
use std::fmt;

/// The format of a log's files. `docs/log-format.md` specifies both to the byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Format {
    /// Any bytes, each record with a checksum over its bytes and its place, so that a reader
    /// detects torn writes and every damaged bit.
    #[default]
    Framed,
    /// One line per record: plain text for `tail -f` and `grep`. A record contains neither line
    /// feed nor NUL. Lines have no checksum. After a crash the log continues after the last
    /// complete line. Writes go through the page cache.
    Lines,
}

impl Format {
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Format::Framed => "segment",
            Format::Lines => "log",
        }
    }

    /// Returns the space of a record of `len` bytes.
    pub(crate) fn frame_bytes(self, len: usize) -> usize {
        match self {
            Format::Framed => record::frame_bytes(len),
            Format::Lines => len.saturating_add(1),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Format::Framed => "framed",
            Format::Lines => "lines",
        })
    }
}

#[cfg(test)]
mod tests;
