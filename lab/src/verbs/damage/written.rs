//! The logs before their damage: both formats, closed and killed, with their earlier states; and
//! some of which old segments were removed, with later ones in their files.

use crate::verbs::damage::{Files, Trouble};
use std::fs;
use std::path::Path;
use wrote::{Format, Log, SyncPolicy};

/// The length of the logs of which old segments are removed.
const RETAIN_BYTES: u64 = 24 << 10;

/// A log as it was written.
pub struct Written {
    pub name: String,
    pub format: Format,
    pub files: Files,
    /// The files when half of the records were there.
    pub earlier: Files,
}

/// Returns the number of the log that a record says it is of.
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

/// Writes logs: two of each kind, neighbours, so that each has a stranger of its own kind.
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

/// Reads the files of a log, but for its lock and those on their way to a place.
pub fn files(folder: &Path) -> Result<Files, Trouble> {
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
