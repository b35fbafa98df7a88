//! What stands behind the end of what can be read: nothing, what a crash broke off, or proof that records
//! were there which the disk has lost.

use super::batch::{self, BatchHeader};
use super::input::Input;
use super::segment::SegmentHeader;
use super::walk::Walk;
use super::{record, seed, segment, walk};
use crate::{Engine, Error};
use std::path::{Path, PathBuf};

/// How much is looked at as one piece, at most: batches begin at multiples of a block, which may be less.
const STEP_BYTES: u64 = 64 << 10;
/// The smallest block that a segment may have.
const BLOCK_BYTES_MIN: u64 = 512;

static ZEROS: [u8; STEP_BYTES as usize] = [0; STEP_BYTES as usize];

/// How the batches of a segment are known.
#[derive(Clone, Copy, Debug)]
pub(super) enum Identity {
    /// By the checksum of the segment's identity.
    Known {
        /// That checksum.
        seed: u32,
        /// At multiples of which they begin.
        block_bytes: u64,
    },
    /// Nothing tells which segment it is. A batch counts if its first record is of the same segment as
    /// its header.
    Lost,
}

/// What stands in a segment from some place on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rest {
    /// The end of the last byte that is not zero; where it began if all are.
    pub end: u64,
    /// Records before this one were durable, as the batches there say.
    pub durable_sequence: u64,
    /// The first batch in it.
    pub first: Option<(u64, BatchHeader)>,
    /// The checksum of the identity with which that batch is valid.
    pub seed: u32,
    /// Something is there, but not what a segment begins with.
    pub is_headless: bool,
}

/// Looks at everything from `from` on, for batches that go on with the sequence `sequence` or a later one.
pub(super) fn scan(
    engine: &mut Engine,
    input: &mut Input,
    from: u64,
    sequence: u64,
    identity: Identity,
) -> Result<Rest, Error> {
    let mut rest = Rest { end: from, ..Rest::default() };
    let step = match identity {
        Identity::Known { block_bytes, .. } => block_bytes.min(STEP_BYTES),
        Identity::Lost => BLOCK_BYTES_MIN,
    };
    let mut place = from;
    while place < input.len_bytes {
        let next = (place + 1).next_multiple_of(step);
        let bytes = input.bytes(engine, place, (next - place) as usize)?;
        if bytes != &ZEROS[..bytes.len()] {
            let last = bytes.iter().rposition(|&byte| byte != 0).expect("not all are zeros");
            rest.end = place + last as u64 + 1;
            if place == 0 {
                rest.note(engine, input, segment::HEADER_BYTES as u64, sequence, identity)?;
            }
            rest.note(engine, input, place, sequence, identity)?;
        }
        place = next;
    }
    input.pause(engine)?;
    Ok(rest)
}

/// What stands behind the end of a walk, there and in the segments after it.
#[derive(Debug)]
pub(super) struct Behind {
    /// In the same segment.
    pub rest: Rest,
    /// In those after it, in order.
    pub later: Vec<Rest>,
    /// The next record was durable once: in which file and from which byte on it can't be read.
    pub lost: Option<(PathBuf, u64)>,
}

/// Looks at everything behind the end of a walk through a segment of the log `log_id`.
///
/// Batches that were in flight together arrive in any order, so that one may be there without the one
/// before it. But where a batch says that records were durable which can't be read, they were lost later.
pub(super) fn behind(
    engine: &mut Engine,
    input: &mut Input,
    walk: &Walk,
    log_id: u64,
    later: &[(u64, PathBuf)],
) -> Result<Behind, Error> {
    let rest = scan(engine, input, walk.end, walk.sequence, walk.identity())?;
    let Identity::Known { block_bytes, .. } = walk.identity() else {
        unreachable!("a walk knows its segment")
    };
    let mut durable_sequence = rest.durable_sequence;
    let mut found = Vec::with_capacity(later.len());
    for (number, path) in later {
        let identity = Identity::Known { seed: segment::seed(log_id, *number), block_bytes };
        let rest = scan_file(engine, path, walk.sequence, identity)?;
        durable_sequence = durable_sequence.max(rest.durable_sequence);
        found.push(rest);
    }
    // Where this segment ends as it should, the place is the one after it.
    let is_whole = walk.is_between_batches() && rest.end == walk.end;
    let place = match later.first().zip(found.first()) {
        Some(((_, path), next)) if is_whole && next.is_headless => (path.clone(), 0),
        _ => (input.path.clone(), walk.place),
    };
    let lost = (durable_sequence > walk.sequence).then_some(place);
    Ok(Behind { rest, later: found, lost })
}

