//! The batches and records of one framed segment in order, up to the first place that is none.

mod pass_over;

use super::batch::{self, BatchHeader};
use super::input::Input;
use super::record::{self, Frame};
use super::rest::Identity;
use super::segment::{self, SegmentHeader};
use crate::{Engine, Error};

/// The most bytes that a batch is taken to have: more than the greatest buffer that it is written from.
const BATCH_BYTES_MAX: u32 = 128 << 20;

/// Where a walk through a segment has come to.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    /// The checksum of the segment's identity.
    seed: u32,
    block_bytes: u64,
    /// Where the next batch or record is expected.
    pub place: u64,
    /// The sequence of the next record.
    pub sequence: u64,
    /// The end of the last whole record or batch.
    pub end: u64,
    /// The header of the last batch, with its checksum.
    pub last: Option<(BatchHeader, u32)>,
    /// The batch that the walk is in.
    inside: Option<Inside>,
}

/// A batch that the walk is in.
#[derive(Clone, Copy, Debug)]
struct Inside {
    /// Where it ends.
    end: u64,
    /// Records that are still to come.
    left: u32,
}

/// What comes next in a segment.
#[derive(Debug)]
pub(super) enum Step<'a> {
    /// A batch begins.
    Batch,
    /// A record, or a place that was passed over.
    Frame {
        /// Its place in the log.
        sequence: u64,
        /// Where it begins in the file.
        offset: u64,
        /// What it is.
        frame: Frame<'a>,
    },
    /// Nothing that is valid follows.
    End,
}

impl Walk {
    /// A walk from the segment's first batch on.
    pub(super) fn new(header: &SegmentHeader) -> Walk {
        Walk::of(header.seed(), u64::from(header.block_bytes), header.first_sequence)
    }

    /// The same, of a segment that is known only so far.
    pub(super) fn of(seed: u32, block_bytes: u64, sequence: u64) -> Walk {
        Walk {
            seed,
            block_bytes,
            place: segment::HEADER_BYTES as u64,
            sequence,
            end: segment::HEADER_BYTES as u64,
            last: None,
            inside: None,
        }
    }

