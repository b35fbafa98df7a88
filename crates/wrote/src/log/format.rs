//! The two formats of a log.

use super::record;
use std::fmt;

/// The format of a log's files. `docs/log-format.md` specifies both to the byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Format {
    /// Any bytes, each record with a checksum over its bytes and its place. So a reader finds a
    /// torn write, and every damaged bit.
    #[default]
    Framed,
    /// One line per record: plain text for `tail -f` and `grep`. A record contains neither a line
    /// feed nor a NUL. Lines carry no checksum. After a crash the log continues behind the last
    /// whole line. Writes go through the page cache.
    Lines,
}

impl Format {
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Format::Framed => "segment",
            Format::Lines => "log",
        }
    }

    /// Returns the bytes that a record of `len` bytes takes.
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
