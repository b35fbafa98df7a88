//! Searches for a record in the middle of a segment, without reading the records before it.
//!
//! The search picks an offset in the file and takes the first batch header after it. A record may
//! contain the bytes of a batch, so a header counts only if no earlier batch extends over it. The
//! first batch of a segment states the maximum length of the others, which limits how far back the
//! search checks. Without that statement the caller reads from the segment's start.
//!
//! A batch counts only with all before it: one in flight during a power loss may be there without
//! its predecessors. So the search ends at a batch before which everything was durable, according
//! to a later batch or the caller.

use super::batch::BatchHeader;
use super::segment;
use super::walk::{self, Walk};
use crate::Error;

/// The place of a segment's first batch.
const BEGIN: u64 = segment::HEADER_BYTES as u64;
/// Within this multiple of the longest batch, a reader reads on instead of searching.
const NEAR: u64 = 3;
/// The most probes of one search. Each halves the rest, or does better.
const LOOKS_MAX: u32 = 64;
/// The most batches that a search skips by their headers between two probes.
const STEPS_MAX: u32 = 16;

/// The place of a batch, and the sequence of its first record.
#[derive(Clone, Copy, Debug)]
struct Known {
    offset: u64,
    sequence: u64,
}

#[derive(Debug)]
struct Search {
    /// The most bytes of a batch, in whole blocks.
    reach_bytes: u64,
    /// The end of the segment's first batch, the only one that begins at no block.
    first_end: u64,
    /// The batches that were found, in order. The first is the segment's own first.
    known: Vec<Known>,
    /// Every record before this sequence was durable once.
    durable_sequence: u64,
    /// About the end of the segment, for the first guess.
    end: Option<Known>,
}

/// Moves a walk from its segment's start to a batch near record `sequence`, or before it. The walk
/// stays where it is if nothing proves a better position. Returns the sequence before which all
/// records were durable, by `durable` and by the batches seen; `None` if the segment is too short
/// for a search.
///
/// `durable` returns the sequence before which all records were durable, as far as the caller
/// knows. It is called only if the segment is long enough for a search.
pub(super) fn seek(
    walk: &mut Walk,
    sequence: u64,
    durable: impl FnOnce() -> Result<u64, Error>,
) -> Result<Option<u64>, Error> {
    let Some((first, _)) = walk.batch_at(BEGIN)? else { return Ok(None) };
    let Some(longest_bytes) = walk::longest_bytes(&first) else { return Ok(None) };
    let reach_bytes = u64::from(longest_bytes).next_multiple_of(walk.block_bytes);
    let is_first = first.first_sequence == walk.sequence && sequence > walk.sequence;
    if !is_first || walk.input.len_bytes <= NEAR * reach_bytes {
        return Ok(None);
    }
    let (end, durable_sequence) = (walk.input.len_bytes, durable()?);
    let is_known = sequence < durable_sequence && durable_sequence < u64::MAX;
    let mut search = Search {
        reach_bytes,
        first_end: BEGIN + u64::from(first.bytes),
        known: vec![Known { offset: BEGIN, sequence: first.first_sequence }],
        durable_sequence: durable_sequence.max(first.durable_sequence),
        end: is_known.then_some(Known { offset: end, sequence: durable_sequence }),
    };
    search.run(walk, sequence)?;
    if search.best(sequence).sequence > search.durable_sequence {
        search.run(walk, search.durable_sequence)?;
    }
    walk.input.pause()?;
    let Known { offset, sequence } = search.best(sequence.min(search.durable_sequence));
    walk.jump_to(offset, sequence);
    Ok(Some(search.durable_sequence))
}

impl Search {
    /// Returns the last known batch that begins with this record or an earlier one.
    fn best(&self, sequence: u64) -> Known {
        let behind = self.known.partition_point(|known| known.sequence <= sequence);
        self.known[behind.saturating_sub(1)]
    }

