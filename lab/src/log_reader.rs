//! A second reader of both formats, written only from `docs/log-format.md`. It shares no code with
//! the first.

#![forbid(unsafe_code)]

/// A file, as its name and its bytes.
pub type File = (String, Vec<u8>);

/// The result of a reader.
#[derive(Debug, PartialEq, Eq)]
pub struct ReadLog {
    /// The records, as their sequences and bytes.
    pub records: Vec<(u64, Vec<u8>)>,
    /// The end of the log, as step 6 determines it.
    pub end: End,
    /// Segments whose header does not state the end of the previous segment.
    pub unlinked: Vec<u64>,
    /// Segments with garbage after their last record, although the log continues in a later
    /// segment.
    pub garbage: Vec<u64>,
}

/// The end of a log. Each variant contains the next sequence; two also contain the offset after the
/// last record in its segment.
#[derive(Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of all ends")]
pub enum End {
    /// The writer has closed the log.
    Closed { sequence: u64 },
    /// There are no bytes after the last record.
    Open { sequence: u64 },
    /// There are bytes after the last record that never were durable.
    Torn { sequence: u64, offset: usize },
    /// Durable records have been lost.
    Damaged { sequence: u64, offset: usize },
}

/// Computes the checksum bit by bit, as the document's section "The checksum" describes.
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

/// Reads a four-byte number at an offset.
pub fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Reads an eight-byte number at an offset.
pub fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

/// Returns the numbers in the names with this ending, in order, each with its file's bytes.
fn numbered<'a>(files: &'a [File], ending: &str) -> Vec<(u64, &'a [u8])> {
    let mut found: Vec<_> = files
        .iter()
        .filter_map(|(name, bytes)| {
            let digits = name.strip_suffix(ending)?;
            let is_number = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
            let number = digits.parse().ok().filter(|&number| is_number && number > 0)?;
            Some((number, &bytes[..]))
        })
        .collect();
    found.sort_unstable();
    found
}

/// The bytes of a segment, and facts about it.
#[derive(Clone, Copy)]
struct Segment<'a> {
    bytes: &'a [u8],
    block: usize,
    /// The log's ID and the segment's ID, as bytes of a header.
    identity: [u8; 16],
    /// Whether the file previously belonged to another segment.
    is_recycled: bool,
    /// The sequence from which a cut has removed the records.
    limit: u64,
}

/// The fields of a valid segment header.
struct Header {
    log: u64,
    first_sequence: u64,
    previous: (usize, u32),
    block: usize,
    is_recycled: bool,
    /// The number of the previous segment, and whether a cut has stated it.
    before: u64,
    is_cut: bool,
}

struct Batch {
    begin: usize,
    end: usize,
    longest: usize,
    checksum: u32,
    count: u32,
    first_sequence: u64,
    durable_sequence: u64,
    after_cut: bool,
    closed: bool,
    whole: bool,
}

/// The records of a batch that have not been read yet.
#[derive(Clone, Copy)]
struct Rest {
    left: u32,
    end: usize,
}

fn identity(log: u64, number: u64) -> [u8; 16] {
    let mut identity = [0; 16];
    identity[..8].copy_from_slice(&log.to_le_bytes());
    identity[8..].copy_from_slice(&number.to_le_bytes());
    identity
}

fn header(bytes: &[u8], number: u64) -> Option<Header> {
    let header = bytes.get(..64)?;
    let checksum = crc32c(&[&header[..12], &header[16..]]);
    let block = word(header, 52);
    let (kind, back) = (header[8], u64::from(word(header, 8) >> 8));
    let before = match back {
        0 => number.checked_sub(1)?,
        0xff_ffff => 0,
        back => number.checked_sub(back).filter(|&before| before > 0)?,
    };
    let is_ours = &header[..8] == b"wrotelog" && (kind & 0x7f) >> 1 == 1 && block >= 512;
    let is_ours = is_ours && block.is_power_of_two();
    (is_ours && word(header, 12) == checksum && long(header, 24) == number).then(|| Header {
        is_recycled: kind & 1 != 0,
        before,
        is_cut: back > 0,
        log: long(header, 16),
        first_sequence: long(header, 32),
        previous: (long(header, 40) as usize, word(header, 48)),
        block: block as usize,
    })
}

