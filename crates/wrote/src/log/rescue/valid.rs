//! The ranges of a batch's valid records, which a search for batches skips, because a record may
//! contain the bytes of a batch.

use super::super::batch::{self, BatchHeader};
use super::super::input::Input;
use super::super::record;
use super::super::walk::{Walk, valid_frame};
use crate::Error;
use std::ops::Range;

/// The records of a batch from some record on.
#[derive(Default)]
pub(super) struct ValidRecords {
    seed: u32,
    /// The offset and the sequence of the next record.
    place: u64,
    sequence: u64,
    left: u32,
    /// The end of the batch.
    end: u64,
}

impl ValidRecords {
    pub(super) fn of(begin: u64, header: &BatchHeader, seed: u32) -> ValidRecords {
        ValidRecords {
            seed,
            place: begin + batch::HEADER_BYTES as u64,
            sequence: header.first_sequence,
            left: header.count,
            end: begin + u64::from(header.bytes),
        }
    }

    /// Returns the records after the end of a walk, in the batch that the walk is in.
    pub(super) fn behind(walk: &Walk) -> ValidRecords {
        let Walk { seed, place, sequence, .. } = *walk;
        walk.open.map_or_else(ValidRecords::default, |open| {
            let (left, end) = (open.left, open.end);
            ValidRecords { seed, place, sequence, left, end }
        })
    }

    /// Returns the next range of valid records. The length of an invalid record may lead to a valid
    /// one after it.
    pub(super) fn next(&mut self, input: &mut Input) -> Result<Option<Range<u64>>, Error> {
        let mut is_valid = self.is_valid(input)?;
        if !is_valid {
            self.pass(input)?;
            is_valid = self.is_valid(input)?;
        }
        let start = self.place;
        while is_valid {
            self.pass(input)?;
            is_valid = self.is_valid(input)?;
        }
        Ok((self.place > start).then_some(start..self.place))
    }

    /// Returns whether the next record is valid.
    pub(super) fn is_valid(&self, input: &mut Input) -> Result<bool, Error> {
        let ValidRecords { seed, place, sequence, left, end } = *self;
        Ok(left > 0 && valid_frame(input, seed, end, place, sequence)?.is_some())
    }

    fn pass(&mut self, input: &mut Input) -> Result<(), Error> {
        let header = input.bytes(self.place, record::HEADER_BYTES)?;
        self.place += record::stated_bytes(header).unwrap_or(0) as u64;
        self.sequence += 1;
        self.left = self.left.saturating_sub(1);
        Ok(())
    }
}
