//! The end of a framed log: the position up to which its segments are intact.

mod closed;

use super::super::chain::{self, SegmentHead};
use super::super::damage;
use super::super::input::{Input, LogFiles};
use super::super::segment::seed;
use super::super::walk::{self, Identity, Walk, WalkStep};
use super::rest;
use crate::Error;

/// The end of the intact part of a log.
#[derive(Debug)]
pub(in crate::log) struct LogEnd {
    /// The index of its segment.
    pub last: usize,
    /// The walk that ended there. If the segments were flushed, its file is also open for writing.
    pub walk: Walk,
}

/// Finds the end of the intact log; `None` if no part of it was ever intact. Of segments known to
/// be durable it reads only the headers, which covers all of a closed log. With `flush` it flushes
/// the other segments before reading them, so that the end is on disk.
pub(in crate::log) fn end(
    files: &LogFiles,
    segments: &mut [SegmentHead],
    flush: bool,
) -> Result<Option<LogEnd>, Error> {
    let Some(known) = segments.iter().find_map(|segment| segment.header) else {
        return without_beginning(files, segments, Identity::Lost);
    };
    if flush && let Some(last) = segments.last_mut() {
        flush_segment(files, last)?;
    }
    if let Some(walk) = closed::end(files, segments, flush)? {
        check_order(files, segments)?;
        return Ok(Some(LogEnd { last: segments.len() - 1, walk }));
    }
    if flush {
        flush_doubtful(files, segments)?;
    }
    let start = first_doubtful(segments);
    check_order(files, &segments[..=start])?;
    if segments[start].header.is_none() {
        let block_bytes = u64::from(known.block_bytes);
        let seed = seed(known.log_id, segments[start].number);
        return without_beginning(files, segments, Identity::Known { seed, block_bytes });
    }
    let mut last = start;
    loop {
        let walk = walk_to_end(files, &segments[last], flush)?;
        match segments.get(last + 1) {
            Some(next) if follows(next, segments[last].number, &walk)? => last += 1,
            _ => return Ok(Some(LogEnd { last, walk })),
        }
    }
}

/// Returns the index of the first segment that may not be durable: all before it were durable
/// before some batch was written.
fn first_doubtful(segments: &[SegmentHead]) -> usize {
    let durable = |segment: &SegmentHead| segment.first_batch.map(|batch| batch.durable_sequence);
    let durable_sequence = segments.iter().filter_map(durable).max().unwrap_or(0);
    let begins_durable = |segment: &SegmentHead| {
        segment.header.is_some_and(|header| header.first_sequence <= durable_sequence)
    };
    segments.iter().rposition(begins_durable).unwrap_or(0)
}

/// Flushes the segments that may not be durable, and reads their starts again: after a failed flush
/// the page cache shows data that the disk lacks. The last is flushed already.
fn flush_doubtful(files: &LogFiles, segments: &mut [SegmentHead]) -> Result<(), Error> {
    let mut flushed = segments.len() - 1;
    // A segment without its lost beginning may leave more of them in doubt.
    while let first = first_doubtful(segments)
        && first < flushed
    {
        segments[first..flushed].iter_mut().try_for_each(|it| flush_segment(files, it))?;
        flushed = first;
    }
    Ok(())
}

fn flush_segment(files: &LogFiles, segment: &mut SegmentHead) -> Result<(), Error> {
    if segment.header.is_some() {
        Input::open(files, &segment.path, true, false)?.flush()?;
        let on_disk = chain::read_head(files, segment.number, &segment.path)?;
        (segment.header, segment.first_batch) = (on_disk.header, on_disk.first_batch);
    }
    Ok(())
}

/// Finds the end of a log that was closed, where the end of its last segment proves it.
pub(in crate::log) fn closed(
    files: &LogFiles,
    segments: &[SegmentHead],
) -> Result<Option<Walk>, Error> {
    closed::end(files, segments, false)
}

/// Checks that no segment before the last is missing: their records were all durable. Reads a
/// segment to its end only if the next header contradicts what is known of it.
fn check_order(files: &LogFiles, segments: &[SegmentHead]) -> Result<(), Error> {
    for (earlier, later) in segments.iter().zip(segments.iter().skip(1)) {
        if !later.continues(earlier.number) {
            let what = format!("segment {} of the log is not there", earlier.number + 1);
            return Err(damage::error(&later.path, 0, &what));
        }
        let Some(header) = earlier.header else {
            return Err(damage::error(&earlier.path, 0, "this is not how a segment begins"));
        };
        let is_doubtful = later.header.is_some_and(|next| {
            earlier.file_bytes < next.previous_bytes
                || match earlier.first_batch {
                    Some(batch) => walk::end_sequence(&batch) > next.first_sequence,
                    None => header.first_sequence != next.first_sequence,
                }
        });
        if !is_doubtful {
            continue;
        }
        let walk = walk_to_end(files, earlier, false)?;
        if !follows(later, earlier.number, &walk)? {
            let what = format!("record {} can't be read, and was durable once", walk.sequence);
            return Err(damage::error(&earlier.path, walk.place, &what));
        }
    }
    Ok(())
}

/// Returns whether the log continues in `next` after segment `number`, whose walk has ended.
fn follows(next: &SegmentHead, number: u64, walk: &Walk) -> Result<bool, Error> {
    let Some(header) = next.header.filter(|_| next.continues(number)) else {
        return Ok(false);
    };
    let (first, end) = (header.first_sequence, walk.sequence);
    if first < end {
        return Err(damage::error(&next.path, 0, &chain::overlap(first, end)));
    }
    Ok(first == end)
}

fn walk_to_end(files: &LogFiles, segment: &SegmentHead, write: bool) -> Result<Walk, Error> {
    let input = Input::open(files, &segment.path, true, write)?;
    let header = segment.header.expect("only segments with a header are read");
    let mut walk = Walk::new(input, &header);
    walk.limit = segment.limit;
    loop {
        while !matches!(walk.next()?, WalkStep::End) {}
        // Everything after this place may be cut off, so read it twice.
        if walk.has_come()? {
            continue;
        }
        if walk.finds_last_again()? {
            return Ok(walk);
        }
        walk.restart(header.first_sequence);
    }
}

/// Examines a log whose first segment does not start as one: either it never had a complete record,
/// or its start was lost.
fn without_beginning(
    files: &LogFiles,
    segments: &[SegmentHead],
    first: Identity,
) -> Result<Option<LogEnd>, Error> {
    for (index, segment) in segments.iter().enumerate() {
        let identity = match segment.header {
            Some(header) => Identity::of(&header),
            None if index == 0 => first,
            None => Identity::Lost,
        };
        let rest = rest::scan_file(files, &segment.path, 0, identity)?;
        if rest.durable_sequence > 0 || segments[0].number != 1 {
            let what = "this is not how a segment begins, and records in it were durable once";
            return Err(damage::error(&segments[0].path, 0, what));
        }
    }
    Ok(None)
}
