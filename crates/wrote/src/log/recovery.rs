//! What opening a log for writing finds, and what it does about the end that a crash left.

pub(super) mod aside;
mod framed;
pub(super) mod lines;
#[cfg(test)]
mod tests;

use super::{Format, segment};
use crate::{Engine, Error, FileId};
use rustix::fs::{Advice, fadvise};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};

/// What an opening found and cut off.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Recovered {
    /// Records that were there, with the places that were passed over.
    pub records: u64,
    /// Whether the log had been closed.
    pub closed: bool,
    /// Bytes behind the last whole record, of a write that a crash broke off.
    pub torn_bytes: u64,
    /// The files in which these bytes are kept.
    pub kept_aside: Vec<PathBuf>,
}

/// A log as it was found, with its end made whole and everything in it durable.
#[derive(Debug)]
pub(super) struct Found {
    pub recovered: Recovered,
    /// By chance where the log is new; 0 in the format of lines.
    pub log_id: u64,
    /// Segments before the last, in order.
    pub sealed: Vec<Sealed>,
    /// The last segment, in which the log goes on; `None` of a new log.
    pub active: Option<Active>,
    /// The sequence of the first record that is there.
    pub first_sequence: u64,
    /// The sequence that the next record gets.
    pub next_sequence: u64,
}

/// A segment that nothing is appended to any more.
#[derive(Clone, Debug)]
pub(super) struct Sealed {
    pub path: PathBuf,
    /// Bytes that it takes on the disk.
    pub bytes: u64,
    /// The sequence behind its last record.
    pub end_sequence: u64,
    /// When it was last written, in nanoseconds since 1970.
    pub written_at_ns: u64,
}

/// The segment in which a log goes on.
#[derive(Clone, Debug)]
pub(super) struct Active {
    pub path: PathBuf,
    /// Its number, as its name says: the segment's own, or the sequence of its first line.
    pub number: u64,
    /// The file's length, which recovery has made that of what is in it.
    pub bytes: u64,
    pub block_bytes: u32,
    /// When it was begun, in nanoseconds since 1970.
    pub created_at_ns: u64,
    /// The checksum in the header of its last batch.
    pub last_checksum: u32,
    /// Whether something was cut off: the next batch says so.
    pub after_cut: bool,
}

/// Reads what there is of a log of this format in `folder`. A torn end is cut and kept aside; damage before
/// records that were durable is an error. What is left is flushed before it is trusted.
///
/// A power loss at any moment of it leaves a log of which the next recovery finds the same records.
pub(super) fn recover(engine: &mut Engine, folder: &Path, format: Format) -> Result<Found, Error> {
    let names = engine.list(folder)?;
    let of = |format| -> Vec<(u64, PathBuf)> {
        let numbered = |path: &PathBuf| Some((segment::number(path, format)?, path.clone()));
        names.iter().filter_map(numbered).collect()
    };
    let other = match format {
        Format::Framed => Format::Lines,
        Format::Lines => Format::Framed,
    };
    if !of(other).is_empty() {
        let because = format!("this log is in the format {other}, not {format}");
        return Err(Error::Refused { path: folder.to_owned(), because });
    }
    match format {
        Format::Framed => framed::recover(engine, folder, &of(format)),
        Format::Lines => lines::recover(engine, folder, &of(format)),
    }
}

/// Has a file that was just flushed read from the disk from now on, where the page cache stands before it.
///
/// After a flush that failed the kernel calls pages clean that the disk never got, and a later flush of
/// them succeeds (`fsync(2)`): what is read from the cache then proves nothing. Only clean pages are let
/// go (`posix_fadvise(2)`, `POSIX_FADV_DONTNEED`), and only as far as the kernel likes to.
pub(super) fn forget_cached(engine: &Engine, file: FileId) {
    if let Some(descriptor) = engine.descriptor(file).filter(|_| !engine.is_direct(file)) {
        // Advice: what it does not do can't be helped.
        let _ = fadvise(descriptor, 0, None, Advice::DontNeed);
    }
}

/// A number that no other log has: the standard library's own source of chance, which needs no more.
pub(super) fn new_log_id() -> u64 {
    RandomState::new().build_hasher().finish()
}

impl Found {
    /// A log in which nothing was ever written.
    fn nothing(log_id: u64, recovered: Recovered) -> Found {
        let sealed = Vec::new();
        Found { recovered, log_id, sealed, active: None, first_sequence: 0, next_sequence: 0 }
    }
}

/// Records before the end of which some were durable can't be read.
pub(super) fn damaged(folder: &Path, path: &Path, offset: u64, what: &str) -> Error {
    let folder = folder.display();
    let because =
        format!("{what}; run `wrote log verify {folder}`, then `wrote log repair {folder}`");
    Error::Damaged { path: path.to_owned(), offset, because }
}
