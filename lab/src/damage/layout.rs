//! Valid logs, written by `docs/log-format.md`, without code of the library.

use super::Files;
use super::original::{Original, Record};
use arbitrary::Arbitrary;

const SEGMENT_HEADER: usize = 64;
const BATCH_HEADER: usize = 48;
const RECORD_HEADER: usize = 8;
const AFTER_CUT: u32 = 1;
const CLOSED: u32 = 2;
const WHOLE: u32 = 4;
/// The version of the format, above the bit of recycled segments.
const VERSION: u8 = 1 << 1;
/// The bytes that the writer overwrites in a recycled file.
const MARKED_BYTES: usize = 4096;

/// The form of a log before it is damaged.
#[derive(Arbitrary, Clone, Debug)]
pub struct Shape {
    segments: u8,
    /// The batches of all segments in turn, repeated as often as needed.
    batches: [Batch; 4],
    /// How many batches the durable frontier is behind the written one.
    lag: u8,
    /// Blocks of zeros after the last batch.
    prepared: u8,
    is_closed: bool,
    has_next_prepared: bool,
    /// Whether the segments and the prepared file are recycled, in turn, repeated as often as
    /// needed.
    recycled: [bool; 3],
}

impl Shape {
    fn is_recycled(&self, index: u8) -> bool {
        self.recycled[usize::from(index) % 3]
    }
}

#[derive(Arbitrary, Clone, Debug)]
struct Batch {
    records: u8,
    len: u8,
    /// The skipped record, if it is in the batch.
    skipped: u8,
    /// The last record is cut off and written again by the next batch.
    is_cut: bool,
    /// The batch is atomic, unless it is cut.
    is_whole: bool,
}

/// A log while it is laid out.
#[derive(Default)]
struct Writer {
    block_bytes: usize,
    files: Files,
    records: Vec<Record>,
    segment_id: u64,
    is_recycled: bool,
    bytes: Vec<u8>,
    used: usize,
    last_checksum: u32,
    after_cut: bool,
    /// Nothing follows the segment's own batches: recovery cut the file off.
    is_truncated: bool,
    /// The frontier after each batch.
    frontiers: Vec<u64>,
    lag: usize,
}

/// Returns the name of a segment's file.
pub fn name(number: u64) -> String {
    format!("{number:020}.segment")
}

/// Returns the number in the name of a segment's file.
pub fn number(name: &str) -> u64 {
    name.split('.').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// Reads four bytes.
pub fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

/// Reads eight bytes.
pub fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

/// Returns the checksum of a segment's identity, from which its other checksums continue.
pub fn seed(log_id: u64, segment_id: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&log_id.to_le_bytes()), &segment_id.to_le_bytes())
}

const LOG_ID: u64 = 0x0123_4567_89ab_cdef;

/// Writes a log in blocks of `block_bytes`.
pub fn build(shape: &Shape, block_bytes: usize) -> Original {
    let lag = usize::from(shape.lag % 4);
    let mut writer = Writer { block_bytes, frontiers: vec![0], lag, ..Writer::default() };
    let segments = 1 + shape.segments % 4;
    for index in 0..segments {
        writer.begin(shape.is_recycled(index));
        for batch in &shape.batches[..1 + usize::from(index) % 4] {
            writer.batch(batch);
        }
    }
    if shape.is_closed {
        writer.frame_batch(&[], CLOSED, writer.next_sequence());
    }
    let end = writer.bytes.len() + usize::from(shape.prepared % 4) * block_bytes;
    writer.bytes.resize(end, 0);
    writer.end_segment();
    if shape.has_next_prepared {
        let mut next = vec![0; 2 * block_bytes];
        if shape.is_recycled(segments) {
            writer.leave_old_batches(&mut next);
            next[SEGMENT_HEADER..][..8].copy_from_slice(b"recycled");
        }
        writer.files.insert(name(writer.segment_id + 1), next);
    }
    Original::new(writer.files, Files::new(), writer.records)
}

impl Writer {
    fn next_sequence(&self) -> u64 {
        self.records.len() as u64
    }

