//! The rules for a damaged log: what readers, the check, the repair and the next append do.
//!
//! `lab damage` and the fuzzer check them, each with its own logs and damage.

use crate::log_reader::{self, End, ReadLog};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use wrote::log::{summary, verify};
use wrote::{Error, Format, Log, LogReader, SyncPolicy};

/// More records than any damaged log has.
const RECORDS_MAX: usize = 100_000;
/// The rule that reading must end.
pub const ENDLESS: &str = "reading does not end";
/// The record appended after the damage.
const NEW: &[u8] = b"new";

/// The files of a log: names and bytes.
pub type Files = BTreeMap<String, Vec<u8>>;

/// The records that a reader found, and the error that ended it.
#[derive(Debug)]
pub struct Read {
    /// Sequences and bytes.
    pub records: Vec<(u64, Vec<u8>)>,
    /// The error; `None` at the log's end.
    pub error: Option<Error>,
}

/// Facts about a log that hold after any damage.
pub trait Truth {
    /// The format of the log.
    fn format(&self) -> Format;

    /// Fails if a record was altered, or belongs to a different log than the others.
    fn judge_records(&self, records: &[(u64, Vec<u8>)]) -> Result<(), String>;

    /// Fails if records of the whole log differ from the written ones, or if one is missing that
    /// must exist.
    fn judge(&self, read: &Read) -> Result<(), String> {
        self.judge_records(&read.records)
    }

    /// Whether all readers must agree: in the log that the fuzzer writes, only where the header of
    /// the first segment is intact.
    fn has_begin(&self) -> bool;

    /// The sequence before which all records were durable.
    fn durable_sequence(&self) -> u64 {
        0
    }
}

/// Reads the log in `folder`, whose files are `damaged`, in every way. Returns the records that a
/// reader of the whole log found.
pub fn reading(folder: &Path, truth: &impl Truth, damaged: &Files) -> Result<Read, String> {
    let whole = read(folder, 0)?;
    truth.judge(&whole)?;
    from_the_middle(folder, truth, &whole)?;
    if truth.has_begin() {
        as_the_second_reader(truth.format(), damaged, &whole)?;
        as_verified(folder, &whole, truth.format())?;
    }
    holds(unchanged(folder, damaged)?, || "reading or verifying changed a file".to_owned())?;
    Ok(whole)
}

/// If verification finds no damage, the log can be read to its end and summarized. Damage that
/// loses records ends a reader.
fn as_verified(folder: &Path, whole: &Read, format: Format) -> Result<(), String> {
    let Ok(verified) = verify(folder, None) else { return Ok(()) };
    let summed = summary(folder).map(|summed| summed.next_sequence);
    let is_damaged = !verified.damage.is_empty();
    let is_whole = !is_damaged && verified.garbage.is_empty();
    holds(whole.error.is_none() || !is_whole, || {
        format!("verified whole, and reading fails: {}", words(whole))
    })?;
    let next = verified.next_sequence;
    let is_summed = summed.as_ref().is_ok_and(|summed| *summed == next);
    holds(is_summed || !is_whole, || {
        format!("verified whole up to {next}, and its summary is {summed:?}")
    })?;
    if format == Format::Lines {
        return Ok(());
    }
    holds(whole.error.is_none() || is_damaged, || format!("{}, and {verified:?}", words(whole)))?;
    // Verifying also names damage outside the records, which a reader may not notice.
    let loses = verified.damage.iter().any(|damage| damage.records != Some(0));
    holds(whole.error.is_some() || !loses, || format!("read to its end, and {verified:?}"))
}

/// Repairs the log: every record that could be read stays, and the log is whole afterwards. A
/// failed repair changes nothing.
pub fn repair(
    folder: &Path,
    truth: &impl Truth,
    damaged: &Files,
    before: &Read,
) -> Result<(), String> {
    if wrote::log::repair(folder).is_err() {
        return holds(unchanged(folder, damaged)?, || "a repair failed, and changed files".into());
    }
    let after = read(folder, 0)?;
    holds(after.error.is_none(), || format!("repaired, and: {}", words(&after)))?;
    let kept = before.records.iter().all(|record| after.records.contains(record));
    holds(kept, || "a repair lost a record that could be read".to_owned())?;
    // The damaged records are missing.
    truth.judge_records(&after.records).map_err(|because| format!("repaired: {because}"))?;
    let verified = verify(folder, None).map_err(|error| format!("after repair: {error}"))?;
    let is_whole = verified.damage.is_empty() && verified.garbage.is_empty();
    holds(is_whole, || format!("repaired, and {verified:?}"))
}

/// Fails if a rule is broken.
pub fn holds(rule: bool, because: impl FnOnce() -> String) -> Result<(), String> {
    if rule { Ok(()) } else { Err(because()) }
}

fn words(read: &Read) -> String {
    let error = read.error.as_ref().map_or_else(|| "no error".to_owned(), Error::to_string);
    format!("{} records, {error}", read.records.len())
}

/// Replaces the folder's content by `files`.
pub fn put(folder: &Path, files: &Files) -> Result<(), String> {
    let trouble = |error: std::io::Error| error.to_string();
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(trouble)?;
    }
    fs::create_dir(folder).map_err(trouble)?;
    files.iter().try_for_each(|(name, bytes)| fs::write(folder.join(name), bytes)).map_err(trouble)
}

