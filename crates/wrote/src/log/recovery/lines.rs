//! Recovery of a log of lines: the log ends after the last whole line.

use super::super::input::{Input, LogFiles};
use super::super::lines::{check_sealed, read};
use super::super::retention::RetainedSegment;
use super::{ActiveSegment, Recovered, Recovery, cut_off};
use crate::{Error, metadata};
use rustix::fs::fstat;
use std::path::PathBuf;

pub(super) fn recover(files: &LogFiles, names: &[(u64, PathBuf)]) -> Result<Recovery, Error> {
    let Some(((number, path), earlier)) = names.split_last() else {
        return Ok(Recovery::nothing(0, Recovered::default()));
    };
    let sealed = sealed(files, names)?;
    let mut input = Input::open(files, path, false, true)?;
    input.flush()?;
    let lines = read(&mut input)?;
    let next_sequence = number + lines.count;
    let first_sequence = earlier.first().map_or(*number, |(first, _)| *first);
    let active = ActiveSegment {
        path: path.clone(),
        number: *number,
        bytes: lines.end,
        block_bytes: 1,
        // A file does not record its beginning: the last write to the file before is the earliest
        // time.
        created_at_ns: sealed
            .last()
            .map_or_else(|| modified_at_ns(&input), |before| before.written_at_ns),
        last_checksum: 0,
        after_cut: false,
        longest_bytes: 0,
    };
    let records = next_sequence - first_sequence;
    let mut recovered = Recovered { records, ..Recovered::default() };
    let torn_end = input.len_bytes;
    cut_off(&mut input, lines.end, torn_end, &[], &mut recovered)?;
    let active = Some(active);
    Ok(Recovery { recovered, log_id: 0, sealed, active, first_sequence, next_sequence })
}

/// Examines the files before the last, and counts the lines of the last of them.
fn sealed(files: &LogFiles, names: &[(u64, PathBuf)]) -> Result<Vec<RetainedSegment>, Error> {
    let mut sealed = Vec::with_capacity(names.len());
    for (index, pair) in names.windows(2).enumerate() {
        let [(number, path), (next, _)] = pair else { unreachable!("windows of two") };
        let mut input = Input::open(files, path, false, false)?;
        check_sealed(&mut input, *number, *next, index + 2 == names.len())?;
        sealed.push(RetainedSegment {
            path: path.clone(),
            bytes: input.len_bytes,
            end_sequence: *next,
            written_at_ns: modified_at_ns(&input),
            is_written: false,
        });
    }
    Ok(sealed)
}

/// Returns the time of the last write, in nanoseconds since 1970; 0 on a simulated disk without a
/// clock.
fn modified_at_ns(input: &Input) -> u64 {
    let engine = input.files.engine();
    let stat = engine.descriptor(input.file).and_then(|descriptor| fstat(descriptor).ok());
    let modified = stat.map(|stat| metadata::times(&stat).last_modification);
    modified.map_or(0, |at| at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64)
}
