//! Finds the first record of a framed log written at a given time or later.

use super::super::chain::{self, SegmentHead};
use super::super::format::Format;
use super::super::input::{Input, LogFiles};
use super::super::names;
use super::super::seek;
use super::super::segment::SegmentHeader;
use super::super::walk::{self, Walk, WalkStep};
use crate::Error;
use std::path::{Path, PathBuf};

/// Some batch of a segment.
struct Found {
    /// Its records.
    begin: u64,
    end: u64,
    written_at_ns: u64,
}

/// Returns the sequence of the first record whose batch was written at `at_ns` or later, in
/// nanoseconds since 1970; the next sequence if there is none.
///
/// A binary search over the segments, then over the batches of one. If the clock stepped back, it
/// finds one of the batches written at `at_ns` or later that follow an earlier one.
pub(super) fn find(files: &LogFiles, folder: &Path, at_ns: u64) -> Result<u64, Error> {
    let live = chain::live(files, names::all(files, folder, Format::Framed)?)?;
    let (mut low, mut high) = (0, live.names.len());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let head = head_of(files, &live.names[middle])?;
        let is_before = head.header.is_some_and(|header| header.created_at_ns < at_ns);
        if is_before { low = middle } else { high = middle }
    }
    let Some(name) = live.names.get(low) else { return Ok(0) };
    let Some(header) = head_of(files, name)?.header else { return Ok(0) };
    let input = Input::open(files, &name.1, true, false)?;
    let mut walk = Walk::new(input, &header);
    walk.limit = live.limit_of(name.0);
    let next = match live.names.get(low + 1) {
        Some(name) => head_of(files, name)?.header.map(|next| next.first_sequence),
        None => None,
    };
    let mut end = match next {
        Some(next) => next,
        // No batch holds that record: the walk ends after the last one.
        None => batch_of(&mut walk, &header, u64::MAX)?.map_or(walk.sequence, |last| last.end),
    };
    let mut begin = header.first_sequence;
    while begin < end {
        let middle = begin + (end - begin) / 2;
        // After the readable end.
        let Some(found) = batch_of(&mut walk, &header, middle)? else {
            end = walk.sequence.clamp(begin, middle);
            continue;
        };
        if found.written_at_ns < at_ns { begin = found.end } else { end = found.begin }
    }
    Ok(begin)
}

fn head_of(files: &LogFiles, name: &(u64, PathBuf)) -> Result<SegmentHead, Error> {
    let mut heads = chain::read_headers(files, std::slice::from_ref(name))?;
    Ok(heads.pop().expect("one name was given"))
}

/// Finds the batch that holds a record; `None` if the segment ends before it. For [`u64::MAX`] that
/// is its end.
fn batch_of(
    walk: &mut Walk,
    header: &SegmentHeader,
    sequence: u64,
) -> Result<Option<Found>, Error> {
    walk.restart(header.first_sequence);
    walk.wanted = sequence;
    // A batch in flight may be there without its predecessor. It affects only its own records,
    // which no reader finds then.
    seek::seek(walk, sequence, || Ok(u64::MAX))?;
    loop {
        match walk.next()? {
            WalkStep::End => return Ok(None),
            WalkStep::Frame { .. } => {}
            WalkStep::Batch => {
                let (batch, _) = walk.last.expect("a batch has begun");
                let (begin, end) = (batch.first_sequence, walk::end_sequence(&batch));
                if (begin..end).contains(&sequence) {
                    // A repair does not keep the time.
                    let written_at_ns = match batch.is_by_repair() {
                        true => header.created_at_ns,
                        false => batch.written_at_ns,
                    };
                    return Ok(Some(Found { begin, end, written_at_ns }));
                }
                walk.skip_batch(sequence)?;
            }
        }
    }
}
