//! The logs before their damage: both formats, closed and killed, with their earlier states. In
//! some, old segments were removed and their files reused.

use crate::damage::{Files, Truth, files};
use crate::verbs::Trouble;
use std::path::Path;
use wrote::{Format, Log, SyncPolicy};

/// The length of logs whose old segments are removed.
const RETAIN_BYTES: u64 = 24 << 10;

/// A log before its damage.
pub struct Written {
    pub name: String,
    pub format: Format,
    pub files: Files,
    /// The files with half of the records.
    pub earlier: Files,
}

/// Returns the log's number in a record.
pub fn id_of(record: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(record);
    text.split(':').next().and_then(|id| id.parse().ok()).unwrap_or(0)
}

/// Returns the bytes of a log's record.
pub fn record(id: u64, sequence: u64) -> Vec<u8> {
    let mut bytes = format!("{id}:{sequence}:").into_bytes();
    let len = sequence * 7919 % 1500;
    bytes.extend((0..len).map(|place| b'a' + ((sequence * 3 + place) % 26) as u8));
    bytes
}

/// Writes logs: two adjacent ones of each kind, so that each has an unrelated log of its kind.
pub fn logs(folder: &Path) -> Result<Vec<Written>, Trouble> {
    let mut logs = Vec::new();
    for format in [Format::Framed, Format::Lines] {
        for (records, is_closed) in [(3, true), (40, false), (40, true), (90, false), (90, true)] {
            for _ in 0..2 {
                let id = logs.len() as u64;
                logs.push(write(folder, id, format, records, is_closed, u64::MAX)?);
            }
        }
    }
    for is_closed in [false, true] {
        for _ in 0..2 {
            let id = logs.len() as u64;
            logs.push(write(folder, id, Format::Framed, 200, is_closed, RETAIN_BYTES)?);
        }
    }
    Ok(logs)
}

fn write(
    folder: &Path,
    id: u64,
    format: Format,
    records: u64,
    is_closed: bool,
    retain_bytes: u64,
) -> Result<Written, Trouble> {
    let made = tempfile::tempdir_in(folder)?;
    let options =
        Log::options().format(format).sync(SyncPolicy::Always).buffers(3).buffer_bytes(4096);
    let log = options.segment_bytes(12 << 10).retain_bytes(retain_bytes).open(made.path())?;
    let append = |numbers: std::ops::Range<u64>| {
        numbers.into_iter().try_for_each(|number| log.append(&record(id, number))?.wait())
    };
    append(0..records / 2)?;
    let earlier = files(made.path())?;
    append(records / 2..records)?;
    if is_closed {
        log.close()?;
    }
    let now = files(made.path())?;
    let recycled = log.stats().recycled;
    if retain_bytes < u64::MAX && recycled == 0 {
        return Err("no segment got the file of another".into());
    }
    let end = if is_closed { "closed" } else { "killed" };
    let name = format!("log {id}: {format:?}, {records} records, {recycled} recycled, {end}");
    Ok(Written { name, format, files: now, earlier })
}

/// A log and its files after the damage.
pub struct Damaged<'a> {
    pub log: &'a Written,
    pub files: &'a Files,
}

impl Truth for Damaged<'_> {
    fn format(&self) -> Format {
        self.log.format
    }

    /// Every record of a framed log is as it was written, and all are of one log. (Where every file
    /// is another log's, that log is read.) A line has no checksum, so an altered one cannot be
    /// detected.
    fn judge_records(&self, records: &[(u64, Vec<u8>)]) -> Result<(), String> {
        if self.log.format == Format::Lines {
            return Ok(());
        }
        let id = records.first().map_or(0, |(_, bytes)| id_of(bytes));
        let is_true = |(sequence, bytes): &&(u64, Vec<u8>)| *bytes == record(id, *sequence);
        match records.iter().find(|record| !is_true(record)) {
            Some((sequence, _)) => Err(format!("record {sequence} was altered")),
            None => Ok(()),
        }
    }

    fn has_begin(&self) -> bool {
        true
    }
}
