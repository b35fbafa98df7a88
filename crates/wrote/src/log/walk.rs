//! A walk through the batches and records of one segment in order, up to the first invalid
//! position.

use super::batch::{self, BatchHeader};
use super::input::Input;
use super::record::{self, Frame};
use super::segment::{self, SegmentHeader};
use crate::Error;

/// The maximum length of a believable batch in bytes. It exceeds the length of the largest buffer.
const BATCH_BYTES_MAX: u32 = 128 << 20;
/// The maximum length of a batch, in bytes, that is held in memory while its records are checked.
const JOINED_BYTES_MAX: u32 = 4 << 20;

#[derive(Debug)]
pub(super) struct Walk {
    pub input: Input,
    /// The checksum of the segment's identity.
    pub seed: u32,
    pub block_bytes: u64,
    /// Whether batches of another segment may follow the segment's own.
    pub is_recycled: bool,
    /// The offset of the next batch or record.
    pub place: u64,
    /// The sequence of the next record.
    pub sequence: u64,
    /// The end of the last intact record or batch.
    pub end: u64,
    /// The header of the last batch, with its checksum.
    pub last: Option<(BatchHeader, u32)>,
    last_place: u64,
    /// The batch that the walk is in; `None` between batches.
    pub open: Option<OpenBatch>,
    /// The first record of the later segment that a cut started; [`u64::MAX`] if there is none.
    /// Batches of this segment from that record on are not part of the log.
    pub limit: u64,
    /// The sequence of the first record that is needed. If all records of a batch come before it,
    /// only the header of the batch is read.
    pub wanted: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct OpenBatch {
    pub end: u64,
    /// The number of records that the walk has not read yet.
    pub left: u32,
    /// The time when the batch was written, in nanoseconds since 1970; 0 if unknown.
    pub written_at_ns: u64,
}

/// The criterion for recognizing the batches of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) enum Identity {
    /// The segment is identified by the checksum of its identity.
    Known {
        seed: u32,
        /// The block size in bytes. Batches begin at its multiples.
        block_bytes: u64,
    },
    /// No header identifies the segment. A batch is recognized if its header and its first record
    /// belong to the same segment.
    Lost,
}

impl Identity {
    pub(super) fn of(header: &SegmentHeader) -> Identity {
        Identity::Known { seed: header.seed(), block_bytes: u64::from(header.block_bytes) }
    }
}

#[derive(Debug)]
pub(super) enum WalkStep<'a> {
    Batch,
    /// A record, or an empty place.
    Frame {
        sequence: u64,
        offset: u64,
        frame: Frame<'a>,
    },
    /// No valid batch or record follows.
    End,
}

impl Walk {
    /// Creates a walk that begins at the segment's first batch.
    pub(super) fn new(input: Input, header: &SegmentHeader) -> Walk {
        Walk {
            input,
            seed: header.seed(),
            block_bytes: u64::from(header.block_bytes),
            is_recycled: header.is_recycled,
            place: segment::HEADER_BYTES as u64,
            sequence: header.first_sequence,
            end: segment::HEADER_BYTES as u64,
            last: None,
            last_place: 0,
            open: None,
            limit: u64::MAX,
            wanted: 0,
        }
    }

    /// Moves the walk back to the segment's first batch.
    pub(super) fn restart(&mut self, first_sequence: u64) {
        self.jump_to(segment::HEADER_BYTES as u64, first_sequence, None);
        (self.end, self.last) = (self.place, None);
    }