impl<'a> Segment<'a> {
    fn batch(&self, begin: usize) -> Option<Batch> {
        let header = self.bytes.get(begin..begin.checked_add(48)?)?;
        let checksum = crc32c(&[&self.identity, &header[8..]]);
        let (length, flags) = (word(header, 8) as usize, word(header, 40));
        let valid = header[..4] == [0x57, 0x42, 0x31, 0xf0] && word(header, 4) == checksum;
        (valid && flags & !7 == 0 && (48..=134_217_728).contains(&length)).then(|| Batch {
            begin,
            end: begin + length,
            longest: word(header, 44) as usize,
            checksum,
            count: word(header, 12),
            first_sequence: long(header, 16),
            durable_sequence: long(header, 24),
            after_cut: flags & 1 != 0,
            closed: flags & 2 != 0,
            whole: flags & 4 != 0,
        })
    }

    /// Returns whether the records of a batch count: in an atomic batch, all of them must be valid.
    fn counts(&self, batch: &Batch) -> bool {
        let mut at = batch.begin + 48;
        let is_there = |sequence| match self.record(at, batch.end, sequence) {
            Some((end, _)) => {
                at = end;
                true
            }
            None => false,
        };
        let sequences = batch.first_sequence..batch.first_sequence + u64::from(batch.count);
        !batch.whole || sequences.into_iter().all(is_there)
    }

    /// Reads the record at offset `at` of a batch that ends at `end`. Returns the offset after it
    /// and its bytes, which are `None` for a slot without a record. Returns `None` if the record is
    /// not valid.
    fn record(&self, at: usize, end: usize, sequence: u64) -> Option<(usize, Option<&'a [u8]>)> {
        let header = self.bytes.get(at..at.checked_add(8)?)?;
        let length = word(header, 0);
        let own_end = self.stated_end(at)?;
        let own = self.bytes.get(at + 8..own_end).filter(|_| own_end <= end)?;
        let covered = match length >> 30 {
            1 => own,
            2 => &[],
            _ => return None,
        };
        let sequence = sequence.to_le_bytes();
        let checksum = crc32c(&[&self.identity, &sequence, &header[..4], covered]);
        let record = (length >> 30 == 1).then_some(own);
        (word(header, 4) == checksum).then_some((own_end, record))
    }

    /// Returns the batches that may extend beyond offset `at`, according to the length stated in
    /// the segment's first batch; `None` if it states none.
    fn before(&self, at: usize, first: &Batch) -> Option<Vec<Batch>> {
        let longest = Some(first.longest).filter(|&longest| longest > 0 && !first.after_cut)?;
        let blocks = (0..at).step_by(self.block).filter(|&begin| at - begin < longest + self.block);
        let begins = Some(64).into_iter().chain(blocks);
        let batches = begins.filter_map(|begin| self.batch(begin));
        Some(batches.filter(|batch| batch.end - batch.begin <= longest).collect())
    }

    /// Returns whether something was written after a reader's position.
    fn has_more(&self, place: &Place) -> bool {
        if !self.is_recycled {
            return is_filled(self.bytes, place.at);
        }
        let valid = place.rest.map(|rest| self.valid(place.at, place.sequence, rest));
        self.durable(place.at, valid.unwrap_or_default()).is_some()
    }

    /// Returns the end of the record at offset `at`, according to its stated length; `None` if the
    /// segment ends within the record's header.
    fn stated_end(&self, at: usize) -> Option<usize> {
        let header = self.bytes.get(at..at.checked_add(8)?)?;
        Some(at + 8 + (word(header, 0) & 0x3fff_ffff) as usize)
    }

