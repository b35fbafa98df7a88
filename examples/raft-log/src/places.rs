//! Maps Raft's indexes to the log's sequences.

use std::io;
use std::ops::Range;

/// Positions of all entries in a log.
///
/// Both numbers increase by one with each entry. Only where a snapshot replaced entries does the
/// index jump, and a new stretch begins.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// Stretches in order. Indexes increase from stretch to stretch.
    stretches: Vec<Stretch>,
    /// The sequence of the next record.
    next: u64,
}

/// A run of entries without a jump, up to the next stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    /// The sequence of its first entry.
    sequence: u64,
    /// The index of its first entry.
    index: u64,
}

impl Stretch {
    /// Returns the index of the record `sequence` if no jump comes before it.
    fn index_at(self, sequence: u64) -> u64 {
        self.index + (sequence - self.sequence)
    }
}

impl Places {
    /// Finds the stretches of a log that holds the records `there`. `index_of` reads a record's
    /// index.
    ///
    /// The difference between index and sequence never decreases. So a binary search finds each
    /// jump, and a log without jumps costs two reads.
    pub fn survey(
        there: Range<u64>,
        mut index_of: impl FnMut(u64) -> io::Result<u64>,
    ) -> io::Result<Places> {
        let mut places = Places { stretches: Vec::new(), next: there.end };
        if there.is_empty() {
            return Ok(places);
        }
        let (mut sequence, last) = (there.start, there.end - 1);
        let last_index = index_of(last)?;
        loop {
            let stretch = Stretch { sequence, index: index_of(sequence)? };
            places.stretches.push(stretch);
            if stretch.index_at(last) == last_index {
                return Ok(places);
            }
            let (mut inside, mut behind) = (sequence, last);
            while behind - inside > 1 {
                let middle = inside + (behind - inside) / 2;
                if index_of(middle)? == stretch.index_at(middle) {
                    inside = middle;
                } else {
                    behind = middle;
                }
            }
            sequence = behind;
        }
    }

    /// Returns the sequence of the next record.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Returns the sequence of the first entry with this index or a later one; the next record's if
    /// there is none.
    pub fn sequence(&self, index: u64) -> u64 {
        for (number, stretch) in self.stretches.iter().enumerate() {
            let end = self.stretches.get(number + 1).map_or(self.next, |later| later.sequence);
            if index < stretch.index_at(end) {
                return stretch.sequence + index.saturating_sub(stretch.index);
            }
        }
        self.next
    }

    /// Adds the next record, the entry `index`.
    pub fn push(&mut self, index: u64) {
        let leaps = match self.stretches.last() {
            Some(stretch) => stretch.index_at(self.next) != index,
            None => true,
        };
        if leaps {
            self.stretches.push(Stretch { sequence: self.next, index });
        }
        self.next += 1;
    }

    /// Removes the record `sequence` and all later ones.
    pub fn cut(&mut self, sequence: u64) {
        self.stretches.retain(|stretch| stretch.sequence < sequence);
        self.next = self.next.min(sequence);
    }

    /// Forgets stretches with every record before `sequence`.
    pub fn forget_before(&mut self, sequence: u64) {
        while self.stretches.get(1).is_some_and(|second| second.sequence <= sequence) {
            self.stretches.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the places of entries with these indexes, from the record `first` on.
    fn pushed(first: u64, indexes: &[u64]) -> Places {
        let mut places = Places { stretches: Vec::new(), next: first };
        for index in indexes {
            places.push(*index);
        }
        places
    }

    #[test]
    fn a_survey_finds_the_places_that_were_pushed() {
        for leaps in 0..1_u64 << 9 {
            let mut indexes = vec![5];
            for step in 0..9 {
                indexes.push(indexes[step] + 1 + 3 * (leaps >> step & 1));
            }
            let index_of = |sequence| Ok(indexes[sequence as usize - 7]);
            let places = Places::survey(7..17, index_of).unwrap();
            assert_eq!(places, pushed(7, &indexes));
            for index in 0..50 {
                let before = indexes.iter().filter(|other| **other < index).count();
                assert_eq!(places.sequence(index), 7 + before as u64);
            }
        }
    }

    #[test]
    fn a_log_without_a_leap_is_surveyed_by_two_reads() {
        let mut reads = 0;
        let index_of = |sequence| {
            reads += 1;
            Ok(sequence + 100)
        };
        Places::survey(3..1_000_000, index_of).unwrap();
        assert_eq!(reads, 2);
    }

    #[test]
    fn a_cut_takes_later_stretches_off() {
        let mut places = pushed(0, &[1, 2, 5, 6, 9]);
        places.cut(3);
        assert_eq!(places, pushed(0, &[1, 2, 5]));
        places.cut(0);
        assert_eq!(places, pushed(0, &[]));
    }

    #[test]
    fn places_behind_forgotten_stretches_stay() {
        let mut places = pushed(0, &[1, 2, 5, 6, 9]);
        places.forget_before(3);
        assert_eq!((places.sequence(6), places.sequence(7), places.stretches.len()), (3, 4, 2));
    }
}