/// Reads the files of a log, except its lock and temporary files.
pub fn files(folder: &Path) -> std::io::Result<Files> {
    let mut files = Files::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != "lock" && !name.starts_with('.') {
            files.insert(name, fs::read(entry.path())?);
        }
    }
    Ok(files)
}

fn unchanged(folder: &Path, before: &Files) -> Result<bool, String> {
    files(folder).map(|now| now == *before).map_err(|error| error.to_string())
}

/// Reads records from the sequence `from` on; fails if they do not end, or are out of order.
pub fn read(folder: &Path, from: u64) -> Result<Read, String> {
    let mut read = Read { records: Vec::new(), error: None };
    let reader = match LogReader::open(folder, from) {
        Ok(reader) => reader,
        Err(error) => return Ok(Read { error: Some(error), ..read }),
    };
    for record in reader {
        match record {
            Ok(record) => read.records.push((record.sequence, record.bytes)),
            Err(error) => {
                read.error = Some(error);
                break;
            }
        }
        holds(read.records.len() < RECORDS_MAX, || ENDLESS.to_owned())?;
    }
    let rises = read.records.windows(2).all(|pair| pair[0].0 < pair[1].0);
    holds(rises, || "sequences do not rise".to_owned())?;
    Ok(read)
}

/// Checks that a reader started in the middle, or at one of the last records, finds correct
/// records. In a log that can be read to its end it finds all records from there on.
fn from_the_middle(folder: &Path, truth: &impl Truth, whole: &Read) -> Result<(), String> {
    let middle = whole.records.len() / 2;
    let from = whole.records.get(middle).map_or(0, |(sequence, _)| *sequence);
    let half = read(folder, from)?;
    truth
        .judge_records(&half.records)
        .map_err(|because| format!("read from the middle: {because}"))?;
    let is_same = half.error.is_none() && half.records == whole.records[middle..];
    holds(is_same || whole.error.is_some(), || {
        format!("read whole: {}; from record {from} on: {}", words(whole), words(&half))
    })
}

/// Checks that both readers find the same records. The first may refuse a log that the second
/// accepts, since the second knows no other log.
fn as_the_second_reader(format: Format, damaged: &Files, first: &Read) -> Result<(), String> {
    let files: Vec<_> = damaged.clone().into_iter().collect();
    // An identity can be computed from a batch; the second reader does not do that.
    if format == Format::Framed && !log_reader::has_header(&files) {
        return Ok(());
    }
    let second: ReadLog = match format {
        Format::Lines => log_reader::read_lines(&files),
        _ => log_reader::read(&files),
    };
    let is_prefix = second.records.starts_with(&first.records);
    let count = second.records.len();
    holds(is_prefix, || {
        format!("the second reader has {count} records, the first {}", words(first))
    })?;
    match &first.error {
        Some(Error::Damaged { .. }) | None => {
            holds(first.records.len() == count, || {
                format!("the second reader has {count} records, the first {}", words(first))
            })?;
            let is_damaged = matches!(second.end, End::Damaged { .. });
            let closed = log_reader::closed_end(&files).filter(|_| format == Format::Framed);
            let agrees = |closed| match second.end {
                End::Closed { sequence } => sequence == closed,
                _ => is_damaged,
            };
            holds(closed.is_none_or(agrees), || {
                format!("by its end the log was closed at {closed:?}; read: {:?}", second.end)
            })?;
            holds(first.error.is_some() == is_damaged, || {
                format!("the second reader: {:?}; the first: {}", second.end, words(first))
            })
        }
        Some(_) => Ok(()),
    }
}

/// Opens the log, appends a record, and closes it; returns the record's sequence.
pub fn append_one(folder: &Path, format: Format) -> Result<u64, Error> {
    let options = Log::options().format(format).sync(SyncPolicy::No).buffers(2).buffer_bytes(4096);
    let log = options.segment_bytes(12 << 10).open(folder)?;
    let sequence = log.append(NEW)?.sequence();
    log.close()?;
    Ok(sequence)
}

/// Checks that an append after damage fails and changes nothing, or keeps every readable record.
pub fn append(
    folder: &Path,
    truth: &impl Truth,
    damaged: &Files,
    before: &Read,
) -> Result<(), String> {
    let sequence = match append_one(folder, truth.format()) {
        Ok(sequence) => sequence,
        Err(error) => {
            let may_fail = before.error.is_some()
                || !truth.has_begin()
                || verify(folder, None).map_or(true, |found| !found.damage.is_empty());
            holds(may_fail, || {
                format!("it can be read and verified, and an append fails: {error}")
            })?;
            return holds(unchanged(folder, damaged)?, || {
                format!("an append failed and changed files: {error}")
            });
        }
    };
    let durable = truth.durable_sequence();
    holds(sequence >= durable, || format!("appended at {sequence}, durable up to {durable}"))?;
    let after = read(folder, 0)?;
    let kept = after.records.starts_with(&before.records);
    holds(kept, || format!("an append at {sequence} lost records: {}", words(&after)))?;
    // Earlier damage stays if headers and lengths do not show it.
    let is_there = after.error.is_none()
        && after.records.len() == before.records.len() + 1
        && after.records.last().is_some_and(|last| (last.0, &*last.1) == (sequence, NEW));
    holds(is_there || before.error.is_some(), || {
        format!("appended at {sequence}: {}", words(&after))
    })
}
