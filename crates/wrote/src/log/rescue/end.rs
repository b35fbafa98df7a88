//! The end of a log: the position up to which its segments are intact.
//!
//! Closing a log cuts its last segment off after a batch that marks the end. But a record may
//! contain the bytes of such a batch, and recovery may have cut the file off right after them. So
//! the closing batch is believed only if an earlier batch ends right before it and no earlier batch
//! extends over it. The first batch of a segment states the maximum length of the others, which
//! limits how far back an earlier batch can start.

use super::scan;
use crate::Error;
use crate::log::batch::{self, BatchHeader};
use crate::log::chain::{self, SegmentHead};
use crate::log::input::{Input, LogFiles};
use crate::log::segment::{self, NOT_BEGUN, damaged};
use crate::log::walk::{self, Walk, WalkStep};

/// The end of the intact part of a log.
#[derive(Debug)]
pub(in crate::log) struct LogEnd {
    /// The index of the segment in which the log ends.
    pub last: usize,
    /// The walk that ended there. If the segments were flushed, its file is also open for writing.
    pub walk: Walk,
}

/// Finds the end of the intact part of a log; `None` if no part of it was ever intact. Reads only
/// the headers of segments that are known to be durable; in a closed log, all segments are. With
/// `flush`, flushes the other segments before reading them, so that the end is on the disk.
pub(in crate::log) fn end(
    files: &LogFiles,
    segments: &mut [SegmentHead],
    flush: bool,
) -> Result<Option<LogEnd>, Error> {
    if segments.iter().all(|segment| segment.header.is_none()) {
        return without_beginning(files, segments);
    }
    if flush && let Some(last) = segments.last_mut() {
        flush_segment(files, last)?;
    }
    if let Some(walk) = closed(files, segments, flush)? {
        check_order(files, segments)?;
        return Ok(Some(LogEnd { last: segments.len() - 1, walk }));
    }
    if flush {
        flush_doubtful(files, segments)?;
    }
    let start = first_doubtful(segments);
    check_order(files, &segments[..=start])?;
    if segments[start].header.is_none() {
        return without_beginning(files, segments);
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

/// Returns the index of the first segment that may not be durable. All earlier segments were
/// durable when some batch was written.
fn first_doubtful(segments: &[SegmentHead]) -> usize {
    let durable = |segment: &SegmentHead| segment.first_batch.map(|batch| batch.durable_sequence);
    let durable_sequence = segments.iter().filter_map(durable).max().unwrap_or(0);
    let begins_durable = |segment: &SegmentHead| {
        segment.header.is_some_and(|header| header.first_sequence <= durable_sequence)
    };
    segments.iter().rposition(begins_durable).unwrap_or(0)
}

/// Flushes the segments that may not be durable, and reads their starts again, because after a
/// failed flush the page cache shows data that the disk lacks. The last segment has been flushed
/// already.
fn flush_doubtful(files: &LogFiles, segments: &mut [SegmentHead]) -> Result<(), Error> {
    let mut flushed = segments.len() - 1;
    // If a segment turns out to have lost its beginning, more segments are in doubt.
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

/// Returns a walk that has ended after the batch that closed the log; `None` if the end of the last
/// segment does not prove that the log was closed. A short segment is read from its start.
pub(in crate::log) fn closed(
    files: &LogFiles,
    segments: &[SegmentHead],
    write: bool,
) -> Result<Option<Walk>, Error> {
    let Some(last) = segments.last() else { return Ok(None) };
    let Some((header, longest_bytes)) = last.header.zip(last.longest_bytes()) else {
        return Ok(None);
    };
    let block_bytes = u64::from(header.block_bytes);
    let Some(place) = last.file_bytes.checked_sub(batch::HEADER_BYTES as u64) else {
        return Ok(None);
    };
    let reach_bytes = u64::from(longest_bytes).next_multiple_of(block_bytes);
    if !place.is_multiple_of(block_bytes) {
        return Ok(None);
    }
    let input = Input::open(files, &last.path, true, write)?;
    let mut walk = Walk::new(input, &header);
    let Some((closing, checksum)) = walk.batch_at(place)? else { return Ok(None) };
    let is_mark = closing.closed
        && (closing.bytes as usize, closing.count) == (batch::HEADER_BYTES, 0)
        && closing.durable_sequence == closing.first_sequence
        && closing.first_sequence >= header.first_sequence;
    if is_mark && place <= 2 * reach_bytes {
        drop(walk);
        let walk = walk_to_end(files, last, write)?;
        return Ok(Some(walk).filter(|walk| walk.is_closed() && walk.end == last.file_bytes));
    }
    if !is_mark || !follows_a_batch(&mut walk, place, place - reach_bytes, &closing)? {
        return Ok(None);
    }
    walk.input.pause()?;
    walk.end_behind(place, closing, checksum);
    Ok(Some(walk))
}

/// Returns whether one of the batches that start at or after `from` ends right before `place` with
/// the record before `next`, and none of these batches extends over `place`.
fn follows_a_batch(
    walk: &mut Walk,
    place: u64,
    from: u64,
    next: &BatchHeader,
) -> Result<bool, Error> {
    let block_bytes = walk.block_bytes;
    let mut is_found = false;
    walk.input.expect_up_to(place);
    for begin in (from..place).step_by(block_bytes as usize) {
        let Some((batch, _)) = walk.batch_at(begin)? else { continue };
        let end = begin + u64::from(batch.bytes);
        if end > place {
            return Ok(false);
        }
        let is_before = end.next_multiple_of(block_bytes) == place;
        is_found |= is_before && walk::end_sequence(&batch) == next.first_sequence;
    }
    Ok(is_found)
}

/// Fails if a segment before the last one is missing, does not start as one, or has lost records at
/// its end, because all records of these segments were durable. Reads a segment to its end only if
/// the next header contradicts what is known about it.
fn check_order(files: &LogFiles, segments: &[SegmentHead]) -> Result<(), Error> {
    for (earlier, later) in segments.iter().zip(segments.iter().skip(1)) {
        if !later.continues(earlier.number) {
            return Err(segment::missing(&later.path, earlier.number + 1));
        }
        let Some(header) = earlier.header else {
            return Err(segment::not_begun(&earlier.path));
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
            return Err(segment::lost(&earlier.path, walk.place, walk.sequence));
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
        return Err(damaged(&next.path, 0, &chain::overlap(first, end)));
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
        // Everything after this position may be cut off, so read it twice.
        if walk.has_come()? {
            continue;
        }
        if walk.finds_last_again()? {
            return Ok(walk);
        }
        walk.restart(header.first_sequence);
    }
}

/// Examines a log whose first segment does not start as one. Returns `None` if the log never had a
/// durable record, and fails if its start was lost.
fn without_beginning(files: &LogFiles, segments: &[SegmentHead]) -> Result<Option<LogEnd>, Error> {
    // All of the log may be put aside, so read it twice.
    if has_lost_beginning(files, segments)? || has_lost_beginning(files, segments)? {
        let what = format!("{NOT_BEGUN}, but records in it were durable");
        return Err(damaged(&segments[0].path, 0, &what));
    }
    Ok(None)
}

/// Returns whether a log whose first segment does not start as one ever had durable records. If
/// earlier segments have been removed, the start of the first remaining one was durable.
pub(in crate::log) fn has_lost_beginning(
    files: &LogFiles,
    segments: &[SegmentHead],
) -> Result<bool, Error> {
    if segments.first().is_some_and(|first| first.number > 1) {
        return Ok(true);
    }
    for (index, segment) in segments.iter().enumerate() {
        let found = scan::of_file(files, &segment.path, chain::identity(segments, index))?;
        if found.durable_sequence(0) > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}
