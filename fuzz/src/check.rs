//! Facts about a damaged log, and the check by the rules of `lab::damage`.

use crate::NextStep;
use crate::layout::Log as WrittenLog;
use lab::damage::{self, Files, Read, holds};
use std::path::Path;
use wrote::Format;
use wrote::log::verify;

/// Facts about a log that hold after any damage.
pub struct Truth {
    records: Vec<Option<Vec<u8>>>,
    /// Checksums were recomputed: wrong records may be valid.
    is_forged: bool,
    is_untouched: bool,
    /// The first readable sequence, if the header of the first segment is intact.
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

    /// Returns the sequence of the first record at or after `sequence`.
    fn next_record(&self, sequence: u64) -> u64 {
        let rest = self.records.get(sequence as usize..).unwrap_or_default();
        sequence + rest.iter().take_while(|record| record.is_none()).count() as u64
    }
}

impl damage::Truth for Truth {
    fn format(&self) -> Format {
        Format::Framed
    }

    fn judge_records(&self, records: &[(u64, Vec<u8>)]) -> Result<(), String> {
        let own = |sequence: u64| self.records.get(sequence as usize)?.as_ref();
        let is_true = |(sequence, bytes): &&(u64, Vec<u8>)| own(*sequence) == Some(bytes);
        match records.iter().find(|record| !is_true(record)) {
            Some(record) => Err(format!("not what was written: {record:?}")),
            None => Ok(()),
        }
    }

    /// The records are the written ones without a gap, and the end reports no error only where that
    /// is allowed.
    fn judge(&self, read: &Read) -> Result<(), String> {
        self.judge_records(&read.records)?;
        let mut next = None;
        for (sequence, _) in &read.records {
            let is_next = |from: u64| self.next_record(from) == *sequence;
            let follows = match next.or(self.begin) {
                Some(next) => is_next(next),
                None => self.begins.iter().any(|&from| is_next(from)),
            };
            holds(follows, || format!("a record is missing before {sequence}"))?;
            next = Some(*sequence + 1);
        }
        let silent_at = next.or(self.begin).filter(|_| read.error.is_none());
        let is_lost = |next: &u64| self.next_record(*next) < self.durable_sequence;
        match silent_at.filter(is_lost) {
            Some(next) => {
                Err(format!("silent at {next}, and durable up to {}", self.durable_sequence))
            }
            None => Ok(()),
        }
    }

    fn has_begin(&self) -> bool {
        self.begin.is_some()
    }

    fn durable_sequence(&self) -> u64 {
        self.durable_sequence
    }
}

/// Checks the rules of reading, and then of the next step.
///
/// # Panics
///
/// Where one does not hold.
pub fn check(folder: &Path, truth: &Truth, damaged: &Files, then: NextStep) {
    let tried =
        if truth.is_forged { forged(folder, then) } else { rules(folder, truth, damaged, then) };
    if let Err(because) = tried {
        panic!("{because}");
    }
}

fn rules(folder: &Path, truth: &Truth, damaged: &Files, then: NextStep) -> Result<(), String> {
    let before = damage::reading(folder, truth, damaged)?;
    if truth.is_untouched {
        let all = truth.records.iter().flatten().count();
        let is_whole = (before.records.len(), before.error.is_none()) == (all, true);
        holds(is_whole, || format!("{all} records, and read: {before:?}"))?;
        let verified = verify(folder, None).map_err(|error| error.to_string())?;
        let is_whole = (verified.records, verified.torn_bytes) == (all as u64, 0);
        holds(is_whole, || format!("{all} records, and {verified:?}"))?;
    }
    match then {
        NextStep::Nothing => Ok(()),
        NextStep::Repair if truth.begin.is_none() => Ok(()),
        NextStep::Open => damage::append(folder, truth, damaged, &before),
        NextStep::Repair => damage::repair(folder, truth, damaged, &before),
    }
}

/// Logs with forged checksums may contain anything: a reader ends, and nothing panics. They are not
/// repaired, because they may claim any number of lost records, and a repair records each.
fn forged(folder: &Path, then: NextStep) -> Result<(), String> {
    // Any error will do.
    let _ = verify(folder, None);
    if then == NextStep::Open {
        let _ = damage::append_one(folder, Format::Framed);
    }
    // Forged headers may make sequences decrease.
    match damage::read(folder, 0) {
        Err(because) if because == damage::ENDLESS => Err(because),
        _ => Ok(()),
    }
}