    /// Returns the ranges of a batch's valid records from offset `at` on. Stops at the second
    /// invalid record in a row.
    fn valid(&self, mut at: usize, mut sequence: u64, rest: Rest) -> Vec<std::ops::Range<usize>> {
        let mut ranges = Vec::new();
        let mut was_valid = true;
        for _ in 0..rest.left {
            let own = self.record(at, rest.end, sequence);
            let Some(end) = self.stated_end(at) else { break };
            if own.is_none() && !was_valid {
                break;
            }
            was_valid = own.is_some();
            if was_valid {
                ranges.push(at..end);
            }
            (at, sequence) = (end, sequence + 1);
        }
        ranges
    }

    /// Returns the maximum `durable_sequence` of the batches from offset `from` on; `None` if there
    /// is no batch. No batch begins within a valid record, and `valid` contains the ranges of those
    /// records that follow `from`.
    fn durable(&self, from: usize, mut valid: Vec<std::ops::Range<usize>>) -> Option<u64> {
        let mut durable = None;
        let blocks = (0..self.bytes.len()).step_by(self.block).skip_while(|&at| at < from);
        let first = Some(64).filter(|_| from == 0);
        for at in first.into_iter().chain(blocks) {
            if valid.iter().any(|range| range.contains(&at)) {
                continue;
            }
            let Some(batch) = self.batch(at) else { continue };
            durable = durable.max(Some(batch.durable_sequence));
            let rest = Rest { left: batch.count, end: batch.end };
            valid = self.valid(at + 48, batch.first_sequence, rest);
        }
        durable
    }
}

/// A reader's position in a log.
#[derive(Default)]
struct Place {
    at: usize,
    sequence: u64,
    /// The checksum in the last batch header; 0 before the first batch.
    checksum: u32,
    /// The rest of the last batch; `None` before the first batch of a segment.
    rest: Option<Rest>,
    closed: bool,
}

impl Place {
    /// Returns whether the last batch has been read completely.
    fn is_whole(&self) -> bool {
        self.rest.is_none_or(|rest| rest.left == 0)
    }
}

/// Reads the records of one segment, as in steps 3 and 4.
fn read_segment(segment: &Segment<'_>, place: &mut Place, records: &mut Vec<(u64, Vec<u8>)>) {
    loop {
        let begin = place.at.next_multiple_of(segment.block);
        let is_left = |batch: &Batch| batch.first_sequence < segment.limit || batch.count == 0;
        let next = |batch: &Batch| {
            batch.first_sequence == place.sequence && is_left(batch) && segment.counts(batch)
        };
        let first = segment.batch(64).filter(|batch| place.rest.is_none() && next(batch));
        let was_read = place.rest.is_some_and(|rest| rest.left == 0);
        let follows = |batch: &Batch| next(batch) && (was_read || batch.after_cut);
        let (begin, batch) = match first {
            Some(batch) => (64, batch),
            None => match segment.batch(begin).filter(follows) {
                Some(batch) => (begin, batch),
                None => return,
            },
        };
        (place.at, place.checksum, place.closed) = (begin + 48, batch.checksum, batch.closed);
        let mut rest = Rest { left: batch.count, end: batch.end };
        while rest.left > 0 {
            let record = segment.record(place.at, rest.end, place.sequence);
            let Some((end, record)) = record else { break };
            records.extend(record.map(|bytes| (place.sequence, bytes.to_vec())));
            (place.at, place.sequence, rest.left) = (end, place.sequence + 1, rest.left - 1);
        }
        if rest.left == 0 {
            place.at = rest.end;
        }
        place.rest = Some(rest);
    }
}