    /// Searches until a known batch is near the record.
    fn run(&mut self, walk: &mut Walk, sequence: u64) -> Result<(), Error> {
        let mut end = walk.input.len_bytes;
        for look in 0..LOOKS_MAX {
            let low = self.best(sequence);
            let behind = self.known.partition_point(|known| known.sequence <= sequence);
            let high = self.known.get(behind).copied();
            end = end.min(high.map_or(end, |high| high.offset));
            let is_near = end.saturating_sub(low.offset) <= NEAR * self.reach_bytes;
            let is_probably_near = is_near || self.is_probably_near(low, high, sequence);
            if is_probably_near && self.follow(walk, low, sequence)? || is_near {
                return Ok(());
            }
            let at = self.guess(look, low, high, end, sequence).next_multiple_of(walk.block_bytes);
            match self.look(walk, at)? {
                Some((offset, batch)) if !self.insert(offset, &batch) => return Ok(()),
                Some((_, batch)) if batch.first_sequence <= sequence => {}
                // The record is before this probe.
                _ => end = at,
            }
        }
        Ok(())
    }

    /// Returns the offset of the next probe: where the record would be if all were equally long, or
    /// in the middle.
    fn guess(&self, look: u32, low: Known, high: Option<Known>, end: u64, sequence: u64) -> u64 {
        let middle = low.offset + (end - low.offset) / 2;
        let Some(ahead) = self.estimate(low, high, sequence).filter(|_| look % 3 != 2) else {
            return middle;
        };
        // The look finds the batch after its place.
        let guess = low.offset.saturating_add(ahead).saturating_sub(self.reach_bytes);
        let margin = ((end - low.offset) / 16).min(self.reach_bytes);
        guess.clamp(low.offset + margin, end - margin)
    }

    /// Returns how far after `low` the record would be if all were equally long.
    fn estimate(&self, low: Known, high: Option<Known>, sequence: u64) -> Option<u64> {
        let (from, to) = match high {
            Some(high) => (low, high),
            None if self.known.len() == 1 => (low, self.end?),
            None => (self.known[0], low),
        };
        let (bytes, records) = (to.offset - from.offset, to.sequence - from.sequence);
        let ahead = u128::from(sequence - low.sequence) * u128::from(bytes);
        let ahead = ahead.checked_div(u128::from(records))?;
        Some(u64::try_from(ahead).unwrap_or(u64::MAX))
    }

    fn is_probably_near(&self, low: Known, high: Option<Known>, sequence: u64) -> bool {
        self.estimate(low, high, sequence).is_some_and(|ahead| ahead <= NEAR * self.reach_bytes)
    }

    /// Follows headers from batch `low` to the record's batch. Returns whether it got there: it
    /// gives up if a batch does not continue its predecessor, or is more than [`STEPS_MAX`] away.
    fn follow(&mut self, walk: &mut Walk, low: Known, sequence: u64) -> Result<bool, Error> {
        walk.input.pause()?;
        let mut next = low;
        for step in 0..STEPS_MAX {
            let found = walk.batch_at(next.offset)?;
            let continues = |batch: &BatchHeader| batch.first_sequence == next.sequence;
            let Some((batch, _)) = found.filter(|(batch, _)| continues(batch)) else {
                return Ok(false);
            };
            if !self.insert(next.offset, &batch) || batch.count == 0 {
                return Ok(false);
            }
            let end = next.offset + u64::from(batch.bytes);
            next.sequence = walk::end_sequence(&batch);
            if sequence < next.sequence {
                return Ok(true);
            }
            let steps_left = u64::from(STEPS_MAX - step);
            if (sequence - next.sequence) / u64::from(batch.count) > steps_left {
                return Ok(false);
            }
            next.offset = end.next_multiple_of(walk.block_bytes);
        }
        Ok(false)
    }

    /// Finds the first batch at `at` or later over which no other extends; `None` if none is as
    /// near as the next batch must be.
    fn look(&self, walk: &mut Walk, at: u64) -> Result<Option<(u64, BatchHeader)>, Error> {
        let (from, to) = (at.saturating_sub(self.reach_bytes), at + self.reach_bytes);
        // Up to there the bytes may belong to a record.
        let mut covered = if from == 0 { self.first_end } else { 0 };
        walk.input.pause()?;
        walk.input.expect_up_to(to);
        for offset in (from..=to).step_by(walk.block_bytes as usize) {
            let found = walk.batch_at(offset)?;
            // A longer one is in a record.
            let is_believable = |batch: &BatchHeader| u64::from(batch.bytes) <= self.reach_bytes;
            let Some((batch, _)) = found.filter(|(batch, _)| is_believable(batch)) else {
                continue;
            };
            if offset >= at && covered <= offset {
                return Ok(Some((offset, batch)));
            }
            covered = covered.max(offset + u64::from(batch.bytes));
        }
        Ok(None)
    }

