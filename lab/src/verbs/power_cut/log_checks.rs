//! Checks a log after a power cut, and reopens it until the next one, for all subjects with a log.

use crate::verbs::power_cut::content::{CheckResult, names};
use crate::verbs::power_cut::said::{Line, Report};
use crate::verbs::power_cut::subject::Reporter;
use std::io;
use std::path::Path;
use wrote::log::LogStats;
use wrote::{Error, Log, Record};

/// Counts temporary files in the log's folder. `examine` returns the state of the records without a
/// promise, or the broken promise in words.
pub fn check(
    folder: &Path,
    said: &Report,
    examine: impl FnOnce() -> Result<&'static str, String>,
) -> io::Result<CheckResult> {
    let temporary_files = if folder.exists() { names(folder)?.1 } else { 0 };
    let mut found = CheckResult { temporary_files, ..CheckResult::default() };
    match examine() {
        Ok(in_flight) => found.in_flight = in_flight,
        Err(fault) => found.faults.push(fault),
    }
    if said.all().contains(&Line::Unpoisoned) {
        found.faults.push("after the first error the log took more".to_owned());
    }
    Ok(found)
}

/// Returns the findings of an opening; an error in words if a file that it kept aside is missing.
pub fn recovered(log: &Log) -> Result<LogStats, String> {
    let recovered = log.stats();
    match recovered.kept_aside.iter().find(|path| !path.exists()) {
        Some(lost) => Err(format!("{} was to be kept aside, and is not there", lost.display())),
        None => Ok(recovered),
    }
}

/// Reads all records of the log. `place` returns the place of a record by its sequence and bytes,
/// or in words why it has none.
pub fn places<P>(
    log: &Log,
    place: impl Fn(u64, &[u8]) -> Result<P, String>,
) -> Result<Vec<P>, String> {
    let failed = |error: Error| format!("reading: {error}");
    let place = |record: Result<Record, Error>| {
        let Record { sequence, bytes, .. } = record.map_err(failed)?;
        place(sequence, &bytes).map_err(|because| format!("record {sequence}: {because}"))
    };
    log.reader(0).map_err(failed)?.map(place).collect()
}

/// Closes the log, checks every byte, and reopens it. There must be no torn end, and an end mark if
/// the format `has_mark`.
pub fn opened_after_close(
    log: Log,
    folder: &Path,
    open: impl Fn() -> Result<Log, Error>,
) -> Result<Log, String> {
    let words = |error: Error| error.to_string();
    log.close().map_err(words)?;
    drop(log);
    let verified = wrote::log::verify(folder, None).map_err(words)?;
    if let Some(damage) = verified.damage.first() {
        return Err(format!("going on: {damage:?}"));
    }
    let log = open().map_err(words)?;
    let recovered = log.stats();
    if recovered.torn_bytes > 0 || !recovered.found_closed {
        return Err(format!("after it was closed: {recovered:?}"));
    }
    Ok(log)
}

/// Fails unless the closed log has exactly these records.
pub fn all_found<P: PartialEq>(found: &[P], places: &[P]) -> Result<(), String> {
    if found == places {
        return Ok(());
    }
    let (found, expected) = (found.len(), places.len());
    Err(format!("after it was closed: {found} records, where {expected} belong"))
}

/// Opens and closes the log until that fails, and reports its end each time.
pub fn reopen(open: impl Fn() -> Result<Log, Error>, say: Reporter) -> Error {
    loop {
        let opened = open().and_then(|log| {
            let line = Line::Reopened(log.stats().next_sequence);
            say(&line)?;
            log.close()
        });
        if let Err(error) = opened {
            return error;
        }
    }
}
