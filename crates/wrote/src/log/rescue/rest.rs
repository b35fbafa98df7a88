//! The bytes after the last readable record: nothing, a torn write, or proof that the disk has lost
//! durable records.

use super::super::batch::{self, BatchHeader};
use super::super::input::{Input, LogFiles};
use super::super::segment::{self, SegmentHeader};
use super::super::walk::{self, Identity, Walk};
use super::super::{chain, damage, record};
use super::seed;
use super::valid::ValidRecords;
use crate::Error;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The most bytes examined at once. Batches start at multiples of a block, which may be smaller.
const STEP_BYTES: u64 = 64 << 10;
/// The smallest block of a segment.
const BLOCK_BYTES_MIN: u64 = 512;

static ZEROS: [u8; STEP_BYTES as usize] = [0; STEP_BYTES as usize];

/// The rest of a segment from some offset on.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::log) struct Rest {
    /// The end of the last nonzero byte; the start of the rest if there is none. In a recycled file
    /// it is the end of the segment's last batch.
    pub end: u64,
    /// All records before this sequence were durable, according to batches there.
    pub durable_sequence: u64,
    /// The matching batch with the smallest first sequence, and its position.
    pub next: Option<(u64, BatchHeader)>,
    /// The seed that makes that batch valid.
    pub seed: u32,
    /// The greatest first sequence of those batches.
    last_sequence: u64,
    /// The first sequence of the batch right after the segment header.
    begins_with: Option<u64>,
    /// A file with content, but without a valid segment header.
    pub is_headless: bool,
}

/// A search in a part of a file for batches that begin with `sequence` or a later record.
struct Search {
    range: Range<u64>,
    sequence: u64,
    identity: Identity,
    /// After this offset there may be bytes of another segment, and only batches count.
    filled_until: u64,
    /// Whether a batch counts only if its first record is valid.
    is_readable: bool,
}

/// Examines a part of a file. Skips `records`, and the valid records of each batch that it finds.
fn scan(input: &mut Input, search: &Search, mut records: ValidRecords) -> Result<Rest, Error> {
    let Range { start, end } = search.range;
    let mut rest = Rest { end: start, ..Rest::default() };
    let step = match search.identity {
        Identity::Known { block_bytes, .. } => block_bytes.min(STEP_BYTES),
        Identity::Lost => BLOCK_BYTES_MIN,
    };
    let mut valid = records.next(input)?;
    let mut place = start;
    while place < input.len_bytes.min(end) {
        match &valid {
            Some(range) if range.end <= place => valid = records.next(input)?,
            Some(range) if range.start <= place => {
                (rest.end, place) = (rest.end.max(range.end), range.end);
            }
            _ => {
                let at = place;
                place = (at + 1).next_multiple_of(step);
                let bytes = input.bytes(at, (place - at) as usize)?;
                if bytes == &ZEROS[..bytes.len()] {
                    let data = input.data_from(place)?;
                    place = place.max(data - data % step);
                    continue;
                }
                let own = search.filled_until.saturating_sub(at).min(bytes.len() as u64);
                if let Some(last) = bytes[..own as usize].iter().rposition(|&byte| byte != 0) {
                    rest.end = rest.end.max(at + last as u64 + 1);
                }
                let behind_header = (at == 0).then_some(segment::HEADER_BYTES as u64);
                for begin in behind_header.into_iter().chain([at]) {
                    if let Some(found) = rest.note(input, begin, search)? {
                        records = found;
                        valid = records.next(input)?;
                    }
                }
            }
        }
    }
    input.pause()?;
    Ok(rest)
}

/// Examines the rest of the segment after the end of a walk.
pub(super) fn after(walk: &mut Walk) -> Result<Rest, Error> {
    let (identity, records) = (walk.identity(), ValidRecords::behind(walk));
    let (range, sequence) = (walk.end..u64::MAX, walk.sequence);
    let filled_until = match walk.open {
        _ if !walk.is_recycled => u64::MAX,
        // Which bytes belong to the batch is unknown.
        Some(open) => open.end,
        None => 0,
    };
    let search = Search { range, sequence, identity, filled_until, is_readable: false };
    scan(&mut walk.input, &search, records)
}

/// Finds the batch of the next record, or of the first later one, before the position of a walk: a
/// write that went to the wrong place.
pub(super) fn before(walk: &mut Walk) -> Result<Option<(u64, BatchHeader)>, Error> {
    let (range, sequence) = (0..walk.place, walk.sequence);
    // Only with a readable record, so that the walk makes progress each time.
    let (identity, filled_until) = (walk.identity(), u64::MAX);
    let search = Search { range, sequence, identity, filled_until, is_readable: true };
    Ok(scan(&mut walk.input, &search, ValidRecords::default())?.next)
}

#[derive(Debug)]
pub(in crate::log) struct EndScan {
    pub rest: Rest,
    pub later: Vec<Rest>,
    /// The error, if the next record was durable and is lost.
    pub lost: Option<Error>,
}

