//! The rules for a damaged log: how readers, verification, repair and the next append must behave.

use super::original::Original;
use super::{Files, files};
use lab::log_reader::{self, End};
use std::collections::BTreeSet;
use std::path::Path;
use wrote::log::{summary, verify};
use wrote::{Error, Log, LogReader, SyncPolicy};

/// A number of records that no damaged log reaches.
const RECORDS_MAX: usize = 100_000;
/// The rule that reading must end.
const ENDLESS: &str = "reading does not end";
/// The record appended after the damage.
const NEW: &[u8] = b"new";

/// The records that a reader found, and the error that ended it.
#[derive(Debug)]
pub struct Read {
    /// The records, as their sequences and bytes.
    records: Vec<(u64, Vec<u8>)>,
    /// The error; `None` if the reader reached the log's end.
    error: Option<Error>,
}

/// Facts about a log that hold after any damage except a forged checksum.
pub struct Truth<'a> {
    original: &'a Original,
    is_untouched: bool,
    /// Whether all readers must agree. They may differ about where the log begins, if a file
    /// precedes its first segment.
    is_agreed: bool,
    /// The first sequence that can be read, if the header of the first segment is intact.
    begin: Option<u64>,
    /// The first sequences of all segments whose header is intact.
    begins: Vec<u64>,
    /// The sequence before which all records were durable, according to an intact header.
    durable_sequence: u64,
}

