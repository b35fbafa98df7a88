//! Searches for a record in a segment without reading all records before it.
//!
//! The search picks an offset in the file and takes the first batch header after it. A record may
//! contain the bytes of a batch, so a header is believed only if no earlier batch extends over it.
//! The first batch of a segment states the maximum length of the others, which limits how far back
//! the search must check. Without that statement, the caller reads from the start of the segment.
//!
//! A batch is part of the log only if all earlier batches exist: a batch in flight during a power
//! loss may be on the disk without the preceding batches. So the search ends at a batch before
//! which everything was durable, according to a later batch or to the caller.

use super::batch::BatchHeader;
use super::segment;
use super::walk::{self, Walk};
use crate::Error;

/// The offset of a segment's first batch.
const BEGIN: u64 = segment::HEADER_BYTES as u64;
/// The distance, in lengths of the longest batch, within which a reader reads on instead of
/// searching.
const NEAR: u64 = 3;
/// The maximum number of probes in one search. At least every third probe halves the remaining
/// range.
const LOOKS_MAX: u32 = 64;

/// The offset of a batch, and the sequence of its first record.
#[derive(Clone, Copy, Debug)]
struct Known {
    offset: u64,
    sequence: u64,
}

#[derive(Debug)]
struct Search {
    /// The maximum length of a batch in bytes, rounded up to whole blocks.
    reach_bytes: u64,
    /// The segment's first batch, and its end. It is the only batch that does not begin at a block.
    first: BatchHeader,
    first_end: u64,
    /// The sequence before which every record was durable.
    durable_sequence: u64,
}

/// Moves a walk from the start of its segment to a batch near record `sequence`, but not after it.
/// If nothing proves a better position, the walk does not move. Returns the sequence before which
/// all records were durable, according to `durable` and the batches seen; `None` if no search is
/// possible or necessary: the segment is too short, its first batch does not state the maximum
/// length, or the walk is already at the record.
///
/// `durable` returns the sequence before which all records were durable, as far as the caller
/// knows. It is called only if a search is made.
pub(super) fn seek(
    walk: &mut Walk,
    sequence: u64,
    durable: impl FnOnce() -> Result<u64, Error>,
) -> Result<Option<u64>, Error> {
    let Some(mut search) = Search::new(walk)?.filter(|_| sequence > walk.sequence) else {
        return Ok(None);
    };
    let durable_sequence = durable()?;
    search.durable_sequence = search.durable_sequence.max(durable_sequence);
    let is_known = sequence < durable_sequence && durable_sequence < u64::MAX;
    let end = Known { offset: walk.input.len_bytes, sequence: durable_sequence };
    let mut found = search.by_sequence(walk, sequence, is_known.then_some(end))?;
    if found.sequence > search.durable_sequence {
        found = search.by_sequence(walk, search.durable_sequence, Some(found))?;
    }
    walk.jump_to(found.offset, found.sequence, None);
    Ok(Some(search.durable_sequence))
}

/// Moves a walk from the start of its segment to a batch near the first one written at or after
/// `at_ns`, but not after it, if the segment allows a search.
pub(super) fn seek_time(walk: &mut Walk, at_ns: u64) -> Result<(), Error> {
    let Some(mut search) = Search::new(walk)? else { return Ok(()) };
    let found = search.run(walk, None, |batch| batch.written_at_ns < at_ns, |_, _| None)?;
    walk.jump_to(found.offset, found.sequence, None);
    Ok(())
}

impl Search {
    fn new(walk: &mut Walk) -> Result<Option<Search>, Error> {
        let Some((first, _)) = walk.batch_at(BEGIN)? else { return Ok(None) };
        let Some(longest_bytes) = walk::longest_bytes(&first) else { return Ok(None) };
        let reach_bytes = u64::from(longest_bytes).next_multiple_of(walk.block_bytes);
        let (first_end, durable_sequence) =
            (BEGIN + u64::from(first.bytes), first.durable_sequence);
        let is_long = walk.input.len_bytes > NEAR * reach_bytes;
        let search = Search { reach_bytes, first, first_end, durable_sequence };
        Ok(Some(search).filter(|_| first.first_sequence == walk.sequence && is_long))
    }

