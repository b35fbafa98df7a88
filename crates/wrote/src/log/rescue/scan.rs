//! The scanner of a segment's file, which lists its valid batches and intact records, wherever they
//! are.
//!
//! Verification, repair, recovery and readers derive all that they know about damage from this
//! list. A record may contain the bytes of a batch, so the bytes of valid records are skipped. A
//! thorough scan also searches all other bytes for batches and records. So it finds each intact
//! record, even if the header of its batch is lost, or if bytes were inserted or removed before it.

use crate::Error;
use crate::log::batch::{self, BatchHeader};
use crate::log::chain;
use crate::log::input::{Input, LogFiles};
use crate::log::record::{self, u32_at};
use crate::log::segment::{self, SegmentHeader};
use crate::log::walk::{self, Identity, Walk, end_sequence, valid_frame};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The maximum number of bytes examined at once. Batches start at multiples of a block, which may
/// be smaller.
const STEP_BYTES: u64 = 64 << 10;
/// The minimum block size of a segment, in bytes.
const BLOCK_BYTES_MIN: u64 = 512;
/// The length up to which candidates for records are always tried. Damaged bytes may look like any
/// length, so the total length of longer candidates is limited for each file.
const SHORT_BYTES: usize = 4 << 10;
const TRIED_BYTES_MAX: usize = 1 << 30;
/// The maximum distance between the sequences of a record and the previous record, if the bytes
/// between the two do not account for it.
const FAR: u64 = 1 << 24;

static ZEROS: [u8; STEP_BYTES as usize] = [0; STEP_BYTES as usize];

/// Consecutive intact records of one batch. Each batch begins with a run, which is empty if its
/// first record is damaged.
#[derive(Clone, Copy, Debug)]
pub(in crate::log) struct Run {
    /// The sequence of the run's first record.
    pub sequence: u64,
    pub count: u64,
    /// The offset of the run's first record, and the end of its last one.
    pub place: u64,
    pub end: u64,
    /// The seed that makes the records' checksums valid.
    pub seed: u32,
    /// The header of the batch; `None` if it is lost.
    pub batch: Option<BatchHeader>,
}

impl Run {
    pub(super) fn end_sequence(&self) -> u64 {
        self.sequence + self.count
    }

    /// Returns whether the run reaches the end of its batch.
    pub(super) fn ends_batch(&self) -> bool {
        self.batch.is_some_and(|batch| end_sequence(&batch) == self.end_sequence())
    }

    /// Returns whether the run's records are part of the log, given that all records of the log
    /// before `durable` were durable.
    pub(super) fn counts(&self, durable: u64) -> bool {
        match self.batch {
            // A flush covers whole batches. A group that was only partly durable has been cut off,
            // and other records got its sequences.
            Some(batch) if batch.whole && self.count < u64::from(batch.count) => {
                end_sequence(&batch) <= durable
            }
            Some(_) => true,
            // The run may belong to such a group.
            None => self.sequence < durable,
        }
    }
}

/// The findings of a scan in a part of a file.
#[derive(Debug, Default)]
pub(in crate::log) struct Found {
    /// The runs, in file order.
    pub runs: Vec<Run>,
    /// The end of the last nonzero byte; the start of the part if there is none. In a recycled
    /// file, it is the end of the segment's last batch.
    pub end: u64,
    /// Whether the file has content but no valid segment header.
    pub is_headless: bool,
}

impl Found {
    /// Returns the sequence before which all records were durable, according to the batches that
    /// begin with `sequence` or a later record; 0 if none states it.
    pub(in crate::log) fn durable_sequence(&self, sequence: u64) -> u64 {
        let batches = self.batches(sequence);
        let stated = batches.map(|(_, batch)| batch.durable_sequence).max().unwrap_or(0);
        // The segment header and the first batch header are in one sector, which a device writes
        // atomically. If the batch is there without the segment header, the segment header was
        // damaged later, and the batch was durable.
        let begin = (segment::HEADER_BYTES + batch::HEADER_BYTES) as u64;
        let first = self.batches(sequence).find(|(run, _)| self.is_headless && run.place == begin);
        first.map_or(stated, |(_, batch)| stated.max(batch.first_sequence + 1))
    }

    /// Returns the identity of this file's batches, found in the batches themselves, because the
    /// headers of the file and of the rest of its log are lost.
    pub(super) fn identity(&self) -> Identity {
        let known = |run: &Run| Identity::Known { seed: run.seed, block_bytes: BLOCK_BYTES_MIN };
        self.runs.first().map_or(Identity::Lost, known)
    }