    /// Goes on by a batch's header or a record. At the end the walk stays where it is: it can be asked
    /// again when more was written.
    pub(super) fn next<'a>(
        &mut self,
        engine: &mut Engine,
        input: &'a mut Input,
    ) -> Result<Step<'a>, Error> {
        self.leave_finished();
        let Some(inside) = self.inside else {
            let began = self.begin(engine, input, self.place, false)?
                || self.begin_after_cut(engine, input)?;
            return Ok(if began { Step::Batch } else { Step::End });
        };
        let Some((len, is_data)) = self.valid_frame(engine, input, inside)? else {
            let began = self.begin_after_cut(engine, input)?;
            return Ok(if began { Step::Batch } else { Step::End });
        };
        let (offset, sequence) = (self.place, self.sequence);
        self.place += len as u64;
        self.end = self.place;
        self.sequence += 1;
        self.inside = Some(Inside { left: inside.left - 1, ..inside });
        let own = &input.bytes(engine, offset, len)?[record::HEADER_BYTES..];
        let frame = if is_data { Frame::Data(own) } else { Frame::Skipped(own.len()) };
        Ok(Step::Frame { sequence, offset, frame })
    }

    /// Passes over the batch that just began, if all its records are before `until` and the next batch
    /// goes on where it ends: then nothing of it was cut off.
    pub(super) fn skip_batch(
        &mut self,
        engine: &mut Engine,
        input: &mut Input,
        until: u64,
    ) -> Result<(), Error> {
        let Some(inside) = self.inside else { return Ok(()) };
        let end_sequence = self.sequence + u64::from(inside.left);
        if end_sequence > until {
            return Ok(());
        }
        let place = inside.end.next_multiple_of(self.block_bytes);
        let bytes = input.bytes(engine, place, batch::HEADER_BYTES)?;
        if decode(bytes, self.seed).is_some_and(|(next, _)| next.first_sequence == end_sequence) {
            self.sequence = end_sequence;
            self.inside = Some(Inside { left: 0, ..inside });
        }
        Ok(())
    }

    /// Goes on with the batch at `place`, of which the first record has this sequence.
    pub(super) fn go_on_at(&mut self, place: u64, sequence: u64) {
        self.inside = None;
        self.place = place;
        self.sequence = sequence;
    }

    /// How the segment's batches are known.
    pub(super) fn identity(&self) -> Identity {
        Identity::Known { seed: self.seed, block_bytes: self.block_bytes }
    }

    /// Whether the walk stands where a batch may begin as it is. Else something was cut off or must be:
    /// the next batch begins at the next block and says so.
    pub(super) fn is_between_batches(&self) -> bool {
        self.inside.is_none() && self.place.is_multiple_of(self.block_bytes)
    }

    /// Whether the last thing in the segment says that the log was closed.
    pub(super) fn is_closed(&self) -> bool {
        self.is_between_batches() && self.last.is_some_and(|(batch, _)| batch.closed)
    }

    fn leave_finished(&mut self) {
        if let Some(inside) = self.inside.filter(|inside| inside.left == 0) {
            self.end = inside.end;
            self.place = inside.end.next_multiple_of(self.block_bytes);
            self.inside = None;
        }
    }

    /// Begins with the batch at `place`, if there is one that goes on with the next record.
    fn begin(
        &mut self,
        engine: &mut Engine,
        input: &mut Input,
        place: u64,
        after_cut: bool,
    ) -> Result<bool, Error> {
        let bytes = input.bytes(engine, place, batch::HEADER_BYTES)?;
        let Some((header, checksum)) = decode(bytes, self.seed) else {
            return Ok(false);
        };
        if header.first_sequence != self.sequence || (after_cut && !header.after_cut) {
            return Ok(false);
        }
        self.last = Some((header, checksum));
        self.inside = Some(Inside { end: place + u64::from(header.bytes), left: header.count });
        self.place = place + batch::HEADER_BYTES as u64;
        self.end = self.place;
        self.leave_finished();
        Ok(true)
    }

    /// What is expected at `place` is not there: it was cut off if a batch at the next block says so.
    fn begin_after_cut(&mut self, engine: &mut Engine, input: &mut Input) -> Result<bool, Error> {
        let next = self.place.next_multiple_of(self.block_bytes);
        // A record may begin right at a block, and be cut off there.
        let was_tried = self.inside.is_none() && next == self.place;
        Ok(!was_tried && self.begin(engine, input, next, true)?)
    }

    /// Bytes of the record at `place` with its header, and whether it is one or was passed over; `None`
    /// where there is no valid one.
    fn valid_frame(
        &self,
        engine: &mut Engine,
        input: &mut Input,
        inside: Inside,
    ) -> Result<Option<(usize, bool)>, Error> {
        let header = input.bytes(engine, self.place, record::HEADER_BYTES)?;
        let Some(length) = header.first_chunk::<4>() else { return Ok(None) };
        let own = u32::from_le_bytes(*length) as usize & record::LEN_MAX;
        let len = record::frame_bytes(own);
        // No memory is taken for a length that can't be true.
        if self.place + len as u64 > inside.end.min(input.len_bytes) {
            return Ok(None);
        }
        let bytes = input.bytes(engine, self.place, len)?;
        let frame = record::parse(bytes, self.seed, self.sequence);
        Ok(frame.map(|frame| (len, matches!(frame, Frame::Data(_)))))
    }
}

/// The batch's header that `bytes` begin with, and its checksum.
pub(super) fn decode(bytes: &[u8], seed: u32) -> Option<(BatchHeader, u32)> {
    BatchHeader::decode(bytes, seed).filter(|(header, _)| header.bytes <= BATCH_BYTES_MAX)
}