fn of_header<'a>(bytes: &'a [u8], header: &Header, number: u64) -> Segment<'a> {
    let Header { block, is_recycled, log, .. } = *header;
    let identity = identity(log, number);
    Segment { bytes, block, identity, is_recycled, limit: u64::MAX }
}

/// Files by number, and for some of them the sequence from which a cut has removed the records.
type LiveFiles<'a> = (Vec<(u64, &'a [u8])>, Vec<(u64, u64)>);

/// Leaves out the files that a cut has removed from the log, as in step 1.
fn without_cut(files: Vec<(u64, &[u8])>) -> LiveFiles<'_> {
    let (mut live, mut limits) = (Vec::new(), Vec::new());
    let mut most = u64::MAX;
    for (number, bytes) in files.into_iter().rev() {
        if number > most {
            continue;
        }
        most = u64::MAX;
        if let Some(own) = header(bytes, number).filter(|own| own.is_cut) {
            most = own.before;
            limits.push((own.before, own.first_sequence));
        }
        live.push((number, bytes));
    }
    live.reverse();
    (live, limits)
}

/// For each segment at which a reader may begin, as in step 2, returns the files from that segment
/// on.
pub fn beginnings(files: &[File]) -> Vec<&[File]> {
    let begins_log = |file: &File| {
        let own = numbered(std::slice::from_ref(file), ".segment");
        let header = own.first().and_then(|&(number, bytes)| header(bytes, number));
        header.is_some_and(|header| header.first_sequence == 0)
    };
    (0..files.len())
        .filter(|&at| at == 0 || begins_log(&files[at]))
        .map(|at| &files[at..])
        .collect()
}

/// Reads a log in which at least one segment has its header.
pub fn read(files: &[File]) -> ReadLog {
    let (files, limits) = without_cut(numbered(files, ".segment"));
    let (mut records, mut unlinked, mut garbage) = (Vec::new(), Vec::new(), Vec::new());
    let mut place = Place::default();
    // The segment being read, and the files after it.
    let mut last: Option<Segment<'_>> = None;
    let mut later = &files[..];
    while let Some((&(number, bytes), behind)) = later.split_first() {
        let Some(own) = header(bytes, number) else { break };
        if let Some(before) = last {
            let is_next = identity(own.log, own.before) == before.identity;
            if !is_next || own.first_sequence != place.sequence {
                break;
            }
            if own.previous != (place.at, place.checksum) {
                unlinked.push(number);
            }
            if !own.is_cut && before.has_more(&place) {
                garbage.push(number - 1);
            }
        }
        place = Place { at: 64, sequence: own.first_sequence, ..Place::default() };
        let limit =
            limits.iter().find(|(of, _)| *of == number).map_or(u64::MAX, |(_, limit)| *limit);
        let segment = Segment { limit, ..of_header(bytes, &own, number) };
        read_segment(&segment, &mut place, &mut records);
        (last, later) = (Some(segment), behind);
    }
    let end = end(&files, last, later, &place);
    ReadLog { records, end, unlinked, garbage }
}

/// Finds the end of a closed log using only the end of its last file, as described in "Finding a
/// place". Returns the next sequence; `None` if the end can't be found in this way.
pub fn closed_end(files: &[File]) -> Option<u64> {
    let files = numbered(files, ".segment");
    let &(number, bytes) = files.last()?;
    let own = header(bytes, number)?;
    let Header { block, first_sequence, .. } = own;
    let segment = of_header(bytes, &own, number);
    let first = segment.batch(64).filter(|first| first.first_sequence == first_sequence)?;
    let at = bytes.len().checked_sub(48).filter(|at| at.is_multiple_of(block))?;
    let mark = segment.batch(at).filter(|mark| mark.closed && mark.count == 0)?;
    if mark.end != bytes.len() || mark.durable_sequence != mark.first_sequence {
        return None;
    }
    let before = segment.before(at, &first)?;
    let is_proven = before.iter().all(|batch| batch.end <= at);
    let ends_there = |batch: &&Batch| batch.end.next_multiple_of(block) == at;
    let precedes =
        |batch: &Batch| batch.first_sequence + u64::from(batch.count) == mark.first_sequence;
    let is_followed = before.iter().filter(ends_there).any(precedes);
    (is_proven && is_followed).then_some(mark.first_sequence)
}