    fn begin(&mut self, is_recycled: bool) {
        let previous = if self.segment_id == 0 { (0, 0) } else { (self.used, self.last_checksum) };
        self.end_segment();
        self.segment_id += 1;
        (self.is_recycled, self.is_truncated) = (is_recycled, false);
        let first_sequence = self.next_sequence();
        self.bytes = vec![0; self.block_bytes];
        let block_bytes = self.block_bytes as u32;
        let id = self.segment_id;
        put_segment_header(&mut self.bytes, is_recycled, block_bytes, id, first_sequence, previous);
        (self.used, self.last_checksum) = (SEGMENT_HEADER, 0);
    }

    fn end_segment(&mut self) {
        if self.segment_id > 0 {
            let mut bytes = std::mem::take(&mut self.bytes);
            if self.is_recycled && !self.is_truncated {
                self.leave_old_batches(&mut bytes);
            }
            self.files.insert(name(self.segment_id), bytes);
        }
    }

    /// Appends an earlier segment's remains in the file.
    fn leave_old_batches(&self, bytes: &mut Vec<u8>) {
        bytes.resize(bytes.len().max(MARKED_BYTES), 0);
        if let Some((_, old)) = self.files.last_key_value() {
            let kept = old.get(bytes.len()..).filter(|rest| !rest.is_empty());
            let kept = kept.or_else(|| old.get(self.block_bytes..));
            bytes.extend_from_slice(kept.unwrap_or_default());
        }
    }

    fn batch(&mut self, batch: &Batch) {
        let records = 1 + u64::from(batch.records % 6);
        let first = self.next_sequence();
        let own = |sequence: u64| {
            let len = usize::from(batch.len) + sequence as usize % 3;
            (0..len).map(|at| (sequence as usize * 7 + at) as u8).collect::<Vec<u8>>()
        };
        let skipped = u64::from(batch.skipped % 12);
        let frames: Vec<Option<Vec<u8>>> =
            (0..records).map(|index| (index != skipped).then(|| own(first + index))).collect();
        let lagging = self.frontiers.len().saturating_sub(1 + self.lag);
        let durable = self.frontiers[lagging];
        let is_whole = batch.is_whole && !batch.is_cut;
        let ends = self.frame_batch(&frames, if is_whole { WHOLE } else { 0 }, durable);
        self.records.extend(frames);
        self.frontiers.push(self.next_sequence());
        if batch.is_cut {
            self.cut(ends);
        }
    }

    /// Cuts off the last record as torn, as recovery would; all before it was flushed.
    fn cut(&mut self, ends: Vec<usize>) {
        self.records.pop();
        let end =
            ends.iter().rev().nth(1).copied().expect("where the records begin is one of them");
        self.bytes.truncate(end);
        self.is_truncated = true;
        self.used = end;
        self.after_cut = true;
        *self.frontiers.last_mut().expect("there is one") = self.next_sequence();
        self.frontiers = vec![self.next_sequence()];
    }

    /// Appends a batch, and returns where its records begin and where each ends.
    fn frame_batch(
        &mut self,
        frames: &[Option<Vec<u8>>],
        flags: u32,
        durable_sequence: u64,
    ) -> Vec<usize> {
        let flags = flags | if std::mem::take(&mut self.after_cut) { AFTER_CUT } else { 0 };
        let is_first = self.used == SEGMENT_HEADER;
        let begin = if is_first { self.used } else { self.used.next_multiple_of(self.block_bytes) };
        let seed = seed(LOG_ID, self.segment_id);
        let mut bytes = vec![0; BATCH_HEADER];
        let mut ends = vec![begin + BATCH_HEADER];
        for (sequence, frame) in (self.next_sequence()..).zip(frames) {
            put_record(&mut bytes, frame.as_deref(), seed, sequence);
            ends.push(begin + bytes.len());
        }
        let header = BatchHeader {
            bytes: bytes.len() as u32,
            count: frames.len() as u32,
            first_sequence: self.next_sequence(),
            durable_sequence,
            flags,
        };
        self.last_checksum = header.put(&mut bytes, seed);
        self.used = begin + bytes.len();
        self.bytes.resize(self.used.next_multiple_of(self.block_bytes), 0);
        self.bytes[begin..self.used].copy_from_slice(&bytes);
        ends
    }
}

