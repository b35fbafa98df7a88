//! The rules for a damaged log: what every reader, the check, the repair and the next append do.

use crate::log_reader::{self, End, ReadLog};
use crate::verbs::damage::Files;
use crate::verbs::damage::written::{Written, files, id_of, record};
use std::fs;
use std::path::Path;
use wrote::log::{repair, summary, verify};
use wrote::{Error, Format, Log, LogReader, SyncPolicy};

/// More records than any damaged log has.
const RECORDS_MAX: usize = 100_000;

/// The records that a reader found, and the error that ended it.
struct Read {
    records: Vec<(u64, Vec<u8>)>,
    error: Option<Error>,
}

/// Puts `damaged` into the folder, and returns the first rule that does not hold.
pub fn check(folder: &Path, log: &Written, damaged: &Files) -> Result<(), String> {
    put(folder, damaged)?;
    let before = read(folder)?;
    is_true(log, &before.records, "read")?;
    as_the_second_reader(log, damaged, &before)?;
    from_the_middle(folder, log, &before)?;
    let verified = verify(folder, None);
    let summed = summary(folder).map(|summed| summed.next_sequence);
    if let Ok(verified) = &verified {
        let is_whole = verified.damage.is_empty() && verified.garbage.is_empty();
        let reads = before.error.is_none();
        holds(reads || !is_whole, || {
            format!("verified whole, and reading fails: {}", words(&before))
        })?;
        let next = verified.summary.next_sequence;
        let is_summed = summed.as_ref().is_ok_and(|summed| *summed == next);
        holds(is_summed || !is_whole, || {
            format!("verified whole up to {next}, and its summary is {summed:?}")
        })?;
    }
    holds(unchanged(folder, damaged)?, || "reading or verifying changed a file".to_owned())?;
    append(folder, log, damaged, &before)?;

    put(folder, damaged)?;
    let Ok(repaired) = repair(folder) else {
        return holds(unchanged(folder, damaged)?, || "a repair failed, and changed files".into());
    };
    let after = read(folder)?;
    holds(after.error.is_none(), || format!("repaired, and: {}", words(&after)))?;
    let kept = before.records.iter().all(|record| after.records.contains(record));
    holds(kept, || "a repair lost a record that could be read".to_owned())?;
    is_true(log, &after.records, "repaired")?;
    let verified = verify(folder, None).map_err(|error| format!("after repair: {error}"))?;
    holds(verified.damage.is_empty(), || format!("repaired, and damaged: {:?}", verified.damage))?;
    let appended = append_one(folder, log.format);
    holds(appended.is_ok(), || {
        format!("repaired {repaired:?}, and an append fails: {appended:?}")
    })?;
    let last = read(folder)?;
    let is_there = last.records.last().is_some_and(|(_, bytes)| bytes == b"new");
    holds(is_there && last.error.is_none(), || format!("after repair and append: {}", words(&last)))
}

fn holds(rule: bool, because: impl FnOnce() -> String) -> Result<(), String> {
    if rule { Ok(()) } else { Err(because()) }
}

fn words(read: &Read) -> String {
    let error = read.error.as_ref().map_or_else(|| "no error".to_owned(), Error::to_string);
    format!("{} records, {error}", read.records.len())
}

fn put(folder: &Path, files: &Files) -> Result<(), String> {
    let trouble = |error: std::io::Error| error.to_string();
    fs::remove_dir_all(folder).map_err(trouble)?;
    fs::create_dir(folder).map_err(trouble)?;
    files.iter().try_for_each(|(name, bytes)| fs::write(folder.join(name), bytes)).map_err(trouble)
}

fn unchanged(folder: &Path, before: &Files) -> Result<bool, String> {
    files(folder).map(|now| now == *before).map_err(|error| error.to_string())
}

fn read(folder: &Path) -> Result<Read, String> {
    read_from(folder, 0)
}

fn read_from(folder: &Path, from: u64) -> Result<Read, String> {
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
        holds(read.records.len() < RECORDS_MAX, || "reading does not end".to_owned())?;
    }
    Ok(read)
}

/// Every record of a framed log is as it was written, and all are of one log. (Where every file is
/// another log's, that log is read.) A line has no checksum: nothing tells one that was altered.
fn is_true(log: &Written, records: &[(u64, Vec<u8>)], when: &str) -> Result<(), String> {
    let rises = records.windows(2).all(|pair| pair[0].0 < pair[1].0);
    holds(rises, || format!("{when}: sequences do not rise"))?;
    if log.format == Format::Lines {
        return Ok(());
    }
    let id = records.first().map_or(0, |(_, bytes)| id_of(bytes));
    let is_true = |(sequence, bytes): &&(u64, Vec<u8>)| *bytes == record(id, *sequence);
    match records.iter().find(|record| !is_true(record)) {
        Some((sequence, _)) => Err(format!("{when}: record {sequence} was altered")),
        None => Ok(()),
    }
}

/// A reader that begins in the middle, as one of the last records does, finds true records. Of a
/// log that is read to its end it finds those from there on.
fn from_the_middle(folder: &Path, log: &Written, whole: &Read) -> Result<(), String> {
    let middle = whole.records.len() / 2;
    let from = whole.records.get(middle).map_or(0, |(sequence, _)| *sequence);
    let half = read_from(folder, from)?;
    is_true(log, &half.records, "read from the middle")?;
    let is_same = half.error.is_none() && half.records == whole.records[middle..];
    holds(is_same || whole.error.is_some(), || {
        format!("read whole: {}; from record {from} on: {}", words(whole), words(&half))
    })
}

/// Both readers find the same records. The first may refuse what the second, which knows no other
/// log, does not.
fn as_the_second_reader(log: &Written, damaged: &Files, first: &Read) -> Result<(), String> {
    let files: Vec<_> = damaged.clone().into_iter().collect();
    // An identity can be computed back from a batch; the second reader does not.
    if log.format == Format::Framed && !log_reader::has_header(&files) {
        return Ok(());
    }
    let second: ReadLog = match log.format {
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
            let closed = log_reader::closed_end(&files).filter(|_| log.format == Format::Framed);
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

fn append_one(folder: &Path, format: Format) -> Result<u64, Error> {
    let options = Log::options().format(format).sync(SyncPolicy::No).buffers(2).buffer_bytes(4096);
    let log = options.segment_bytes(12 << 10).open(folder)?;
    let sequence = log.append(b"new")?.sequence();
    log.close()?;
    Ok(sequence)
}

/// An append behind damage fails and changes nothing, or keeps every record that could be read and
/// every byte that it cut off.
fn append(folder: &Path, log: &Written, damaged: &Files, before: &Read) -> Result<(), String> {
    match append_one(folder, log.format) {
        Err(error) => {
            let may_fail = before.error.is_some()
                || verify(folder, None).map_or(true, |found| !found.damage.is_empty());
            holds(may_fail, || {
                format!("it can be read and verified, and an append fails: {error}")
            })?;
            holds(unchanged(folder, damaged)?, || {
                format!("an append failed and changed files: {error}")
            })
        }
        Ok(sequence) => {
            let after = read(folder)?;
            let kept = after.records.starts_with(&before.records);
            holds(kept, || format!("an append at {sequence} lost records: {}", words(&after)))?;
            // Earlier damage, which headers and lengths do not tell, stays what it is.
            if before.error.is_none() {
                let is_there = after.records.last() == Some(&(sequence, b"new".to_vec()));
                holds(is_there, || format!("appended at {sequence}: {}", words(&after)))?;
            }
            Ok(())
        }
    }
}