/// Returns the numbers of the segments with a batch that is longer than their first batch states.
pub fn too_long(files: &[File]) -> Vec<u64> {
    let too_long = |&(number, bytes): &(u64, &[u8])| {
        let own = header(bytes, number)?;
        let (block, segment) = (own.block, of_header(bytes, &own, number));
        let first = segment.batch(64)?;
        let (mut at, mut sequence) = (64, own.first_sequence);
        while let Some(batch) = segment.batch(at).filter(|batch| batch.first_sequence == sequence) {
            if first.longest > 0 && batch.end - batch.begin > first.longest {
                return Some(number);
            }
            sequence += u64::from(batch.count);
            at = batch.end.next_multiple_of(block);
        }
        None
    };
    numbered(files, ".segment").iter().filter_map(too_long).collect()
}

/// Returns whether any segment still has its header.
pub fn has_header(files: &[File]) -> bool {
    numbered(files, ".segment").into_iter().any(|(number, bytes)| header(bytes, number).is_some())
}

/// Returns whether a file has been prepared as a recycled segment.
fn is_marked_recycled(bytes: &[u8]) -> bool {
    bytes.len() >= 72 && !is_filled(&bytes[..64], 0) && &bytes[64..72] == b"recycled"
}

fn is_filled(bytes: &[u8], from: usize) -> bool {
    bytes.get(from..).is_some_and(|rest| rest.iter().any(|&byte| byte != 0))
}

/// Examines the bytes after the last record, as in step 6.
fn end(
    files: &[(u64, &[u8])],
    last: Option<Segment<'_>>,
    later: &[(u64, &[u8])],
    place: &Place,
) -> End {
    let Place { at: offset, sequence, .. } = *place;
    if last.is_none() && files.first().is_some_and(|&(number, _)| number > 1) {
        return End::Damaged { sequence, offset };
    }
    let known = files.iter().find_map(|&(number, bytes)| header(bytes, number));
    let Some(Header { log, block, .. }) = known else { return End::Open { sequence } };
    let block = last.map_or(block, |segment| segment.block);
    let mut durable = last.and_then(|segment| {
        let valid = place.rest.map(|rest| segment.valid(offset, sequence, rest));
        segment.durable(offset, valid.unwrap_or_default())
    });
    let mut is_torn = last.is_some_and(|segment| segment.has_more(place));
    for &(number, bytes) in later {
        let own = header(bytes, number);
        let overlaps = own.as_ref().zip(last).is_some_and(|(own, last)| {
            let is_next = identity(own.log, own.before) == last.identity;
            is_next && !own.is_cut && own.first_sequence < sequence
        });
        if overlaps {
            return End::Damaged { sequence, offset };
        }
        let is_recycled = own.as_ref().map_or(is_marked_recycled(bytes), |own| own.is_recycled);
        let identity = identity(log, number);
        let segment = Segment { bytes, block, identity, is_recycled, limit: u64::MAX };
        is_torn |= segment.has_more(&Place::default());
        durable = durable.max(segment.durable(0, Vec::new()));
        // The sector of the header contains the first batch, so there was a header, too.
        let first = segment.batch(64).filter(|batch| batch.first_sequence >= sequence);
        if first.is_some() && own.is_none() {
            return End::Damaged { sequence, offset };
        }
    }
    if durable > Some(sequence) {
        return End::Damaged { sequence, offset };
    }
    if !place.is_whole() || is_torn {
        return End::Torn { sequence, offset };
    }
    if place.closed { End::Closed { sequence } } else { End::Open { sequence } }
}
