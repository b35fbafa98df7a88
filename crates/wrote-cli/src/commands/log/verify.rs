//! `wrote log verify` and `wrote log repair`: read every byte, and report or repair damage.

use super::stat::{JsonSummary, write_gaps};
use crate::args::LogVerifyArgs;
use crate::output;
use crate::progress::CopyReporter;
use crate::terminal::is_quiet;
use serde::Serialize;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use wrote::log::{Damage, LogSummary, repair, verify};
use wrote_report::{plain, write_json};
use wrote_result::units::counted;
use wrote_result::{Error, Stop, quoted, units};

pub(super) fn run(arguments: &LogVerifyArgs, stop: &Stop) -> Result<(), Error> {
    let LogVerifyArgs { folder, json } = arguments;
    let verified = read(folder, stop)?;
    output::to_stdout(|out| match *json {
        true => write_json(&JsonVerified::of(folder, &verified), out),
        false => write_text(&verified, out),
    })?;
    complain(folder, &verified)
}

/// Reads the whole log while showing a bar.
fn read(folder: &Path, stop: &Stop) -> Result<LogSummary, Error> {
    let mut reporter = CopyReporter::default();
    let mut watch = |done, total| reporter.progress_until(stop, done, total);
    verify(folder, Some(&mut watch)).map_err(|error| crate::stdio::of_library(&error))
}

/// Fails if there is damage, whose locations have already been printed, or garbage, which affects
/// no record.
fn complain(folder: &Path, verified: &LogSummary) -> Result<(), Error> {
    let shown = folder.display();
    let repair = quoted(&["wrote", "log", "repair", &folder.to_string_lossy()]);
    let places = |count: usize| counted(count as u64, "place");
    match (verified.damage.len(), verified.garbage.len()) {
        (0, 0) => Ok(()),
        (0, garbage) => {
            let text = format!("{shown}: garbage in {}; no record is lost", places(garbage));
            Err(Error::Coded(3, format!("{text}; {repair} removes it")))
        }
        (damage, _) => Err(Error::Failed(format!(
            "{shown}: damaged in {}; {repair} keeps every intact record",
            places(damage)
        ))),
    }
}

#[derive(Serialize)]
struct JsonVerified {
    /// Whether there is neither damage nor garbage.
    whole: bool,
    /// The number of intact records.
    records: u64,
    record_bytes: u64,
    /// The number of bytes of an interrupted write after the last complete record.
    torn_bytes: u64,
    damage: Vec<JsonDamage>,
    /// The garbage after sealed segments, which affects no record.
    garbage: Vec<JsonGarbage>,
    log: JsonSummary,
}

#[derive(Serialize)]
struct JsonGarbage {
    path: String,
    offset_bytes: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct JsonDamage {
    path: String,
    offset_bytes: u64,
    sequence: u64,
    /// The number of lost records; omitted if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<u64>,
    because: String,
}

impl JsonVerified {
    fn of(folder: &Path, verified: &LogSummary) -> JsonVerified {
        let damage = verified.damage.iter().map(|damage| JsonDamage {
            path: damage.path.to_string_lossy().into_owned(),
            offset_bytes: damage.offset_bytes,
            sequence: damage.sequence,
            records: damage.records,
            because: damage.because.clone(),
        });
        let garbage = verified.garbage.iter().map(|(path, place)| JsonGarbage {
            path: path.to_string_lossy().into_owned(),
            offset_bytes: place.start,
            bytes: place.end - place.start,
        });
        JsonVerified {
            whole: verified.damage.is_empty() && verified.garbage.is_empty(),
            records: verified.records,
            record_bytes: verified.record_bytes,
            torn_bytes: verified.torn_bytes,
            damage: damage.collect(),
            garbage: garbage.collect(),
            log: JsonSummary::of(folder, verified),
        }
    }
}

fn write_text(verified: &LogSummary, out: &mut dyn Write) -> io::Result<()> {
    write_damage(&verified.damage, out)?;
    write_garbage(&verified.garbage, out)?;
    if is_quiet() {
        return Ok(());
    }
    let is_whole = verified.damage.is_empty() && verified.garbage.is_empty();
    let segments = verified.segments.len() as u64;
    writeln!(out, "{}", read_whole(is_whole, verified.records, segments, verified.record_bytes))?;
    write_gaps(&verified.gaps, out)?;
    match (verified.torn_bytes, verified.writer) {
        (0, _) => Ok(()),
        (torn, Some(process)) => {
            let torn = units::bytes(torn);
            writeln!(out, "{torn} after them may be a write in progress by process {process}")
        }
        (torn, None) => {
            let torn = units::bytes(torn);
            writeln!(out, "{torn} of an interrupted write follow; the next append sets them aside")
        }
    }
}

/// Returns text such as `3 records in 1 segment, 61 B, intact`. If there is damage, the text counts
/// the intact records.
pub(super) fn read_whole(is_whole: bool, records: u64, segments: u64, bytes: u64) -> String {
    let (records, segments) = (counted(records, "record"), counted(segments, "segment"));
    let read = format!("{records} in {segments}, {}", units::bytes(bytes));
    if is_whole { format!("{read}, intact") } else { format!("otherwise intact: {read}") }
}

/// Returns a description of the records that damage has lost, starting with record `sequence`.
pub(super) fn lost(sequence: u64, records: Option<u64>) -> String {
    match records {
        Some(0) => "no record is lost".into(),
        Some(1) => format!("record {sequence} is lost"),
        Some(count) => format!("{count} records from {sequence} on are lost"),
        None => format!("records from {sequence} on are lost"),
    }
}

/// Writes a line for each damaged location.
fn write_damage(damage: &[Damage], out: &mut dyn Write) -> io::Result<()> {
    for Damage { path, offset_bytes, sequence, records, because, .. } in damage {
        let lost = lost(*sequence, *records);
        let path = plain(&path.to_string_lossy());
        writeln!(out, "{path}: damaged at byte {offset_bytes}: {because}; {lost}")?;
    }
    Ok(())
}

fn write_garbage(garbage: &[(PathBuf, Range<u64>)], out: &mut dyn Write) -> io::Result<()> {
    for (path, Range { start, end }) in garbage {
        let (path, bytes) = (plain(&path.to_string_lossy()), units::bytes(end - start));
        writeln!(out, "{path}: {bytes} of garbage from byte {start} on; no record is lost")?;
    }
    Ok(())
}

/// Makes every complete record readable again, and sets the damaged files aside.
pub(super) fn run_repair(folder: &Path) -> Result<(), Error> {
    let repaired = repair(folder).map_err(|error| crate::stdio::of_library(&error))?;
    output::to_stdout(|out| write_repaired(&repaired, out))
}

fn write_repaired(repaired: &LogSummary, out: &mut dyn Write) -> io::Result<()> {
    write_damage(&repaired.damage, out)?;
    write_garbage(&repaired.garbage, out)?;
    for path in &repaired.put_back {
        writeln!(out, "renamed back to {}", plain(&path.to_string_lossy()))?;
    }
    for path in &repaired.kept_aside {
        writeln!(out, "original kept as {}", plain(&path.to_string_lossy()))?;
    }
    let records = counted(repaired.records, "record");
    let is_whole = repaired.damage.is_empty() && repaired.garbage.is_empty();
    match (is_whole && repaired.put_back.is_empty(), repaired.records) {
        (true, _) => writeln!(out, "nothing to repair: {records}, intact"),
        (false, 1) => writeln!(out, "repaired: 1 record is readable"),
        (false, _) => writeln!(out, "repaired: {records} are readable"),
    }
}