/// The fields of a batch's header.
#[derive(Clone, Copy)]
pub struct BatchHeader {
    pub bytes: u32,
    pub count: u32,
    pub first_sequence: u64,
    pub durable_sequence: u64,
    pub flags: u32,
}

impl BatchHeader {
    /// Reads the header at the beginning of `bytes`, valid or not.
    pub fn get(bytes: &[u8]) -> BatchHeader {
        BatchHeader {
            bytes: word(bytes, 8),
            count: word(bytes, 12),
            first_sequence: long(bytes, 16),
            durable_sequence: long(bytes, 24),
            flags: word(bytes, 40),
        }
    }

    /// Returns whether `header` is the header of a batch in a segment with this seed.
    pub fn is_valid(header: &[u8], seed: u32) -> bool {
        let checksum = crc32c::crc32c_append(seed, &header[8..BATCH_HEADER]);
        header.starts_with(b"WB1\xf0") && word(header, 4) == checksum
    }

    /// Puts the header at the beginning of `bytes`, and returns its checksum.
    pub fn put(&self, bytes: &mut [u8], seed: u32) -> u32 {
        let header = &mut bytes[..BATCH_HEADER];
        header.fill(0);
        header[..4].copy_from_slice(b"WB1\xf0");
        header[8..12].copy_from_slice(&self.bytes.to_le_bytes());
        header[12..16].copy_from_slice(&self.count.to_le_bytes());
        header[16..24].copy_from_slice(&self.first_sequence.to_le_bytes());
        header[24..32].copy_from_slice(&self.durable_sequence.to_le_bytes());
        header[40..44].copy_from_slice(&self.flags.to_le_bytes());
        let checksum = crc32c::crc32c_append(seed, &header[8..]);
        header[4..8].copy_from_slice(&checksum.to_le_bytes());
        checksum
    }
}

fn put_segment_header(
    to: &mut [u8],
    is_recycled: bool,
    block_bytes: u32,
    id: u64,
    first_sequence: u64,
    previous: (usize, u32),
) {
    to[..8].copy_from_slice(b"wrotelog");
    to[8] = VERSION | u8::from(is_recycled);
    to[16..24].copy_from_slice(&LOG_ID.to_le_bytes());
    to[24..32].copy_from_slice(&id.to_le_bytes());
    to[32..40].copy_from_slice(&first_sequence.to_le_bytes());
    to[40..48].copy_from_slice(&(previous.0 as u64).to_le_bytes());
    to[48..52].copy_from_slice(&previous.1.to_le_bytes());
    to[52..56].copy_from_slice(&block_bytes.to_le_bytes());
    reseal_segment_header(to);
}

/// Recomputes the checksum of a segment's header.
pub fn reseal_segment_header(header: &mut [u8]) {
    let checksum =
        crc32c::crc32c_append(crc32c::crc32c(&header[..12]), &header[16..SEGMENT_HEADER]);
    header[12..16].copy_from_slice(&checksum.to_le_bytes());
}

fn put_record(to: &mut Vec<u8>, own: Option<&[u8]>, seed: u32, sequence: u64) {
    let (kind, bytes, covered) = match own {
        Some(own) => (0x4000_0000, own, own),
        None => (0x8000_0000, &b"half a record"[..], &[][..]),
    };
    let length = (kind | bytes.len() as u32).to_le_bytes();
    let at = to.len();
    to.resize(at + RECORD_HEADER, 0);
    to[at..at + 4].copy_from_slice(&length);
    let place = crc32c::crc32c_append(seed, &sequence.to_le_bytes());
    let checksum = crc32c::crc32c_append(crc32c::crc32c_append(place, &length), covered);
    to[at + 4..].copy_from_slice(&checksum.to_le_bytes());
    to.extend_from_slice(bytes);
}
