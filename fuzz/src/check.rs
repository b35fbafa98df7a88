//! The checks of a damaged log against the records that were written.

use crate::folder::Files;
use crate::layout::Log as WrittenLog;
use std::path::Path;
use wrote::log::{Verified, repair, verify};
use wrote::{Log, LogReader, Record, SyncPolicy};

/// More records than any input can have, forged counts included, since a record takes some bytes.
const RECORDS_MAX: usize = 100_000;

/// Facts about a log that hold after any damage.
pub struct Truth {
    records: Vec<Option<Vec<u8>>>,
    /// Checksums were recomputed: wrong records may be valid.
    is_forged: bool,
    is_untouched: bool,
    /// The sequence at which reading begins, if the header of the first segment is intact.
    begin: Option<u64>,
    /// The first sequences of all segments with an intact header.
    begins: Vec<u64>,
    /// Records before this sequence were durable, as an intact header states.
    durable_sequence: u64,
}

impl Truth {
    pub fn new(log: &WrittenLog, files: &Files, is_forged: bool) -> Truth {
        let is_intact = |file: &String, from: usize, to: usize| {
            let now = files.get(file).and_then(|bytes| bytes.get(from..to));
            now.is_some() && now == log.files[file].get(from..to)
        };
        let lowest = files.keys().next();
        let intact = || log.segments.iter().filter(|(file, _)| is_intact(file, 0, 64));
        let begin = intact().find(|(file, _)| Some(file) == lowest);
        let proofs = log.batches.iter().filter(|batch| {
            is_intact(&batch.file, 0, 64) && is_intact(&batch.file, batch.offset, batch.offset + 48)
        });
        Truth {
            records: log.records.clone(),
            is_forged,
            is_untouched: *files == log.files,
            begin: begin.map(|(_, first)| *first),
            begins: intact().map(|(_, first)| *first).collect(),
            durable_sequence: proofs.map(|batch| batch.durable_sequence).max().unwrap_or(0),
        }
    }

    /// Returns the first sequence from `sequence` on at which there is a record.
    fn next_record(&self, sequence: u64) -> u64 {
        let rest = self.records.get(sequence as usize..).unwrap_or_default();
        sequence + rest.iter().take_while(|record| record.is_none()).count() as u64
    }

    fn is_true(&self, record: &Record) -> bool {
        let own = self.records.get(record.sequence as usize);
        own.is_some_and(|own| own.as_ref() == Some(&record.bytes))
    }

    /// Asserts that the records are the written ones without a gap, and that the end is silent only
    /// where it may be.
    fn hold(&self, read: &Read) {
        let mut next = None;
        for record in &read.records {
            assert!(self.is_true(record), "not what was written: {record:?}");
            let is_next = |from: u64| self.next_record(from) == record.sequence;
            let follows = match next.or(self.begin) {
                Some(next) => is_next(next),
                None => self.begins.iter().any(|&from| is_next(from)),
            };
            assert!(follows, "a record is missing before: {record:?}");
            next = Some(record.sequence + 1);
        }
        if read.error.is_none()
            && let Some(next) = next.or(self.begin)
        {
            let lost = self.next_record(next) < self.durable_sequence;
            assert!(!lost, "silent at {next}, and durable up to {}", self.durable_sequence);
        }
    }
}

struct Read {
    records: Vec<Record>,
    error: Option<wrote::Error>,
}

fn read_all(folder: &Path) -> Read {
    let mut read = Read { records: Vec::new(), error: None };
    let reader = match LogReader::open(folder, 0) {
        Ok(reader) => reader,
        Err(error) => return Read { error: Some(error), ..read },
    };
    for record in reader {
        match record {
            Ok(record) => read.records.push(record),
            Err(error) => {
                read.error = Some(error);
                break;
            }
        }
        assert!(read.records.len() <= RECORDS_MAX, "no end");
    }
    let rises = read.records.windows(2).all(|pair| pair[0].sequence < pair[1].sequence);
    assert!(rises, "sequences rise");
    read
}

fn verified(folder: &Path) -> Result<Verified, wrote::Error> {
    verify(folder, None)
}

/// Reads the log and verifies it.
pub fn read(folder: &Path, truth: &Truth) {
    let read = read_all(folder);
    let verified = verified(folder);
    if truth.is_forged {
        return;
    }
    // If the first segment's header is damaged, the two may differ in their views of it.
    if let Ok(verified) = &verified
        && truth.begin.is_some()
    {
        // Verifying also names damage outside the records, which a reader may not notice.
        let loses = verified.damage.iter().any(|damage| damage.records != Some(0));
        let is_damaged = !verified.damage.is_empty();
        assert!(read.error.is_none() || is_damaged, "{:?}, and {verified:?}", read.error);
        assert!(read.error.is_some() || !loses, "read to its end, and {verified:?}");
    }
    truth.hold(&read);
    if truth.is_untouched {
        let all = truth.records.iter().flatten().count();
        assert_eq!((read.records.len(), read.error.is_none()), (all, true), "{:?}", read.error);
        let verified = verified.expect("nothing was done to the log");
        assert_eq!((verified.records, verified.torn_bytes), (all as u64, 0), "{verified:?}");
    }
}

/// Opens the log for writing. If it could be read to its end it continues there.
pub fn open(folder: &Path, truth: &Truth) {
    let before = read_all(folder);
    let options =
        Log::options().sync(SyncPolicy::No).buffers(2).buffer_bytes(4096).segment_bytes(16384);
    let log = match options.open(folder) {
        Ok(log) => log,
        Err(error) => {
            let may_fail = before.error.is_some() || truth.is_forged || truth.begin.is_none();
            assert!(may_fail, "it could be read: {error}");
            return;
        }
    };
    let sequence = log.append(b"new").expect("a new log takes a record").sequence();
    log.close().expect("a log on a disk that works");
    if truth.is_forged {
        return;
    }
    let durable = truth.durable_sequence;
    assert!(sequence >= durable, "the log goes on at {sequence}, and was durable up to {durable}");
    if before.error.is_some() {
        return;
    }
    let after = read_all(folder);
    assert!(after.error.is_none(), "{:?}", after.error);
    let plain = |records: Vec<Record>| -> Vec<(u64, Vec<u8>)> {
        records.into_iter().map(|record| (record.sequence, record.bytes)).collect()
    };
    let mut expected = plain(before.records);
    expected.push((sequence, b"new".to_vec()));
    assert_eq!(plain(after.records), expected);
}

/// Repairs the log: the readable records stay, and the log is whole afterwards. Logs with forged
/// checksums are left out: they may claim any number of lost records, and a repair writes down the
/// place of each. So are logs whose first segment has a damaged header.
pub fn repair_and_read(folder: &Path, truth: &Truth) {
    if truth.is_forged || truth.begin.is_none() {
        return;
    }
    let before = read_all(folder);
    if repair(folder).is_err() {
        return;
    }
    let after = read_all(folder);
    assert!(after.error.is_none(), "{:?}", after.error);
    let verified = verified(folder).expect("a repaired log");
    assert!(verified.damage.is_empty() && verified.garbage.is_empty(), "{verified:?}");
    assert!(after.records.iter().all(|record| truth.is_true(record)), "not what was written");
    // A repair does not keep the time of a record.
    let same =
        |one: &Record, other: &Record| (one.sequence, &one.bytes) == (other.sequence, &other.bytes);
    let is_kept = |record: &Record| after.records.iter().any(|other| same(record, other));
    let kept = before.records.iter().all(is_kept);
    assert!(kept, "a record that could be read is lost");
}