/// Examines everything after the end of a walk through a segment of log `log_id`.
///
/// Concurrent writes complete in any order, so a batch may be there without its predecessor. But if
/// a batch states that an unreadable record was durable, the disk lost that record later. Fails
/// with [`Error::Foreign`] at a segment of another log or position.
pub(in crate::log) fn behind(
    walk: &mut Walk,
    log_id: u64,
    later: &[(u64, PathBuf)],
) -> Result<EndScan, Error> {
    let rest = after(walk)?;
    let mut durable_sequence = rest.durable_sequence;
    let mut found = Vec::with_capacity(later.len());
    for (number, path) in later {
        let header = {
            let mut input = Input::open(&walk.input.files, path, true, false)?;
            chain::read_header(&mut input, *number)?
        };
        if let Some(header) = header {
            chain::check_log((path, header.log_id), (&walk.input.path, log_id))?;
        }
        let seed = segment::seed(log_id, *number);
        let identity = Identity::Known { seed, block_bytes: walk.block_bytes };
        let rest = scan_file(&walk.input.files, path, walk.sequence, identity)?;
        durable_sequence = durable_sequence.max(rest.durable_sequence);
        found.push(rest);
    }
    let lost = (durable_sequence > walk.sequence).then(|| {
        // If this segment is whole, the damage is in the next one.
        let is_whole = walk.is_between_batches() && rest.end == walk.end;
        let (path, offset) = match later.first().zip(found.first()) {
            Some(((_, path), next)) if is_whole && next.is_headless => (path, 0),
            _ => (&walk.input.path, walk.place),
        };
        let what = format!("record {} can't be read, and was durable once", walk.sequence);
        damage::error(path, offset, &what)
    });
    Ok(EndScan { rest, later: found, lost })
}

/// Examines a whole file.
///
/// The segment header and the first batch are in one sector, which a device writes atomically. A
/// batch without the header proves that the header was damaged later, and the batch was durable.
pub(in crate::log) fn scan_file(
    files: &LogFiles,
    path: &Path,
    sequence: u64,
    identity: Identity,
) -> Result<Rest, Error> {
    let mut input = Input::open(files, path, true, false)?;
    let is_marked = segment::is_marked_recycled(input.bytes(0, BLOCK_BYTES_MIN as usize)?);
    if is_marked && matches!(identity, Identity::Lost) {
        // Its batches seem to belong to removed segments.
        return Ok(Rest::default());
    }
    let header = SegmentHeader::decode(input.bytes(0, segment::HEADER_BYTES)?);
    let known = header.ok().filter(|header| match identity {
        Identity::Known { seed, .. } => header.seed() == seed,
        Identity::Lost => true,
    });
    let is_recycled = is_marked || known.is_some_and(|header| header.is_recycled);
    let (range, filled_until) = (0..u64::MAX, if is_recycled { 0 } else { u64::MAX });
    let search = Search { range, sequence, identity, filled_until, is_readable: false };
    let mut rest = scan(&mut input, &search, ValidRecords::default())?;
    rest.is_headless = known.is_none() && rest.end > 0;
    if rest.is_headless
        && let Some(first_sequence) = rest.begins_with
    {
        rest.durable_sequence = rest.durable_sequence.max(first_sequence + 1);
    }
    Ok(rest)
}

impl Rest {
    fn note(
        &mut self,
        input: &mut Input,
        place: u64,
        search: &Search,
    ) -> Result<Option<ValidRecords>, Error> {
        let is_first = place == segment::HEADER_BYTES as u64;
        let may_begin = |block_bytes| is_first || place.is_multiple_of(block_bytes);
        let found = match search.identity {
            Identity::Known { seed, block_bytes } if may_begin(block_bytes) => {
                let bytes = input.bytes(place, batch::HEADER_BYTES)?;
                walk::decode(bytes, seed).map(|(header, _)| (header, seed))
            }
            Identity::Lost if may_begin(BLOCK_BYTES_MIN) => batch_by_its_record(input, place)?,
            _ => None,
        };
        let Some((header, seed)) = found else { return Ok(None) };
        if search.filled_until < u64::MAX {
            let end = place + u64::from(header.bytes);
            self.end = self.end.max(end.min(input.len_bytes));
        }
        let (records, first) = (ValidRecords::of(place, &header, seed), header.first_sequence);
        if self.next.is_some() && seed != self.seed {
            // A recycled file whose identity is lost: the later records are its own.
            if first <= self.last_sequence {
                return Ok(Some(records));
            }
            (self.next, self.durable_sequence, self.begins_with) = (None, 0, None);
        }
        if first >= search.sequence && (!search.is_readable || records.is_valid(input)?) {
            self.durable_sequence = self.durable_sequence.max(header.durable_sequence);
            self.last_sequence = self.last_sequence.max(first);
            if self.next.is_none_or(|(_, next)| first < next.first_sequence) {
                (self.next, self.seed) = (Some((place, header)), seed);
            }
            self.begins_with = self.begins_with.or(is_first.then_some(first));
        }
        Ok(Some(records))
    }
}

/// Finds the batch at `place` of an unknown segment, and its seed. One seed must make the header
/// and the first record valid.
///
/// The batch that closes a log has no record, but its other fields can have one value only.
fn batch_by_its_record(input: &mut Input, place: u64) -> Result<Option<(BatchHeader, u32)>, Error> {
    let bytes = input.bytes(place, batch::HEADER_BYTES + record::HEADER_BYTES)?;
    let Some(seed) = seed::of_batch(bytes) else { return Ok(None) };
    let Some((header, _)) = walk::decode(bytes, seed) else { return Ok(None) };
    if header.closed && (header.bytes as usize, header.count) == (batch::HEADER_BYTES, 0) {
        let is_whole = header.durable_sequence == header.first_sequence;
        return Ok(is_whole.then_some((header, seed)));
    }
    let Some(frame_bytes) = record::stated_bytes(&bytes[batch::HEADER_BYTES..]) else {
        return Ok(None);
    };
    let len = batch::HEADER_BYTES + frame_bytes;
    if header.count == 0 || len > header.bytes as usize {
        return Ok(None);
    }
    let bytes = input.bytes(place, len)?;
    let first = bytes.get(batch::HEADER_BYTES..).unwrap_or_default();
    Ok(record::parse(first, seed, header.first_sequence).map(|_| (header, seed)))
}
