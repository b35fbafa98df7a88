//! Recovery of a log of lines: the log ends behind the last whole line.

use super::super::damage;
use super::super::input::{Input, LogFiles};
use super::super::lines::{LineCount, UNSURE_FILES, read};
use super::super::retention::SealedSegment;
use super::{ActiveSegment, Recovered, Recovery, cut};
use crate::{Error, metadata};
use rustix::fs::fstat;
use std::path::PathBuf;

pub(super) fn recover(files: &LogFiles, names: &[(u64, PathBuf)]) -> Result<Recovery, Error> {
    if names.is_empty() {
        return Ok(Recovery::nothing(0, Recovered::default()));
    }
    let mut last = names.len().saturating_sub(UNSURE_FILES);
    loop {
        let (number, path) = &names[last];
        let mut input = Input::open(files, path, false, true)?;
        input.flush()?;
        let lines = read(&mut input)?;
        let next_sequence = number + lines.count;
        if let Some((next, next_path)) = names.get(last + 1) {
            if *next < next_sequence {
                let what =
                    format!("it begins with line {next}, the file before ends at {next_sequence}");
                return Err(damage::error(next_path, 0, &what));
            }
            // Another program may have appended to this file: the next file's number is right.
            if *next == next_sequence {
                last += 1;
                continue;
            }
        }
        let created_at_ns = modified_at_ns(&input);
        let mut recovered =
            Recovered { records: next_sequence - names[0].0, ..Recovered::default() };
        let mut later = Vec::with_capacity(names.len() - last - 1);
        for (_, path) in &names[last + 1..] {
            let file = Input::open(files, path, false, false)?;
            later.push((path.clone(), file.len_bytes));
        }
        let torn_end = input.len_bytes;
        cut(&mut input, lines.end, torn_end, &later, &mut recovered)?;
        return recovery(files, &names[..=last], &lines, created_at_ns, recovered);
    }
}

fn recovery(
    files: &LogFiles,
    names: &[(u64, PathBuf)],
    lines: &LineCount,
    created_at_ns: u64,
    recovered: Recovered,
) -> Result<Recovery, Error> {
    let mut sealed = Vec::with_capacity(names.len());
    for ((_, path), (end_sequence, _)) in names.iter().zip(&names[1..]) {
        let input = Input::open(files, path, false, false)?;
        sealed.push(SealedSegment {
            path: path.clone(),
            bytes: input.len_bytes,
            end_sequence: *end_sequence,
            written_at_ns: modified_at_ns(&input),
        });
    }
    let (number, path) = names.last().expect("a log with a file");
    let active = ActiveSegment {
        path: path.clone(),
        number: *number,
        bytes: lines.end,
        block_bytes: 1,
        // A file does not record its beginning: the last write to the file before is the earliest
        // time.
        created_at_ns: sealed.last().map_or(created_at_ns, |before| before.written_at_ns),
        last_checksum: 0,
        after_cut: false,
    };
    Ok(Recovery {
        recovered,
        log_id: 0,
        sealed,
        active: Some(active),
        first_sequence: names[0].0,
        next_sequence: number + lines.count,
    })
}

/// Returns the time of the last write, in nanoseconds since 1970; 0 on a simulated disk without a
/// clock.
fn modified_at_ns(input: &Input) -> u64 {
    let engine = input.files.engine();
    let stat = engine.descriptor(input.file).and_then(|descriptor| fstat(descriptor).ok());
    let modified = stat.map(|stat| metadata::times(&stat).last_modification);
    modified.map_or(0, |at| at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64)
}