    /// Reads the next batch header or record. At the end of the segment, the walk does not move,
    /// and can continue once more has been written.
    pub(super) fn next(&mut self) -> Result<WalkStep<'_>, Error> {
        self.leave_finished();
        let frame = match self.open {
            Some(open) => {
                let (place, sequence) = (self.place, self.sequence);
                valid_frame(&mut self.input, self.seed, open.end, place, sequence)?.zip(Some(open))
            }
            None => None,
        };
        let Some(((len, is_data), open)) = frame else {
            let has_begun =
                self.open.is_none() && self.begin(self.place, false)? || self.begin_after_cut()?;
            return Ok(if has_begun { WalkStep::Batch } else { WalkStep::End });
        };
        let (offset, sequence) = (self.place, self.sequence);
        self.place += len as u64;
        self.end = self.place;
        self.sequence += 1;
        self.open = Some(OpenBatch { left: open.left - 1, ..open });
        let own = &self.input.held(offset, len)[record::HEADER_BYTES..];
        let frame = if is_data { Frame::Data(own) } else { Frame::Skipped(own.len()) };
        Ok(WalkStep::Frame { sequence, offset, frame })
    }

    /// Reads the file again after the walk has ended. Returns whether a writer has continued there.
    pub(super) fn has_come(&mut self) -> Result<bool, Error> {
        self.input.look_again()?;
        let before = (self.place, self.sequence, self.end, self.last, self.open);
        let has_come = !matches!(self.next()?, WalkStep::End);
        (self.place, self.sequence, self.end, self.last, self.open) = before;
        self.input.pause()?;
        Ok(has_come)
    }

    /// Reads the header of the last batch again. Returns whether it is still there.
    pub(super) fn finds_last_again(&mut self) -> Result<bool, Error> {
        let Some((_, checksum)) = self.last else { return Ok(true) };
        self.input.look_again()?;
        let found = self.batch_at(self.last_place)?;
        self.input.pause()?;
        Ok(found.is_some_and(|(_, again)| again == checksum))
    }

    /// Skips the batch that has just started if all its records are before `until`. The batch is
    /// skipped only if the next batch continues at its end, which shows that none of its records
    /// were cut off.
    pub(super) fn skip_batch(&mut self, until: u64) -> Result<(), Error> {
        let Some(open) = self.open else { return Ok(()) };
        let end_sequence = self.sequence + u64::from(open.left);
        if end_sequence > until {
            return Ok(());
        }
        let place = open.end.next_multiple_of(self.block_bytes);
        if self.batch_at(place)?.is_some_and(|(next, _)| next.first_sequence == end_sequence) {
            self.sequence = end_sequence;
            self.open = Some(OpenBatch { left: 0, ..open });
        }
        Ok(())
    }

    /// Returns the header of the batch at `place`, and its checksum, if it is valid.
    pub(super) fn batch_at(&mut self, place: u64) -> Result<Option<(BatchHeader, u32)>, Error> {
        Ok(decode(self.input.bytes(place, batch::HEADER_BYTES)?, self.seed))
    }

    /// Moves the walk to its end, after a batch at `place` that has no records.
    pub(super) fn end_behind(&mut self, place: u64, batch: BatchHeader, checksum: u32) {
        self.end = place + u64::from(batch.bytes);
        self.place = self.end.next_multiple_of(self.block_bytes);
        self.sequence = batch.first_sequence;
        (self.last, self.last_place) = (Some((batch, checksum)), place);
        self.open = None;
    }

    /// Moves the walk to the batch at `place`, whose first record has this sequence, or to a place
    /// within a batch at which a walk of this segment has been.
    pub(super) fn jump_to(&mut self, place: u64, sequence: u64, open: Option<OpenBatch>) {
        (self.place, self.sequence, self.open) = (place, sequence, open);
    }

    pub(super) fn identity(&self) -> Identity {
        Identity::Known { seed: self.seed, block_bytes: self.block_bytes }
    }

    /// Returns whether a batch may start at the current position. If not, the end of a batch has
    /// been cut off or must be: the next batch then starts at the next block, and states that a cut
    /// precedes it.
    pub(super) fn is_between_batches(&self) -> bool {
        self.open.is_none() && self.place.is_multiple_of(self.block_bytes)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_between_batches() && self.last.is_some_and(|(batch, _)| batch.closed)
    }

    /// Leaves the current batch if its last record has been read.
    pub(super) fn leave_finished(&mut self) {
        if let Some(open) = self.open.filter(|open| open.left == 0) {
            self.end = open.end;
            self.place = open.end.next_multiple_of(self.block_bytes);
            self.open = None;
        }
    }

    /// Enters the batch at `place` if it begins with the next record.
    fn begin(&mut self, place: u64, after_cut: bool) -> Result<bool, Error> {
        let Some((header, checksum)) = self.batch_at(place)? else { return Ok(false) };
        if header.first_sequence != self.sequence
            || (after_cut && !header.after_cut)
            || (self.sequence >= self.limit && header.count > 0)
            || (header.whole && !self.counts(place, &header)?)
        {
            return Ok(false);
        }
        (self.last, self.last_place) = (Some((header, checksum)), place);
        let BatchHeader { count: left, written_at_ns, .. } = header;
        self.open = Some(OpenBatch { end: place + u64::from(header.bytes), left, written_at_ns });
        self.place = place + batch::HEADER_BYTES as u64;
        self.end = self.place;
        self.leave_finished();
        Ok(true)
    }

    /// Returns whether every record of a batch is valid. For a batch that will be skipped, it is
    /// enough that the next batch follows it.
    fn counts(&mut self, begin: u64, header: &BatchHeader) -> Result<bool, Error> {
        let end = begin + u64::from(header.bytes);
        if end_sequence(header) <= self.wanted {
            let next = self.batch_at(end.next_multiple_of(self.block_bytes))?;
            if next.is_some_and(|(next, _)| next.first_sequence == end_sequence(header)) {
                return Ok(true);
            }
        }
        if header.bytes <= JOINED_BYTES_MAX {
            // Read the batch in one piece, so that its records need not be read from the disk a
            // second time.
            self.input.bytes(begin, header.bytes as usize)?;
        }
        let mut place = begin + batch::HEADER_BYTES as u64;
        for sequence in header.first_sequence..end_sequence(header) {
            match valid_frame(&mut self.input, self.seed, end, place, sequence)? {
                Some((len, _)) => place += len as u64,
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Enters the batch at the next block if it follows a cut by recovery at the current position.
    fn begin_after_cut(&mut self) -> Result<bool, Error> {
        let next = self.place.next_multiple_of(self.block_bytes);
        // A cut can be exactly at a block, where a record began.
        let was_tried = self.open.is_none() && next == self.place;
        Ok(!was_tried && self.begin(next, true)?)
    }
}

/// Returns the length of the frame at `place` in bytes, and whether it is a record rather than an
/// empty place; `None` if it is not valid. The frame must be in a batch that ends at `end`.
pub(super) fn valid_frame(
    input: &mut Input,
    seed: u32,
    end: u64,
    place: u64,
    sequence: u64,
) -> Result<Option<(usize, bool)>, Error> {
    let header = input.bytes(place, record::HEADER_BYTES)?;
    let Some(len) = record::stated_bytes(header) else { return Ok(None) };
    // An impossible length must not cause an allocation.
    if place + len as u64 > end.min(input.len_bytes) {
        return Ok(None);
    }
    let frame = record::parse(input.bytes(place, len)?, seed, sequence);
    Ok(frame.map(|frame| (len, matches!(frame, Frame::Data(_)))))
}

/// Decodes the batch header at the beginning of `bytes`, and returns it with its checksum; `None`
/// if it is not valid.
pub(super) fn decode(bytes: &[u8], seed: u32) -> Option<(BatchHeader, u32)> {
    BatchHeader::decode(bytes, seed).filter(|(header, _)| header.bytes <= BATCH_BYTES_MAX)
}

/// Returns the sequence after the last record of a batch.
pub(super) fn end_sequence(batch: &BatchHeader) -> u64 {
    batch.first_sequence + u64::from(batch.count)
}

/// Returns the maximum length of a batch in a segment, if the segment's first batch `first` states
/// it.
pub(super) fn longest_bytes(first: &BatchHeader) -> Option<u32> {
    // After a cut, another batch may have been written before this one.
    let is_stated = !first.after_cut && (1..=BATCH_BYTES_MAX).contains(&first.longest_bytes);
    is_stated.then_some(first.longest_bytes)
}
