//! `LogIndex`: positions that a reader has passed, so that it can find a nearby record again.

use super::super::walk::{OpenBatch, Walk};
use std::collections::BTreeMap;

/// The least bytes between two places.
const SPACING_BYTES: u64 = 16 << 10;
/// Beyond this number every second position is forgotten, and the spacing doubles (W8).
const PLACES_MAX: usize = 1 << 16;
/// The maximum gap, in spacings, between positions that leave nothing unknown between them.
const GAP: u64 = 4;

/// A position at which a walk can continue.
#[derive(Clone, Copy, Debug)]
pub(super) struct IndexPlace {
    pub number: u64,
    pub offset: u64,
    /// The sequence of the next record.
    pub sequence: u64,
    pub open: Option<OpenBatch>,
}

/// Some positions in a framed log, by the sequence of their next record.
#[derive(Debug)]
pub(super) struct LogIndex {
    places: BTreeMap<u64, IndexPlace>,
    spacing_bytes: u64,
    /// Segment and offset of the last noted position.
    last: (u64, u64),
}

impl LogIndex {
    pub(super) fn new() -> LogIndex {
        LogIndex { places: BTreeMap::new(), spacing_bytes: SPACING_BYTES, last: (0, 0) }
    }

    /// Remembers the position of a walk in segment `number`, unless it is near the last one.
    #[inline]
    pub(super) fn note(&mut self, number: u64, walk: &Walk) {
        let (last_number, last_offset) = self.last;
        if number != last_number || walk.place.abs_diff(last_offset) >= self.spacing_bytes {
            self.insert(number, walk);
        }
    }

    fn insert(&mut self, number: u64, walk: &Walk) {
        let Walk { place: offset, sequence, open, .. } = *walk;
        self.last = (number, offset);
        self.places.insert(sequence, IndexPlace { number, offset, sequence, open });
        if self.places.len() > PLACES_MAX {
            let mut is_kept = false;
            self.places.retain(|_, _| {
                is_kept = !is_kept;
                is_kept
            });
            self.spacing_bytes *= 2;
        }
    }

    /// Returns the last position before the record, if it is in the record's batch, or if no nearer
    /// position is possible.
    pub(super) fn near(&self, sequence: u64) -> Option<IndexPlace> {
        let (_, &before) = self.places.range(..=sequence).next_back()?;
        let is_near = |next: &IndexPlace| {
            let bytes = next.offset.saturating_sub(before.offset);
            next.number == before.number && bytes <= GAP * self.spacing_bytes
        };
        let is_in_batch =
            before.open.is_some_and(|open| sequence - before.sequence < u64::from(open.left));
        let next = || self.places.range(sequence..).find(|(of, _)| **of > before.sequence);
        let is_known = is_in_batch || next().is_some_and(|(_, next)| is_near(next));
        is_known.then_some(before)
    }

    /// Forgets the positions in a removed or replaced segment.
    pub(super) fn forget(&mut self, number: u64) {
        self.places.retain(|_, place| place.number != number);
        self.last = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::format::Format;
    use super::super::super::input::Input;
    use super::super::super::segment::{self, SegmentHeader};
    use super::super::super::testing::{disk, files_of, folder, two_segments};
    use super::*;

    /// Returns a walk whose place and records the tests choose.
    fn walk() -> Walk {
        let sim = disk(1, &two_segments().files(folder()));
        let path = segment::path(folder(), Format::Framed, 1);
        let header = SegmentHeader { block_bytes: 512, ..SegmentHeader::default() };
        Walk::new(Input::open(&files_of(&sim), &path, true, false).unwrap(), &header)
    }

    #[test]
    fn places_are_bounded_and_those_that_stay_are_near_each_other() {
        let (mut walk, mut index) = (walk(), LogIndex::new());
        for number in 0..3 * PLACES_MAX as u64 {
            (walk.place, walk.sequence) = (number * SPACING_BYTES, number);
            index.note(1, &walk);
        }
        assert!(index.places.len() <= PLACES_MAX, "{}", index.places.len());
        assert!(index.spacing_bytes >= 2 * SPACING_BYTES);
        for sequence in (0..2 * PLACES_MAX as u64).step_by(999) {
            let place = index.near(sequence).unwrap();
            assert!(place.sequence <= sequence && sequence - place.sequence <= 16, "{place:?}");
        }
        index.forget(1);
        assert!(index.near(5).is_none());
    }

    #[test]
    fn a_place_is_near_a_record_of_its_batch_and_far_from_one_behind_bytes_that_were_not_read() {
        let (mut walk, mut index) = (walk(), LogIndex::new());
        (walk.place, walk.sequence) = (0, 10);
        walk.open = Some(OpenBatch { end: 1 << 30, left: 5, written_at_ns: 0 });
        index.note(1, &walk);
        (walk.place, walk.sequence, walk.open) = (1 << 29, 100, None);
        index.note(1, &walk);
        assert_eq!(index.near(14).map(|place| place.sequence), Some(10));
        assert!(index.near(9).is_none() && index.near(15).is_none() && index.near(100).is_none());
    }
}