    /// Finds a batch near this record, but not after it. `high` is a known position after the
    /// record, if any.
    fn by_sequence(
        &mut self,
        walk: &mut Walk,
        sequence: u64,
        high: Option<Known>,
    ) -> Result<Known, Error> {
        // The guess is the offset of the record if all records had the same length.
        let guess = |low: Known, high: Known| {
            let bytes = high.offset.saturating_sub(low.offset);
            let records = high.sequence.saturating_sub(low.sequence);
            let ahead = u128::from(sequence.saturating_sub(low.sequence)) * u128::from(bytes);
            Some(low.offset + u64::try_from(ahead.checked_div(u128::from(records))?).ok()?)
        };
        self.run(walk, high, |batch| batch.first_sequence <= sequence, guess)
    }

    /// Finds a batch near the last one for which `is_before` holds, but not after it. `guess`
    /// returns an offset between two positions, which is tried instead of the middle.
    fn run(
        &mut self,
        walk: &mut Walk,
        mut high: Option<Known>,
        is_before: impl Fn(&BatchHeader) -> bool,
        guess: impl Fn(Known, Known) -> Option<u64>,
    ) -> Result<Known, Error> {
        let mut low = Known { offset: BEGIN, sequence: self.first.first_sequence };
        let mut end = high.map_or(walk.input.len_bytes, |high| high.offset);
        for look in 0..LOOKS_MAX {
            if end.saturating_sub(low.offset) <= NEAR * self.reach_bytes {
                break;
            }
            let guessed = high.filter(|_| look % 3 != 2).and_then(|high| guess(low, high));
            // A probe finds the batch after its offset.
            let place =
                guessed.map_or(low.offset.midpoint(end), |at| at.saturating_sub(self.reach_bytes));
            let margin = ((end - low.offset) / 16).min(self.reach_bytes);
            let at = place.clamp(low.offset + margin, end - margin);
            let at = at.next_multiple_of(walk.block_bytes);
            let found = self.look(walk, at)?;
            let Some((offset, batch)) = found else {
                (high, end) = (None, at);
                continue;
            };
            let next = Known { offset, sequence: batch.first_sequence };
            // Damage may have put an earlier batch at this offset.
            if next.sequence < low.sequence {
                break;
            }
            self.durable_sequence = self.durable_sequence.max(batch.durable_sequence);
            if is_before(&batch) {
                low = next;
            } else {
                (high, end) = (Some(next), at);
            }
        }
        walk.input.pause()?;
        Ok(low)
    }

    /// Finds the first batch at or after `at` over which no other batch extends; `None` if there is
    /// none within the maximum length of a batch.
    fn look(&self, walk: &mut Walk, at: u64) -> Result<Option<(u64, BatchHeader)>, Error> {
        let (from, to) = (at.saturating_sub(self.reach_bytes), at + self.reach_bytes);
        // Up to this offset, the bytes may belong to a record.
        let mut covered = if from == 0 { self.first_end } else { 0 };
        walk.input.pause()?;
        walk.input.expect_up_to(to);
        for offset in (from..=to).step_by(walk.block_bytes as usize) {
            let found = walk.batch_at(offset)?;
            // A longer batch can only be the content of a record.
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
    fn a_search_among_equal_batches_reads_few_of_them_however_many_there_are() {
        let mut built = SampleLog::default().segment();
        for _ in 0..1000 {
            let durable_sequence = built.next_sequence;
            let header =
                BatchHeader { durable_sequence, longest_bytes: 1024, ..BatchHeader::default() };
            built = built.batch_of(header, &[&[7_u8; 200][..]; 3]);
        }
        let sim = disk(1, &built.files(folder()));
        for durable_sequence in [0, built.next_sequence, u64::MAX] {
            let mut walk = walk(&sim);
            seek(&mut walk, u64::MAX, || Ok(durable_sequence)).unwrap();
            assert!(walk.sequence < built.next_sequence, "{}", walk.sequence);
        }
        for sequence in (1..built.next_sequence).step_by(7) {
            let mut walk = walk(&sim);
            let before = sim.operations();
            seek(&mut walk, sequence, || Ok(built.next_sequence)).unwrap();
            assert!(sim.operations() - before < 40, "record {sequence}");
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