impl<'a> Truth<'a> {
    /// Returns the facts that the `damaged` files still prove.
    pub fn new(original: &'a Original, damaged: &Files) -> Truth<'a> {
        let is_intact = |file: &String, offset: usize, header: &[u8]| {
            let now = damaged.get(file).and_then(|bytes| bytes.get(offset..));
            now.is_some_and(|now| now.starts_with(header))
        };
        let segments = original.segments.iter();
        let intact: Vec<_> =
            segments.filter(|segment| is_intact(&segment.file, 0, &segment.header)).collect();
        let lowest = damaged.keys().next();
        let begin = intact.iter().find(|segment| Some(&segment.file) == lowest);
        let files: BTreeSet<_> = intact.iter().map(|segment| &segment.file).collect();
        let proofs = original.batches.iter().filter(|batch| {
            files.contains(&batch.file) && is_intact(&batch.file, batch.offset, &batch.header)
        });
        Truth {
            original,
            is_agreed: begin.is_some() || lowest >= original.files.keys().next(),
            is_untouched: *damaged == original.files,
            begin: begin.map(|segment| segment.first_sequence),
            begins: intact.iter().map(|segment| segment.first_sequence).collect(),
            durable_sequence: proofs.map(|batch| batch.durable_sequence).max().unwrap_or(0),
        }
    }

    /// Fails if a record was altered, or belongs to a different log than the other records.
    fn judge_records(&self, records: &[(u64, Vec<u8>)]) -> Result<(), String> {
        match first_altered(records, &self.original.records) {
            Some(record) if !self.is_other(records) => {
                Err(format!("record {} is not as it was written", record.0))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the records belong to the unrelated log, whose files may have replaced all
    /// of the log's own files.
    fn is_other(&self, records: &[(u64, Vec<u8>)]) -> bool {
        !records.is_empty() && first_altered(records, &self.original.other.1).is_none()
    }

    /// Fails if records differ from the written ones, if one is missing between two others, or if
    /// the end is reported without an error although later records were durable.
    fn judge(&self, read: &Read) -> Result<(), String> {
        self.judge_records(&read.records)?;
        if self.is_other(&read.records) {
            return Ok(());
        }
        let mut next = None;
        for (sequence, _) in &read.records {
            let follows = match next.or(self.begin) {
                Some(next) => next == *sequence,
                None => self.begins.contains(sequence),
            };
            holds(follows, || format!("a record is missing before {sequence}"))?;
            next = Some(*sequence + 1);
        }
        let silent_at = next.or(self.begin).filter(|_| read.error.is_none());
        let durable = self.durable_sequence;
        match silent_at.filter(|next| *next < durable) {
            Some(next) => Err(format!("silent at {next}, and durable up to {durable}")),
            None => Ok(()),
        }
    }

    /// Fails if an undamaged log is not read and verified completely.
    fn judge_untouched(&self, folder: &Path, read: &Read) -> Result<(), String> {
        // The oldest records may have been removed.
        let begin = self.begin.unwrap_or(0) as usize;
        let all = self.original.records.len() - begin;
        let is_whole = (read.records.len(), read.error.is_none()) == (all, true);
        holds(is_whole, || format!("{all} records, and {}", words(read)))?;
        let verified = verify(folder, None).map_err(|error| error.to_string())?;
        let is_whole = (verified.records, verified.torn_bytes) == (all as u64, 0);
        holds(is_whole, || format!("{all} records, and {verified:?}"))
    }
}

/// Returns the first of `records` that is not one of `written`; `None` if all of them are.
fn first_altered<'a>(
    records: &'a [(u64, Vec<u8>)],
    written: &[Vec<u8>],
) -> Option<&'a (u64, Vec<u8>)> {
    let own = |sequence: u64| written.get(sequence as usize);
    records.iter().find(|(sequence, bytes)| own(*sequence) != Some(bytes))
}

/// Checks a log with forged checksums. It may contain anything, but reading must end, and nothing
/// may panic. Such logs are not repaired, because they may claim any number of lost records, and a
/// repair records each of them.
pub fn forged(folder: &Path, appends: bool) -> Result<(), String> {
    // Any error is allowed.
    let _ = verify(folder, None);
    if appends {
        let _ = append_one(folder);
    }
    // Forged headers may make sequences decrease.
    match read(folder, 0) {
        Err(because) if because == ENDLESS => Err(because),
        _ => Ok(()),
    }
}

/// Reads the log in `folder`, whose files are `damaged`, by all methods. Returns the records that a
/// reader of the whole log found.
pub fn reading(folder: &Path, truth: &Truth<'_>, damaged: &Files) -> Result<Read, String> {
    let whole = read(folder, 0)?;
    truth.judge(&whole)?;
    if truth.is_untouched {
        truth.judge_untouched(folder, &whole)?;
    }
    from_the_middle(folder, truth, &whole)?;
    if truth.is_agreed {
        as_the_second_reader(damaged, &whole)?;
        as_verified(folder, &whole)?;
    }
    holds(unchanged(folder, damaged)?, || "reading or verifying changed a file".to_owned())?;
    Ok(whole)
}

/// Checks that verification and readers agree. If verification finds no damage, the log can be read
/// to its end and summarised. If damage loses records, a reader ends with an error.
fn as_verified(folder: &Path, whole: &Read) -> Result<(), String> {
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
    holds(whole.error.is_none() || is_damaged, || format!("{}, and {verified:?}", words(whole)))?;
    // Verification also reports damage outside the records, which a reader may not notice.
    let loses = verified.damage.iter().any(|damage| damage.records != Some(0));
    holds(whole.error.is_some() || !loses, || format!("read to its end, and {verified:?}"))
}

/// Repairs the log. Every record that could be read must remain, and the log must then be
/// undamaged. A failed repair must change nothing.
pub fn repair(
    folder: &Path,
    truth: &Truth<'_>,
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
    // The damaged records are missing after the repair.
    truth.judge_records(&after.records).map_err(|because| format!("repaired: {because}"))?;
    let verified = verify(folder, None).map_err(|error| format!("after repair: {error}"))?;
    let is_whole = verified.damage.is_empty() && verified.garbage.is_empty();
    holds(is_whole, || format!("repaired, and {verified:?}"))
}

/// Fails with `because` if a rule is broken.
fn holds(rule: bool, because: impl FnOnce() -> String) -> Result<(), String> {
    if rule { Ok(()) } else { Err(because()) }
}

fn words(read: &Read) -> String {
    let error = read.error.as_ref().map_or_else(|| "no error".to_owned(), Error::to_string);
    format!("{} records, {error}", read.records.len())
}

fn unchanged(folder: &Path, before: &Files) -> Result<bool, String> {
    files(folder).map(|now| now == *before).map_err(|error| error.to_string())
}

/// Reads records from sequence `from` on. Fails if they do not end, or are out of order.
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

/// Checks that a reader that starts in the middle, or at one of the last records, finds correct
/// records. If the log can be read to its end, that reader must find all later records.
fn from_the_middle(folder: &Path, truth: &Truth<'_>, whole: &Read) -> Result<(), String> {
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

/// Checks that the second reader, beginning at one of the files at which a reader may begin, finds
/// the same records as the first reader.
fn as_the_second_reader(damaged: &Files, first: &Read) -> Result<(), String> {
    let files: Vec<_> = damaged.clone().into_iter().collect();
    let mut judged =
        log_reader::beginnings(&files).into_iter().map(|files| both_agree(files, first));
    let from_the_first = judged.next().unwrap_or(Ok(()));
    from_the_first.or_else(|because| judged.find(Result::is_ok).unwrap_or(Err(because)))
}

/// Checks that both readers find the same records. The first reader may refuse a log that the
/// second one accepts, because the second one does not know of other logs.
fn both_agree(files: &[log_reader::File], first: &Read) -> Result<(), String> {
    // An identity can be computed from a batch, but the second reader does not do that.
    if !log_reader::has_header(files) {
        return Ok(());
    }
    let second = log_reader::read(files);
    let is_prefix = second.records.starts_with(&first.records);
    let count = second.records.len();
    let differ = || format!("the second reader has {count} records, the first {}", words(first));
    holds(is_prefix, differ)?;
    match &first.error {
        Some(Error::Damaged { .. }) | None => {
            holds(first.records.len() == count, differ)?;
            let is_damaged = matches!(second.end, End::Damaged { .. });
            let closed = log_reader::closed_end(files);
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

/// Opens the log, appends a record, and closes the log. Returns the record's sequence.
fn append_one(folder: &Path) -> Result<u64, Error> {
    let options = Log::options().sync(SyncPolicy::No).buffers(2).buffer_bytes(4096);
    let log = options.segment_bytes(12 << 10).open(folder)?;
    let sequence = log.append(NEW)?.sequence();
    log.close()?;
    Ok(sequence)
}

/// Checks an append to a damaged log. It must either fail and change nothing, or keep every
/// readable record.
pub fn append(
    folder: &Path,
    truth: &Truth<'_>,
    damaged: &Files,
    before: &Read,
) -> Result<(), String> {
    let sequence = match append_one(folder) {
        Ok(sequence) => sequence,
        Err(error) => {
            let may_fail = before.error.is_some()
                || !truth.is_agreed
                || verify(folder, None).map_or(true, |found| !found.damage.is_empty());
            holds(may_fail, || {
                format!("it can be read and verified, and an append fails: {error}")
            })?;
            return holds(unchanged(folder, damaged)?, || {
                format!("an append failed and changed files: {error}")
            });
        }
    };
    let durable = truth.durable_sequence;
    holds(sequence >= durable, || format!("appended at {sequence}, durable up to {durable}"))?;
    let after = read(folder, 0)?;
    let kept = after.records.starts_with(&before.records);
    holds(kept, || format!("an append at {sequence} lost records: {}", words(&after)))?;
    // Earlier damage may remain, if headers and lengths do not reveal it.
    let is_there = after.error.is_none()
        && after.records.len() == before.records.len() + 1
        && after.records.last().is_some_and(|last| (last.0, &*last.1) == (sequence, NEW));
    holds(is_there || before.error.is_some(), || {
        format!("appended at {sequence}: {}", words(&after))
    })
}
