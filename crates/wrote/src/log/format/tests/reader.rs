//! A second reader of both formats, made from `docs/log-format.md` alone. It shares no code with
//! the first.

/// A file: its name and its bytes.
pub(super) type File = (String, Vec<u8>);

/// The result of a reader.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReadLog {
    pub(super) records: Vec<(u64, Vec<u8>)>,
    pub(super) end: End,
    /// Segments whose header does not state the end of the segment before.
    pub(super) unlinked: Vec<u64>,
}

/// The end of a log.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Its writer closed it.
    Closed { sequence: u64 },
    /// No byte stands behind the last record.
    Open { sequence: u64 },
    /// Bytes behind the last record were never durable.
    Torn { sequence: u64, offset: usize },
    /// Durable records are lost.
    Damaged { sequence: u64, offset: usize },
}

/// Computes the document's "The checksum", bit by bit.
fn crc32c(parts: &[&[u8]]) -> u32 {
    let mut register = !0u32;
    for byte in parts.iter().flat_map(|part| part.iter()) {
        register ^= u32::from(*byte);
        for _ in 0..8 {
            register = (register >> 1) ^ (0x82f6_3b78 & 0u32.wrapping_sub(register & 1));
        }
    }
    !register
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

/// Returns the numbers in names with this ending, in order, each with its file.
fn numbered<'a>(files: &'a [File], ending: &str) -> Vec<(u64, &'a [u8])> {
    let mut found: Vec<_> = files
        .iter()
        .filter_map(|(name, bytes)| {
            let digits = name.strip_suffix(ending)?;
            let is_number = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
            is_number.then(|| Some((digits.parse().ok()?, &bytes[..])))?
        })
        .collect();
    found.sort_unstable();
    found
}

/// A segment with a valid header.
struct Segment<'a> {
    bytes: &'a [u8],
    first_sequence: u64,
    previous: (usize, u32),
    block: usize,
    /// The log's id and the segment's, as bytes of the header.
    identity: &'a [u8],
}

struct Batch {
    begin: usize,
    end: usize,
    checksum: u32,
    count: u32,
    first_sequence: u64,
    durable_sequence: u64,
    after_cut: bool,
    closed: bool,
}

fn segment(bytes: &[u8], number: u64) -> Option<Segment<'_>> {
    let header = bytes.get(..64)?;
    let checksum = crc32c(&[&header[..12], &header[16..]]);
    let is_ours = &header[..8] == b"wrotelog" && word(header, 8) == 1;
    (is_ours && word(header, 12) == checksum && long(header, 24) == number).then(|| Segment {
        bytes,
        first_sequence: long(header, 32),
        previous: (long(header, 40) as usize, word(header, 48)),
        block: word(header, 52) as usize,
        identity: &header[16..32],
    })
}

impl Segment<'_> {
    fn batch(&self, begin: usize) -> Option<Batch> {
        let header = self.bytes.get(begin..begin.checked_add(48)?)?;
        let checksum = crc32c(&[self.identity, &header[8..]]);
        let (length, flags) = (word(header, 8) as usize, word(header, 40));
        let valid = header[..4] == [0x57, 0x42, 0x31, 0xf0] && word(header, 4) == checksum;
        (valid && flags < 4 && length >= 48).then(|| Batch {
            begin,
            end: begin + length,
            checksum,
            count: word(header, 12),
            first_sequence: long(header, 16),
            durable_sequence: long(header, 24),
            after_cut: flags & 1 != 0,
            closed: flags & 2 != 0,
        })
    }

    /// Reads the frame at `at`: its end, and its bytes if it is a record.
    fn frame(&self, at: usize, sequence: u64) -> Option<(usize, Option<&[u8]>)> {
        let header = self.bytes.get(at..at.checked_add(8)?)?;
        let length = word(header, 0);
        let end = at + 8 + (length & 0x3fff_ffff) as usize;
        let own = self.bytes.get(at + 8..end)?;
        let covered = match length >> 30 {
            1 => own,
            2 => &[],
            _ => return None,
        };
        let sequence = sequence.to_le_bytes();
        let checksum = crc32c(&[self.identity, &sequence, &header[..4], covered]);
        let record = (length >> 30 == 1).then_some(own);
        (word(header, 4) == checksum).then_some((end, record))
    }

    /// Tells whether a valid batch header from `from` on says that `sequence` was durable.
    fn knows_durable(&self, from: usize, sequence: u64) -> bool {
        let blocks = (0..self.bytes.len()).step_by(self.block);
        let mut places = std::iter::once(64).chain(blocks).filter(|&place| place >= from);
        places.any(|at| self.batch(at).is_some_and(|batch| batch.durable_sequence > sequence))
    }
}

