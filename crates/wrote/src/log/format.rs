//! The two formats of a log, and what each takes as a record.

use super::record;
use std::fmt;

/// How records stand in the files of a log. `docs/log-format.md` specifies both to the byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Format {
    /// Any bytes, each record with a checksum over itself and its place. A crash in the middle of a
    /// write is found, and so is every damaged bit.
    #[default]
    Framed,
    /// A line a record: plain text that `tail -f` and `grep` read. A record has no line feed and no
    /// NUL in it. Nothing checks the bytes; after a crash the log goes on behind the last whole line.
    /// Lines are written through the page cache.
    Lines,
}

impl Format {
    /// What the names of its segments end with.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Format::Framed => "segment",
            Format::Lines => "log",
        }
    }

    /// Bytes that a record of `len` bytes takes.
    pub(crate) fn frame_bytes(self, len: usize) -> usize {
        match self {
            Format::Framed => record::frame_bytes(len),
            Format::Lines => len + 1,
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