    /// Returns the lowest first sequence of the batches that begin with `sequence` or a later
    /// record; `None` if there are no such batches.
    pub(super) fn first_sequence(&self, sequence: u64) -> Option<u64> {
        self.batches(sequence).map(|(_, batch)| batch.first_sequence).min()
    }

    fn batches(&self, sequence: u64) -> impl Iterator<Item = (&Run, BatchHeader)> {
        let batches = self.runs.iter().filter_map(|run| run.batch.map(|batch| (run, batch)));
        batches.filter(move |(_, batch)| batch.first_sequence >= sequence)
    }
}

/// Scans the rest of the segment after the end of a walk.
pub(in crate::log) fn after(walk: &mut Walk) -> Result<Found, Error> {
    let next = walk.open.map(|open| Expected {
        place: walk.place,
        sequence: walk.sequence,
        left: open.left,
        end: open.end,
        seed: walk.seed,
        batch: walk.last.map(|(header, _)| header),
        begins: false,
    });
    let filled_until = match walk.open {
        _ if !walk.is_recycled => u64::MAX,
        // It is unknown which of the bytes belong to the batch.
        Some(open) => open.end,
        None => 0,
    };
    let (identity, start) = (walk.identity(), walk.end);
    Scan { next, ..Scan::new(&mut walk.input, identity, start, filled_until) }.run()
}

/// Scans the whole file of a walk, including every byte between its intact records. The log
/// continues there with record `sequence` or a later one.
pub(super) fn thorough(walk: &mut Walk, identity: Identity, sequence: u64) -> Result<Found, Error> {
    let filled_until = if walk.is_recycled { 0 } else { u64::MAX };
    walk.input.look_again()?;
    let scan = Scan::new(&mut walk.input, identity, segment::HEADER_BYTES as u64, filled_until);
    Scan { is_thorough: true, last: (sequence, segment::HEADER_BYTES as u64), ..scan }.run()
}

/// Scans a whole file.
pub(in crate::log) fn of_file(
    files: &LogFiles,
    path: &Path,
    identity: Identity,
) -> Result<Found, Error> {
    let mut input = Input::open(files, path, true, false)?;
    let is_marked = segment::is_marked_recycled(input.bytes(0, BLOCK_BYTES_MIN as usize)?);
    if is_marked && matches!(identity, Identity::Lost) {
        // The batches in the file most likely belong to removed segments.
        return Ok(Found::default());
    }
    let header = SegmentHeader::decode(input.bytes(0, segment::HEADER_BYTES)?);
    let known = header.ok().filter(|header| match identity {
        Identity::Known { seed, .. } => header.seed() == seed,
        Identity::Lost => true,
    });
    let is_recycled = is_marked || known.is_some_and(|header| header.is_recycled);
    let filled_until = if is_recycled { 0 } else { u64::MAX };
    let mut found = Scan::new(&mut input, identity, 0, filled_until).run()?;
    found.is_headless = known.is_none() && found.end > 0;
    Ok(found)
}

#[derive(Debug)]
pub(in crate::log) struct EndScan {
    pub rest: Found,
    pub later: Vec<Found>,
    /// The error, if the next record was durable and is lost.
    pub lost: Option<Error>,
}

/// Scans everything after the end of a walk through a segment of log `log_id`.
///
/// Concurrent writes complete in any order, so a batch may exist without the previous one. But if a
/// batch states that an unreadable record was durable, the disk must have lost that record later.
/// Fails with [`Error::Foreign`] at a segment of another log, or one with the wrong name.
pub(in crate::log) fn behind(
    walk: &mut Walk,
    log_id: u64,
    later: &[(u64, PathBuf)],
) -> Result<EndScan, Error> {
    let rest = after(walk)?;
    let mut durable_sequence = rest.durable_sequence(walk.sequence);
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
        let rest = of_file(&walk.input.files, path, identity)?;
        durable_sequence = durable_sequence.max(rest.durable_sequence(walk.sequence));
        found.push(rest);
    }
    let lost = (durable_sequence > walk.sequence).then(|| {
        // If this segment is intact, the damage is in the next one.
        let is_whole = walk.is_between_batches() && rest.end == walk.end;
        let (path, offset) = match later.first().zip(found.first()) {
            Some(((_, path), next)) if is_whole && next.is_headless => (path, 0),
            _ => (&walk.input.path, walk.place),
        };
        segment::lost(path, offset, walk.sequence)
    });
    Ok(EndScan { rest, later: found, lost })
}

