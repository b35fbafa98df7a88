//! Recovery: finds the end of a log opened for writing, and cuts off the torn end left by a crash.

mod framed;
mod lines;
#[cfg(test)]
mod tests;

use super::format::Format;
use super::input::{Input, LogFiles};
use super::retention::RetainedSegment;
use super::{aside, cut, names, segment};
use crate::engine::folder_of;
use crate::{Engine, Error};
use std::path::{Path, PathBuf};

/// The findings on opening a log.
#[derive(Clone, Debug, Default)]
pub(super) struct Recovered {
    /// The number of sequences in the log, including empty places.
    pub records: u64,
    /// Whether the log had been closed.
    pub closed: bool,
    /// Bytes after the last whole record, of a write interrupted by a crash.
    pub torn_bytes: u64,
    /// The files that keep these bytes.
    pub kept_aside: Vec<PathBuf>,
}

/// A recovered log: its end is intact, and all records in it are durable.
#[derive(Debug)]
pub(super) struct Recovery {
    pub recovered: Recovered,
    /// Random in a new log; 0 in the format of lines.
    pub log_id: u64,
    /// Segments before the last, in order.
    pub sealed: Vec<RetainedSegment>,
    /// The last segment, in which the log continues; `None` in a new log.
    pub active: Option<ActiveSegment>,
    /// The sequence of the first remaining record.
    pub first_sequence: u64,
    /// The sequence that the next record gets.
    pub next_sequence: u64,
}

#[derive(Clone, Debug)]
pub(super) struct ActiveSegment {
    pub path: PathBuf,
    /// The number in its name: the segment's own, or the sequence of its first line.
    pub number: u64,
    /// The file's length: recovery has cut the file after the last record.
    pub bytes: u64,
    pub block_bytes: u32,
    /// Time of its beginning, in nanoseconds since 1970.
    pub created_at_ns: u64,
    /// The checksum in the header of its last batch.
    pub last_checksum: u32,
    /// Recovery has cut something off. The next batch states it.
    pub after_cut: bool,
    /// The most bytes of a batch in it; 0 for any number.
    pub longest_bytes: u32,
}

/// A file after the end of the log, and where its content ends.
type LaterFile = (PathBuf, u64);

/// Recovers the log of this format in `folder`. Cuts off a torn end and keeps it aside. Flushes the
/// rest before relying on it.
///
/// After a power loss at any moment, the next recovery finds the same records.
///
/// Fails with [`Error::Damaged`] if durable records cannot be read.
pub(super) fn recover(files: &LogFiles, folder: &Path, format: Format) -> Result<Recovery, Error> {
    let paths = files.engine().list(folder)?;
    let other = match format {
        Format::Framed => Format::Lines,
        Format::Lines => Format::Framed,
    };
    if paths.iter().any(|path| segment::number(path, other).is_some()) {
        let because = format!("this log is in the format {other}, not {format}");
        return Err(Error::Refused { path: folder.to_owned(), because });
    }
    // The lock is held, so no process is about to put them in place.
    for path in paths.iter().filter(|path| cut::is_left_over(path)) {
        files.engine().remove(path)?;
    }
    let names = names::of_format(paths, format);
    match format {
        Format::Framed => framed::recover(files, folder, &names),
        Format::Lines => lines::recover(files, &names),
    }
}

/// Ends the log at byte `end` of a file. Keeps aside the bytes from there to `torn_end`, and the
/// later files.
fn cut_off(
    input: &mut Input,
    end: u64,
    torn_end: u64,
    later: &[LaterFile],
    recovered: &mut Recovered,
) -> Result<(), Error> {
    recovered.torn_bytes = torn_end - end;
    if torn_end > end {
        recovered.kept_aside.push(aside::copy(input, end, torn_end, "torn")?);
        // The copy must be durable before its source is removed.
        input.files.engine().sync_folder(folder_of(&input.path))?;
    }
    let mut engine = input.files.engine();
    put_aside(&mut engine, later, recovered)?;
    if input.len_bytes != end {
        engine.truncate(input.file, end)?;
        engine.flush(input.file)?;
    }
    engine.sync_folder(folder_of(&input.path))
}

/// Removes files from the log: renames those with content, deletes empty ones. Starts with the
/// newest, so that there is never a gap.
fn put_aside(engine: &mut Engine, later: &[LaterFile], found: &mut Recovered) -> Result<(), Error> {
    for (path, end) in later.iter().rev() {
        found.torn_bytes += end;
        if *end == 0 {
            engine.remove(path)?;
        } else {
            found.kept_aside.push(aside::rename(engine, path)?);
        }
    }
    Ok(())
}

impl Recovery {
    fn nothing(log_id: u64, recovered: Recovered) -> Recovery {
        let sealed = Vec::new();
        Recovery { recovered, log_id, sealed, active: None, first_sequence: 0, next_sequence: 0 }
    }
}