/// The document's "Where a reader stands".
struct ReadPlace {
    /// The end of the last valid part of the segment.
    at: usize,
    sequence: u64,
    /// The checksum in the last batch header; 0 before the first.
    checksum: u32,
    /// Whether that batch was read to its end.
    whole: bool,
    closed: bool,
}

/// Reads the records of one segment: steps 3 to 5.
fn read_segment(segment: &Segment<'_>, place: &mut ReadPlace, records: &mut Vec<(u64, Vec<u8>)>) {
    (place.at, place.checksum, place.whole) = (64, 0, true);
    loop {
        let begin = place.at.next_multiple_of(segment.block);
        let next = |batch: &Batch| batch.first_sequence == place.sequence;
        let first = segment.batch(64).filter(|batch| place.at == 64 && next(batch));
        let follows =
            |batch: &Batch| next(batch) && (batch.after_cut || place.whole && place.at > 64);
        let Some(batch) = first.or_else(|| segment.batch(begin).filter(follows)) else { return };
        (place.at, place.checksum, place.closed) = (batch.begin + 48, batch.checksum, batch.closed);
        let end_sequence = place.sequence + u64::from(batch.count);
        while place.sequence < end_sequence {
            let frame = segment.frame(place.at, place.sequence);
            let Some((end, record)) = frame.filter(|&(end, _)| end <= batch.end) else { break };
            records.extend(record.map(|bytes| (place.sequence, bytes.to_vec())));
            (place.at, place.sequence) = (end, place.sequence + 1);
        }
        place.whole = place.sequence == end_sequence && place.at == batch.end;
    }
}

/// Reads a framed log.
pub(super) fn read(files: &[File]) -> ReadLog {
    let files = numbered(files, ".segment");
    let (mut records, mut unlinked) = (Vec::new(), Vec::new());
    let mut place = ReadPlace { at: 0, sequence: 0, checksum: 0, whole: true, closed: false };
    let mut current = 0;
    for (index, &(number, bytes)) in files.iter().enumerate() {
        let Some(next) = segment(bytes, number) else { break };
        if index > 0 && next.first_sequence != place.sequence {
            break;
        }
        if index > 0 && next.previous != (place.at, place.checksum) {
            unlinked.push(number);
        }
        (current, place.sequence) = (index, next.first_sequence);
        read_segment(&next, &mut place, &mut records);
    }
    let end = end(&files[current..], &place);
    ReadLog { records, end, unlinked }
}

/// Examines the bytes behind the last record: step 6.
fn end(files: &[(u64, &[u8])], place: &ReadPlace) -> End {
    let ReadPlace { at: offset, sequence, .. } = *place;
    let from = |index: usize| if index == 0 { offset } else { 0 };
    let is_damaged = |(index, &(number, bytes)): (usize, &(u64, &[u8]))| {
        let header = bytes.get(..64).filter(|header| header.iter().any(|&byte| byte != 0));
        match segment(bytes, number) {
            Some(segment) => segment.knows_durable(from(index), sequence),
            None => header.is_some(),
        }
    };
    if files.iter().enumerate().any(is_damaged) {
        return End::Damaged { sequence, offset };
    }
    let is_torn = |(index, &(_, bytes)): (usize, &(u64, &[u8]))| {
        bytes.get(from(index)..).is_some_and(|rest| rest.iter().any(|&byte| byte != 0))
    };
    if !place.whole || files.iter().enumerate().any(is_torn) {
        return End::Torn { sequence, offset };
    }
    if place.closed { End::Closed { sequence } } else { End::Open { sequence } }
}

/// Reads a log of lines.
pub(super) fn read_lines(files: &[File]) -> ReadLog {
    let files = numbered(files, ".log");
    let mut records = Vec::new();
    let mut sequence = files.first().map_or(0, |&(number, _)| number);
    for (index, &(number, bytes)) in files.iter().enumerate() {
        let zero = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        let end = bytes[..zero].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        if number != sequence {
            let end = End::Damaged { sequence, offset: 0 };
            return ReadLog { records, end, unlinked: Vec::new() };
        }
        for line in bytes[..end].split_inclusive(|&byte| byte == b'\n') {
            records.push((sequence, line[..line.len() - 1].to_vec()));
            sequence += 1;
        }
        if end < bytes.len() {
            let offset = end;
            let is_last = index + 1 == files.len();
            let torn = End::Torn { sequence, offset };
            let end = if is_last { torn } else { End::Damaged { sequence, offset } };
            return ReadLog { records, end, unlinked: Vec::new() };
        }
    }
    ReadLog { records, end: End::Open { sequence }, unlinked: Vec::new() }
}