/// The next record of a batch, as far as the bytes before it determine it.
#[derive(Clone, Copy)]
struct Expected {
    place: u64,
    sequence: u64,
    /// The number of records still expected, and the end of the batch.
    left: u32,
    end: u64,
    seed: u32,
    batch: Option<BatchHeader>,
    /// Whether the record is the first of its batch.
    begins: bool,
}

impl Expected {
    fn of(place: u64, header: BatchHeader, seed: u32) -> Expected {
        Expected {
            place: place + batch::HEADER_BYTES as u64,
            sequence: header.first_sequence,
            left: header.count,
            end: place + u64::from(header.bytes),
            seed,
            batch: Some(header),
            begins: true,
        }
    }

    /// Reads intact records from this position on, up to the first damaged one.
    fn run(&mut self, input: &mut Input) -> Result<Run, Error> {
        let Expected { place, sequence, seed, batch, .. } = *self;
        while self.left > 0
            && let Some((len, _)) = valid_frame(input, seed, self.end, self.place, self.sequence)?
        {
            self.place += len as u64;
            self.sequence += 1;
            self.left -= 1;
        }
        let count = self.sequence - sequence;
        Ok(Run { sequence, count, place, end: self.place, seed, batch })
    }

    /// Skips a damaged record by its stated length, which usually leads to the next record. Returns
    /// whether the length was plausible.
    fn pass(&mut self, input: &mut Input) -> Result<bool, Error> {
        let header = input.bytes(self.place, record::HEADER_BYTES)?;
        let Some(len) = record::stated_bytes(header) else { return Ok(false) };
        let leads = self.left > 1
            && header != [0; record::HEADER_BYTES]
            && self.place + (len as u64) < self.end.min(input.len_bytes);
        if leads {
            self.place += len as u64;
            self.sequence += 1;
            self.left -= 1;
        }
        Ok(leads)
    }
}

struct Scan<'a> {
    input: &'a mut Input,
    identity: Identity,
    start: u64,
    /// The offset after which there may be bytes of another segment. From there on, only batches
    /// are evidence, not other nonzero bytes.
    filled_until: u64,
    is_thorough: bool,
    next: Option<Expected>,
    /// The last batch found, and its end.
    batch: Option<(BatchHeader, u64)>,
    /// The sequence after the last intact record, and the end of that record.
    last: (u64, u64),
    tried_bytes: usize,
    found: Found,
}