/// Looks through a whole file, from its first byte on.
///
/// The header and the first batch behind it lie in one sector, which a device writes as a whole or not at
/// all: where the batch is there and the header is not, it was damaged later, and all was durable.
pub(super) fn scan_file(
    engine: &mut Engine,
    path: &Path,
    sequence: u64,
    identity: Identity,
) -> Result<Rest, Error> {
    let mut input = Input::open(engine, path, true, false)?;
    let header = SegmentHeader::decode(input.bytes(engine, 0, segment::HEADER_BYTES)?);
    let is_known = header.is_ok_and(|header| match identity {
        Identity::Known { seed, .. } => header.seed() == seed,
        Identity::Lost => true,
    });
    let mut rest = scan(engine, &mut input, 0, sequence, identity)?;
    input.close(engine)?;
    rest.is_headless = !is_known && rest.end > 0;
    if rest.is_headless
        && let Some((place, batch)) = rest.first
        && place == segment::HEADER_BYTES as u64
    {
        rest.durable_sequence = rest.durable_sequence.max(batch.first_sequence + 1);
    }
    Ok(rest)
}

impl Rest {
    /// Takes notice of the batch at `place`, if there is one.
    fn note(
        &mut self,
        engine: &mut Engine,
        input: &mut Input,
        place: u64,
        sequence: u64,
        identity: Identity,
    ) -> Result<(), Error> {
        let found = match identity {
            Identity::Known { seed, block_bytes } => {
                let may_begin =
                    place.is_multiple_of(block_bytes) || place == segment::HEADER_BYTES as u64;
                let bytes = input.bytes(engine, place, batch::HEADER_BYTES)?;
                walk::decode(bytes, seed).filter(|_| may_begin).map(|(header, _)| (header, seed))
            }
            Identity::Lost => batch_by_its_record(engine, input, place)?,
        };
        if let Some((header, seed)) = found.filter(|(header, _)| header.first_sequence >= sequence)
        {
            self.durable_sequence = self.durable_sequence.max(header.durable_sequence);
            if self.first.is_none() {
                (self.first, self.seed) = (Some((place, header)), seed);
            }
        }
        Ok(())
    }
}

/// The batch at `place` of a segment that nobody knows: the identity with which its header is valid
/// makes its first record valid too. The batch that closes a log has no record, but nothing else that could
/// be otherwise.
fn batch_by_its_record(
    engine: &mut Engine,
    input: &mut Input,
    place: u64,
) -> Result<Option<(BatchHeader, u32)>, Error> {
    let bytes = input.bytes(engine, place, batch::HEADER_BYTES + record::HEADER_BYTES)?;
    let Some(seed) = seed::of_batch(bytes) else { return Ok(None) };
    let Some((header, _)) = walk::decode(bytes, seed) else { return Ok(None) };
    let BatchHeader { bytes: all, count, first_sequence, durable_sequence, .. } = header;
    if header.closed && (all as usize, count) == (batch::HEADER_BYTES, 0) {
        return Ok((durable_sequence == first_sequence).then_some((header, seed)));
    }
    let Some(length) = bytes.get(batch::HEADER_BYTES..batch::HEADER_BYTES + 4) else {
        return Ok(None);
    };
    let own = u32::from_le_bytes(length.try_into().expect("4 bytes")) as usize & record::LEN_MAX;
    let len = batch::HEADER_BYTES + record::frame_bytes(own);
    if header.count == 0 || len > header.bytes as usize {
        return Ok(None);
    }
    let bytes = input.bytes(engine, place, len)?;
    let first = bytes.get(batch::HEADER_BYTES..).unwrap_or_default();
    Ok(record::parse(first, seed, header.first_sequence).map(|_| (header, seed)))
}