    /// Notes a batch. Returns whether its place fits to its sequence.
    fn insert(&mut self, offset: u64, batch: &BatchHeader) -> bool {
        let sequence = batch.first_sequence;
        let place = self.known.partition_point(|known| known.offset < offset);
        let follows = place == 0 || self.known[place - 1].sequence <= sequence;
        let precedes = self.known.get(place).is_none_or(|known| sequence <= known.sequence);
        if follows && precedes {
            self.durable_sequence = self.durable_sequence.max(batch.durable_sequence);
            if self.known.get(place).is_none_or(|known| known.offset != offset) {
                self.known.insert(place, Known { offset, sequence });
            }
        }
        follows && precedes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sim;
    use crate::log::input::Input;
    use crate::log::segment::SegmentHeader;
    use crate::log::testing::*;
    use crate::log::walk::WalkStep;

    fn walk(sim: &Sim) -> Walk {
        let path = segment::path(folder(), 1);
        let mut input = Input::open(&files_of(sim), &path, true, false).unwrap();
        let header = SegmentHeader::decode(input.bytes(0, segment::HEADER_BYTES).unwrap());
        Walk::new(input, &header.unwrap())
    }

    #[test]
    fn a_search_ends_near_every_record_and_enters_no_record_that_holds_a_batch() {
        let built = long_segment().closed();
        let batches = &built.segments[0].batches;
        let sim = disk(1, &built.files(folder()));
        for sequence in (0..built.next_sequence).step_by(5) {
            let mut walk = walk(&sim);
            seek(&mut walk, sequence, || Ok(u64::MAX)).unwrap();
            assert!(batches.contains(&(walk.place as usize)), "record {sequence}");
            let begin = walk.place;
            while walk.sequence <= sequence {
                assert!(!matches!(walk.next().unwrap(), WalkStep::End), "record {sequence}");
            }
            let far = walk.place - begin;
            assert!(far <= (NEAR + 4) * u64::from(LONGEST_BYTES), "record {sequence}: {far} bytes");
        }
    }

    #[test]
    fn a_search_among_equal_batches_ends_at_the_batch_of_the_record() {
        let mut built = SampleLog::default().segment();
        let batch_records = 3;
        for _ in 0..200 {
            let durable_sequence = built.next_sequence;
            let header =
                BatchHeader { durable_sequence, longest_bytes: 1024, ..BatchHeader::default() };
            built = built.batch_of(header, &[&[7_u8; 200][..]; 3]);
        }
        let sim = disk(1, &built.files(folder()));
        for sequence in 1..built.next_sequence {
            let mut walk = walk(&sim);
            seek(&mut walk, sequence, || Ok(u64::MAX)).unwrap();
            assert_eq!(walk.sequence, sequence - sequence % batch_records, "record {sequence}");
        }
        for durable_sequence in [0, built.next_sequence, u64::MAX] {
            let mut walk = walk(&sim);
            seek(&mut walk, u64::MAX, || Ok(durable_sequence)).unwrap();
            assert!(walk.sequence < built.next_sequence, "{}", walk.sequence);
        }
    }

    #[test]
    fn a_search_ends_at_a_batch_before_which_all_was_durable() {
        let mut built = SampleLog::default().segment();
        for number in 0..300 {
            let durable_sequence = if number < 100 { 0 } else { 90 };
            let header =
                BatchHeader { durable_sequence, longest_bytes: 1024, ..BatchHeader::default() };
            built = built.batch_of(header, &[&[number as u8; 300]]);
        }
        let sim = disk(1, &built.files(folder()));
        for (sequence, known, most) in [(250, 0, 90), (250, 200, 200), (80, 0, 80), (20, 250, 20)] {
            let mut walk = walk(&sim);
            seek(&mut walk, sequence, || Ok(known)).unwrap();
            assert!(walk.sequence <= most, "{sequence}, {known}: at {}", walk.sequence);
            assert!(walk.sequence + 10 >= most, "{sequence}, {known}: at {}", walk.sequence);
        }
    }

    #[test]
    fn without_the_length_of_the_longest_batch_a_walk_stays_where_it_is() {
        let mut built = SampleLog::default().segment();
        for number in 0..100 {
            built = built.batch(number, &[&[number as u8; 300]]);
        }
        let mut walk = walk(&disk(1, &built.files(folder())));
        seek(&mut walk, 50, || unreachable!("nothing is searched")).unwrap();
        assert_eq!((walk.place, walk.sequence), (BEGIN, 0));
    }
}
