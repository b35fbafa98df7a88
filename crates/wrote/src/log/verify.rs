//! A log as it lies on the disk: what there is, whether it is whole, and what can be saved of it.

mod framed;
mod lines;
mod progress;
mod rebuild;
mod salvage;
#[cfg(test)]
mod tests;

use super::lock::Lock;
use super::{Format, names};
use crate::{Engine, Error, Ioengine, Options};
use std::path::{Path, PathBuf};

/// Bytes of one read, when a file is read from front to back; [`READS`] of them are under way.
const BUFFER_BYTES: usize = 512 << 10;
const READS: u32 = 4;

/// What is known of a log without reading its records.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LogSummary {
    /// How its records stand in its files.
    pub format: Format,
    /// Its segments in order.
    pub segments: Vec<SegmentSummary>,
    /// The sequence of the first record that is there.
    pub first_sequence: u64,
    /// The sequence that the next record gets.
    pub next_sequence: u64,
    /// Whether the log was closed after its last record: then its end is known to be its end.
    pub closed: bool,
    /// The process that has it open for writing.
    pub writer: Option<u32>,
}

/// What is known of a segment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SegmentSummary {
    /// The file.
    pub path: PathBuf,
    /// Its length in bytes, with what is only prepared.
    pub file_bytes: u64,
    /// Bytes up to the end of the last record.
    pub used_bytes: u64,
    /// The sequence of its first record.
    pub first_sequence: u64,
    /// How many records it has. [`summary`] counts places, [`verify`] what is in them.
    pub records: u64,
}

/// A place at which a log can't be read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Damage {
    /// The segment.
    pub path: PathBuf,
    /// The first byte that is not as it should be.
    pub offset_bytes: u64,
    /// The sequence of the first record that is lost there.
    pub sequence: u64,
    /// How many records are lost, where that is known.
    pub records: Option<u64>,
    /// In words.
    pub because: String,
}

/// What came of reading every byte of a log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Verified {
    /// What there is.
    pub summary: LogSummary,
    /// Records that were read and are whole.
    pub records: u64,
    /// Bytes of these records.
    pub record_bytes: u64,
    /// Bytes behind the last whole record that are no zeros: a write that a crash broke off. The next
    /// opening for writing keeps them aside.
    pub torn_bytes: u64,
    /// What is damaged; empty where the log is whole.
    pub damage: Vec<Damage>,
}

/// What a repair did.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Repaired {
    /// What was damaged.
    pub damage: Vec<Damage>,
    /// The files as they were before, beside the log.
    pub kept_aside: Vec<PathBuf>,
    /// Records that are there now.
    pub records: u64,
}

/// Looks at the log in `folder`, without reading more of its records than it takes to find its end.
///
/// What it counts as records are places in the order: those that were passed over, because whoever had
/// claimed them panicked or because they were lost to damage that was repaired, are among them. Only
/// [`verify`] reads which ones are records.
///
/// # Errors
///
/// When there is no log in the folder, or it can't be read; [`Error::Damaged`] where its end can't be
/// told, since what stands behind it proves that more records were durable.
pub fn summary(folder: impl AsRef<Path>) -> Result<LogSummary, Error> {
    let folder = folder.as_ref();
    let mut engine = Engine::open(&options())?;
    match format_of(&mut engine, folder)? {
        Some(Format::Lines) => lines::summary(&mut engine, folder),
        _ => framed::summary(&mut engine, folder),
    }
}

/// Reads every byte of the log in `folder` and says what is damaged. `watch` is told how many bytes
/// were read and how many there are; where it answers `false` the reading ends with
/// [`Error::Interrupted`].
///
/// The log may be written meanwhile. Nothing is called damaged before it was read a second time, after
/// what proves that it was durable, and where it is open for writing all is read again before that is said:
/// what is damaged is so the next time too. What is on its way may look like a torn end, and segments that
/// retention removes before they are read are left out.
///
/// # Errors
///
/// When there is no log in the folder, or it can't be read; damage is no error.
pub fn verify(
    folder: impl AsRef<Path>,
    mut watch: impl FnMut(u64, u64) -> bool,
) -> Result<Verified, Error> {
    let folder = folder.as_ref();
    let first = read_all(folder, &mut watch)?;
    if first.damage.is_empty() || first.summary.writer.is_none() {
        return Ok(first);
    }
    let mut second = read_all(folder, &mut watch)?;
    let place = |damage: &Damage| (damage.path.clone(), damage.offset_bytes, damage.sequence);
    second.damage.retain(|damage| first.damage.iter().any(|known| place(known) == place(damage)));
    Ok(second)
}

/// Reads every byte, once.
fn read_all(folder: &Path, watch: &mut dyn FnMut(u64, u64) -> bool) -> Result<Verified, Error> {
    let mut engine = Engine::open(&options())?;
    match format_of(&mut engine, folder)? {
        Some(Format::Lines) => lines::verify(&mut engine, folder, watch),
        _ => framed::verify(&mut engine, folder, watch),
    }
}

/// Makes a damaged log one that can be read and written again. Every record that is whole stays, with
/// its sequence, if it can be found: within a batch, up to 64 KiB behind a record whose length is damaged.
/// What is lost of a framed log leaves a gap; of a log of lines it leaves empty lines, since there the count is
/// all that tells a line's place. The damaged segments are kept aside as they were, in files named
/// `.damaged-N`. A torn end is left to the next opening.
///
/// # Errors
///
/// When there is no log in the folder, when it is open for writing, or with the kernel's words. A power
/// loss at any moment leaves a log that can be repaired.
pub fn repair(folder: impl AsRef<Path>) -> Result<Repaired, Error> {
    let folder = folder.as_ref();
    let mut engine = Engine::open(&options())?;
    let format = format_of(&mut engine, folder)?;
    let _lock = Lock::take(folder)?;
    match format {
        Some(Format::Lines) => lines::repair(&mut engine, folder),
        _ => rebuild::repair(&mut engine, folder),
    }
}

/// The format of the log in the folder; `None` where nothing was written to it yet.
fn format_of(engine: &mut Engine, folder: &Path) -> Result<Option<Format>, Error> {
    if names::is_empty(engine, folder)? {
        let because = "there is no log here".to_owned();
        return Err(Error::Refused { path: folder.to_owned(), because });
    }
    names::format(engine, folder)
}

fn options() -> Options {
    // One buffer beside those that are under way.
    Options {
        buffers: READS + 1,
        registered_buffers: false,
        ..Options::new(Ioengine::IoUring, READS, BUFFER_BYTES)
    }
}
