//! Finds the end of a log that was closed, without reading the records before it.
//!
//! Closing cuts the last segment after a batch that marks the end. A record may contain the bytes
//! of such a batch, and recovery may have cut the file right after them. So the batch counts only
//! if no earlier batch extends over it, and one ends right before it. The first batch of a segment
//! states the maximum length of the others, which limits how far back one may start.

use super::super::super::batch::{self, BatchHeader};
use super::super::super::chain::SegmentHead;
use super::super::super::input::{Input, LogFiles};
use super::super::super::walk::{self, Walk};
use crate::Error;

/// Returns a walk that has ended after the batch that closed the log; `None` if its end does not
/// prove it. A short segment is read from its start.
pub(super) fn end(
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
        let walk = super::walk_to_end(files, last, write)?;
        return Ok(Some(walk).filter(|walk| walk.is_closed() && walk.end == last.file_bytes));
    }
    if !is_mark || !follows_a_batch(&mut walk, place, place - reach_bytes, &closing)? {
        return Ok(None);
    }
    walk.input.pause()?;
    walk.end_behind(place, closing, checksum);
    Ok(Some(walk))
}

/// Returns whether one of the batches that start at `from` or later ends right before `place`, with
/// the record before `next`, and none extends over it.
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