impl<'a> Scan<'a> {
    fn new(input: &'a mut Input, identity: Identity, start: u64, filled_until: u64) -> Scan<'a> {
        Scan {
            input,
            identity,
            start,
            filled_until,
            is_thorough: false,
            next: None,
            batch: None,
            last: (0, start),
            tried_bytes: 0,
            found: Found { end: start, ..Found::default() },
        }
    }

    fn run(mut self) -> Result<Found, Error> {
        let step = match self.identity {
            Identity::Known { block_bytes, .. } => block_bytes.min(STEP_BYTES),
            Identity::Lost => BLOCK_BYTES_MIN,
        };
        let mut place = self.start;
        while place < self.input.len_bytes {
            if let Some(expected) = self.next.filter(|next| next.place <= place) {
                let end = self.records(expected)?;
                if end > place {
                    place = end;
                    continue;
                }
            }
            if let Some((header, seed)) = self.batch_at(place)? {
                place = self.records(Expected::of(place, header, seed))?;
                continue;
            }
            let behind_header = if place == 0 { segment::HEADER_BYTES as u64 } else { u64::MAX };
            let expected = self.next.map_or(u64::MAX, |next| next.place);
            let begin = place;
            place = (begin + 1).next_multiple_of(step).min(behind_header).min(expected);
            let bytes = self.input.bytes(begin, (place - begin) as usize)?;
            if bytes == &ZEROS[..bytes.len()] {
                let data = self.input.data_from(place)?;
                place = place.max(data - data % step).min(expected);
                continue;
            }
            let own = self.filled_until.saturating_sub(begin).min(bytes.len() as u64);
            if let Some(last) = bytes[..own as usize].iter().rposition(|&byte| byte != 0) {
                self.found.end = self.found.end.max(begin + last as u64 + 1);
            }
            if self.is_thorough
                && let Some(expected) = self.search(begin..place)?
            {
                place = self.records(expected)?;
            }
        }
        self.input.pause()?;
        if matches!(self.identity, Identity::Lost) {
            // In a recycled file, the batches with the highest sequences belong to its current
            // segment.
            let last = self.found.runs.iter().max_by_key(|run| run.sequence).map(|run| run.seed);
            self.found.runs.retain(|run| Some(run.seed) == last);
        }
        Ok(self.found)
    }

    /// Notes the intact records from the expected position on, and returns their end.
    fn records(&mut self, mut next: Expected) -> Result<u64, Error> {
        let run = next.run(self.input)?;
        if next.begins || run.count > 0 {
            self.found.end = self.found.end.max(run.end);
            self.found.runs.push(run);
            self.last = (run.end_sequence(), run.end);
        }
        if let Some(batch) = run.batch.filter(|_| next.begins) {
            self.batch = Some((batch, next.end));
            if self.filled_until < u64::MAX {
                self.found.end = self.found.end.max(next.end.min(self.input.len_bytes));
            }
        }
        next.begins = false;
        self.next = (next.left > 0 && (run.count > 0 || next.pass(self.input)?)).then_some(next);
        Ok(run.end)
    }

    /// Returns the batch at this offset, if a batch may begin there, and the seed that makes it
    /// valid.
    fn batch_at(&mut self, place: u64) -> Result<Option<(BatchHeader, u32)>, Error> {
        let may_begin = |block_bytes| {
            place == segment::HEADER_BYTES as u64 || place.is_multiple_of(block_bytes)
        };
        match self.identity {
            Identity::Known { seed, block_bytes } if may_begin(block_bytes) => {
                let bytes = self.input.bytes(place, batch::HEADER_BYTES)?;
                Ok(walk::decode(bytes, seed).map(|(header, _)| (header, seed)))
            }
            Identity::Lost if may_begin(BLOCK_BYTES_MIN) => batch_by_its_record(self.input, place),
            _ => Ok(None),
        }
    }

    /// Searches this range for the beginning of a batch or of a record, at any offset. Finds none
    /// if the segment's identity is not known.
    fn search(&mut self, range: Range<u64>) -> Result<Option<Expected>, Error> {
        let Identity::Known { seed, .. } = self.identity else { return Ok(None) };
        // A record may begin with up to three zeros, the low bytes of its length. They may end the
        // previous range, which was skipped if it contained only zeros.
        let begin = range.start.saturating_sub(3).max(self.last.1.min(range.start));
        let len = (range.end - begin) as usize + record::HEADER_BYTES - 1;
        let bytes = self.input.bytes(begin, len)?.to_vec();
        for (place, header) in (begin..range.end).zip(bytes.windows(record::HEADER_BYTES)) {
            if header.starts_with(&batch::MAGIC) {
                let header = walk::decode(self.input.bytes(place, batch::HEADER_BYTES)?, seed);
                if let Some((header, _)) = header {
                    return Ok(Some(Expected::of(place, header, seed)));
                }
            }
            if record::is_kind(header)
                && let Some(expected) = self.record_at(place, header, seed)?
            {
                return Ok(Some(expected));
            }
        }
        Ok(None)
    }

    /// Returns the record that begins at `place`, if it is plausible there.
    fn record_at(
        &mut self,
        place: u64,
        header: &[u8],
        seed: u32,
    ) -> Result<Option<Expected>, Error> {
        let Some(len) = record::stated_bytes(header) else { return Ok(None) };
        let end = place + len as u64;
        if end > self.input.len_bytes {
            return Ok(None);
        }
        if len > SHORT_BYTES {
            if self.tried_bytes + len > TRIED_BYTES_MAX {
                return Ok(None);
            }
            self.tried_bytes += len;
        }
        let (sequence, known) = self.last;
        let batch = self.batch.filter(|(_, batch_end)| end <= *batch_end);
        let near = match batch {
            // Each record still expected in the batch takes up at least its header.
            Some((batch, batch_end)) => {
                let sequences = batch.first_sequence..end_sequence(&batch);
                let first = sequences.end.saturating_sub(1 + most_records(end, batch_end));
                sequences.start.max(first)..sequences.end
            }
            // Each lost record before this one takes up at least its header, too.
            None => sequence..sequence + most_records(known, place) + 1,
        };
        let all = near.start.min(sequence.saturating_sub(FAR))..near.end.max(sequence + FAR);
        let frame = self.input.bytes(place, len)?;
        let Some(sequence) = sequence_of(frame, seed, &all) else { return Ok(None) };
        let is_near = near.contains(&sequence);
        // Bytes may have been removed before this record. One checksum may match by chance, but not
        // two.
        if !is_near && valid_frame(self.input, seed, u64::MAX, end, sequence + 1)?.is_none() {
            return Ok(None);
        }
        let batch = batch.filter(|_| is_near);
        let (left, end) = batch.map_or((u32::MAX, u64::MAX), |(batch, end)| {
            ((end_sequence(&batch) - sequence) as u32, end)
        });
        let batch = batch.map(|(batch, _)| batch);
        Ok(Some(Expected { place, sequence, left, end, seed, batch, begins: false }))
    }
}

/// Returns the maximum number of records that fit between two offsets.
fn most_records(from: u64, to: u64) -> u64 {
    to.saturating_sub(from) / record::HEADER_BYTES as u64
}

/// Returns the batch at `place` in an unknown segment, and its seed. Both the header and the first
/// record must be valid with the same seed.
///
/// The batch that closes a log has no record, but each of its other fields can have only one value.
fn batch_by_its_record(input: &mut Input, place: u64) -> Result<Option<(BatchHeader, u32)>, Error> {
    let bytes = input.bytes(place, batch::HEADER_BYTES + record::HEADER_BYTES)?;
    let Some(header) = bytes.get(4..batch::HEADER_BYTES) else { return Ok(None) };
    // For any bytes there is a seed that makes them valid. Only a second checksum proves that this
    // seed is the right one.
    let seed = before(u32_at(header, 0), &header[4..]);
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

/// Returns the sequence, within `sequences`, that makes `frame` a valid record of a segment; `None`
/// if there is none.
///
/// A record's checksum starts with the segment's seed and the sequence. Undoing the effect of the
/// record's bytes leaves the checksum of these two, in which only the lower half of the sequence is
/// unknown.
fn sequence_of(frame: &[u8], seed: u32, sequences: &Range<u64>) -> Option<u64> {
    let (header, own) = frame.split_at_checked(record::HEADER_BYTES)?;
    let covered = record::covered(u32_at(header, 0), own);
    let behind = before(before(u32_at(header, 4), covered), &header[..4]);
    let halves = sequences.start >> 32..=sequences.end >> 32;
    halves.map(|high| high << 32 | u64::from(lower_half(behind, high as u32, seed))).find(
        |sequence| sequences.contains(sequence) && record::parse(frame, seed, *sequence).is_some(),
    )
}

/// Returns the lower half of a sequence. `checksum` is the checksum of the sequence, continued from
/// the seed.
fn lower_half(checksum: u32, high: u32, seed: u32) -> u32 {
    before(before(checksum, &high.to_le_bytes()), &[0; 4]) ^ seed
}

/// The polynomial of CRC32C (Castagnoli), reflected: RFC 3720, appendix B.4.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// A table that maps the highest byte of a CRC32C state to the state eight bits earlier, as far as
/// that byte determines it.
///
/// Each bit that has entered a CRC can be removed again. The highest bit of the polynomial is set,
/// so the highest bit of a state shows whether the polynomial was added.
static TAKEN_OUT: [u32; 256] = {
    let mut taken_out = [0; 256];
    let mut byte = 0;
    while byte < taken_out.len() {
        let mut state = (byte as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            let was_added = state >> 31 == 1;
            state = if was_added { ((state ^ POLYNOMIAL) << 1) | 1 } else { state << 1 };
            bit += 1;
        }
        taken_out[byte] = state;
        byte += 1;
    }
    taken_out
};

/// Returns the initial value for which the CRC32C of `bytes` is `checksum`.
fn before(checksum: u32, bytes: &[u8]) -> u32 {
    let take_out =
        |state: u32, byte: &u8| (state << 8) ^ TAKEN_OUT[(state >> 24) as usize] ^ u32::from(*byte);
    !bytes.iter().rev().fold(!checksum, take_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_tells_its_sequence() {
        let mut frame = [&[0; record::HEADER_BYTES], &b"hello"[..]].concat();
        for sequence in [0, 42, u64::from(u32::MAX), 1 << 32, (7 << 32) + 5] {
            for write in [record::seal, record::skip] {
                write(&mut frame, 7, sequence);
                let around = sequence.saturating_sub(3)..sequence + 3;
                assert_eq!(sequence_of(&frame, 7, &around), Some(sequence));
                assert_eq!(sequence_of(&frame, 8, &around), None);
                assert_eq!(sequence_of(&frame, 7, &(sequence + 1..sequence + 9)), None);
            }
        }
    }

    #[test]
    fn a_checksum_is_taken_back_to_where_it_began() {
        for seed in [0, 1, 0x1234_5678, u32::MAX] {
            for bytes in [&b""[..], b"x", b"forty bytes of a batch header, or so"] {
                assert_eq!(before(crc32c::crc32c_append(seed, bytes), bytes), seed);
            }
        }
    }
}
