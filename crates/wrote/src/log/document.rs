//! Tests that compare `docs/log-format.md` with the bytes that the encoders write.

use crate::log::batch::{self, BatchHeader};
use crate::log::record::{self, Frame};
use crate::log::segment::{self, SegmentHeader};
use crate::log::testing::{self, LONGEST_BYTES, holding, long_segment};
use crate::{Error, LogReader, Record};
use fixtures::log_reader::{self, End, File};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const DOCUMENT: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/log-format.md"));

const LOG_ID: u64 = 0x1122_3344_5566_7788;
const BLOCK: usize = 4096;
const BEGUN_NS: u64 = 1_700_000_000_000_000_000;

/// A segment that the encoders have written.
struct EncodedSegment {
    bytes: Vec<u8>,
    header: SegmentHeader,
    /// The number of bytes up to the end of the last batch.
    used_bytes: usize,
    last_checksum: u32,
    next_sequence: u64,
}

impl EncodedSegment {
    fn begin(
        segment_id: u64,
        first_sequence: u64,
        previous: Option<&EncodedSegment>,
    ) -> EncodedSegment {
        let header = SegmentHeader {
            log_id: LOG_ID,
            segment_id,
            first_sequence,
            previous_bytes: previous.map_or(0, |segment| segment.used_bytes as u64),
            previous_checksum: previous.map_or(0, |segment| segment.last_checksum),
            block_bytes: BLOCK as u32,
            created_at_ns: BEGUN_NS,
            ..SegmentHeader::default()
        };
        let mut bytes = vec![0; BLOCK];
        header.encode(&mut bytes);
        EncodedSegment {
            bytes,
            header,
            used_bytes: segment::HEADER_BYTES,
            last_checksum: 0,
            next_sequence: first_sequence,
        }
    }

    /// Appends the next batch. `said` provides the fields of the header that do not follow from
    /// `frames`, and the batch's minimum length.
    fn batch(&mut self, frames: &[Frame<'_>], said: BatchHeader) {
        let is_first = self.used_bytes == segment::HEADER_BYTES && !said.after_cut;
        let begin =
            if is_first { self.used_bytes } else { self.used_bytes.next_multiple_of(BLOCK) };
        let seed = self.header.seed();
        let mut bytes = vec![0; batch::HEADER_BYTES];
        for (sequence, frame) in (self.next_sequence..).zip(frames) {
            let at = bytes.len();
            bytes.resize(at + frame.len(), 0);
            match *frame {
                Frame::Data(own) => {
                    bytes[at + record::HEADER_BYTES..].copy_from_slice(own);
                    record::seal(&mut bytes[at..], seed, sequence);
                }
                Frame::Skipped(_) => record::skip(&mut bytes[at..], seed, sequence),
            }
        }
        bytes.resize(bytes.len().max(said.bytes as usize), 0);
        let header = BatchHeader {
            bytes: bytes.len() as u32,
            count: frames.len() as u32,
            first_sequence: self.next_sequence,
            ..said
        };
        self.last_checksum = header.encode(&mut bytes, seed);
        self.used_bytes = begin + bytes.len();
        self.next_sequence += frames.len() as u64;
        self.bytes.resize(self.used_bytes.next_multiple_of(BLOCK), 0);
        self.bytes[begin..self.used_bytes].copy_from_slice(&bytes);
    }

    /// Returns the segment as it looks in the recycled file of another segment.
    fn recycled(mut self, other: &EncodedSegment) -> EncodedSegment {
        self.header.is_recycled = true;
        self.header.encode(&mut self.bytes);
        self.bytes.extend(&other.bytes[self.bytes.len()..]);
        self
    }

    /// Cuts the segment off at `end`, the end of the last intact record, as recovery does.
    fn cut(&mut self, end: usize, next_sequence: u64) {
        self.bytes.truncate(end);
        self.used_bytes = end;
        self.next_sequence = next_sequence;
    }
}

/// Returns the segment that the document shows as an example.
fn example() -> EncodedSegment {
    let at = |seconds: u64| BEGUN_NS + seconds * 1_000_000_000;
    let mut segment = EncodedSegment::begin(1, 0, None);
    let said = BatchHeader { written_at_ns: at(0), ..BatchHeader::default() };
    let three = [Frame::Data(b"hello"), Frame::Data(b"two\nlines"), Frame::Data(b"torn")];
    segment.batch(&three, said);
    let end = segment.used_bytes - three[2].len();
    segment.cut(end, 2);
    let said = BatchHeader {
        durable_sequence: 2,
        written_at_ns: at(60),
        after_cut: true,
        ..BatchHeader::default()
    };
    segment.batch(&[Frame::Data(b"after"), Frame::Skipped(3)], said);
    let said = BatchHeader {
        durable_sequence: 4,
        written_at_ns: at(61),
        closed: true,
        ..BatchHeader::default()
    };
    segment.batch(&[], said);
    segment
}

/// Formats bytes as `hexdump -C` does.
fn dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut before: Option<(&[u8], bool)> = None;
    for (line, offset) in bytes.chunks(16).zip((0..).step_by(16)) {
        match before {
            Some((same, starred)) if same == line => {
                text += if starred { "" } else { "*\n" };
                before = Some((line, true));
                continue;
            }
            _ => before = Some((line, false)),
        }
        let hex: Vec<String> = line
            .chunks(8)
            .map(|half| half.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "))
            .collect();
        let shown = |&byte: &u8| if byte.is_ascii_graphic() || byte == b' ' { byte } else { b'.' };
        let letters: Vec<u8> = line.iter().map(shown).collect();
        let letters = String::from_utf8_lossy(&letters);
        let _ = writeln!(text, "{offset:08x}  {:<48}  |{letters}|", hex.join("  "));
    }
    let _ = writeln!(text, "{:08x}", bytes.len());
    text
}

/// Returns the fenced code blocks of the document that have the language `kind`.
fn fenced(kind: &str) -> Vec<&'static str> {
    let open = format!("```{kind}\n");
    DOCUMENT.split(&open).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn the_dump_in_the_document_is_what_is_written() {
    let written = dump(&example().bytes);
    let shown = fenced("hexdump").concat();
    assert!(shown == written, "the document shows\n{shown}\nand it is\n{written}");
}

#[test]
fn the_numbers_in_the_documents_tables_are_the_codes() {
    let example = example();
    let seed = format!("`{:08x}`", example.header.seed());
    assert!(DOCUMENT.contains(&seed), "the seed of the example is {seed}");
    for (name, bytes) in [
        ("segment header", segment::HEADER_BYTES),
        ("batch header", batch::HEADER_BYTES),
        ("record header", record::HEADER_BYTES),
    ] {
        let sentence = format!("The {name} has {bytes} bytes");
        assert!(DOCUMENT.contains(&sentence), "{sentence}");
    }
    let version = format!("The version of the format is {}", segment::VERSION);
    assert!(DOCUMENT.contains(&version), "{version}");
    let longest = format!("{} bytes", record::LEN_MAX);
    assert!(DOCUMENT.contains(&longest), "{longest}");
}

fn name(number: u64) -> String {
    let path = segment::path(Path::new(""), number);
    path.into_os_string().into_string().expect("ASCII")
}

/// Returns the files of three segments and the log's records. One segment has empty places, one was
/// cut, and one is only prepared.
fn folder() -> (Vec<File>, Vec<(u64, Vec<u8>)>) {
    let mut first = EncodedSegment::begin(1, 0, None);
    let mut truth = Vec::new();
    for round in 0..5u64 {
        let own: Vec<Vec<u8>> =
            (0..3).map(|index| vec![b'a' + index as u8; (round * 700 + index) as usize]).collect();
        let mut frames: Vec<Frame<'_>> = own.iter().map(|bytes| Frame::Data(bytes)).collect();
        frames.insert(1, Frame::Skipped(round as usize));
        let begin = first.next_sequence;
        let places = [begin, begin + 2, begin + 3];
        truth.extend(places.into_iter().zip(own.iter().cloned()));
        let durable_sequence = begin;
        first.batch(&frames, BatchHeader { durable_sequence, ..BatchHeader::default() });
    }
    let mut second = EncodedSegment::begin(2, first.next_sequence, Some(&first));
    let begin = second.next_sequence;
    let said = BatchHeader { durable_sequence: begin, ..BatchHeader::default() };
    second.batch(&[Frame::Data(b"kept"), Frame::Data(b"torn")], said);
    second.cut(second.used_bytes - Frame::Data(b"torn").len(), begin + 1);
    let said = BatchHeader { durable_sequence: begin + 1, after_cut: true, ..said };
    second.batch(&[Frame::Data(b"after the cut")], said);
    let said = BatchHeader { durable_sequence: begin + 2, closed: true, ..BatchHeader::default() };
    second.batch(&[], said);
    truth.extend([(begin, b"kept".to_vec()), (begin + 1, b"after the cut".to_vec())]);
    second.bytes.resize(second.bytes.len() + 5 * BLOCK, 0);
    first.bytes.truncate(first.used_bytes);
    let files = vec![
        (name(1), first.bytes),
        (name(2), second.bytes),
        (name(3), vec![0; 4 * BLOCK]),
        ("lock".to_owned(), b"1234\n".to_vec()),
        (format!("{}.torn-0", name(2)), b"kept aside".to_vec()),
    ];
    (files, truth)
}

#[test]
fn a_reader_made_from_the_document_reads_the_example() {
    let files = [(name(1), example().bytes)];
    let read = log_reader::read(&files);
    let records = [(0, b"hello".to_vec()), (1, b"two\nlines".to_vec()), (2, b"after".to_vec())];
    assert_eq!(read.records, records);
    assert_eq!(read.end, End::Closed { sequence: 4 });
}

#[test]
fn the_end_of_a_file_proves_that_a_log_was_closed_only_where_no_record_holds_it() {
    let folder = Path::new("");
    let named = |files: Vec<(PathBuf, Vec<u8>)>| -> Vec<File> {
        files.into_iter().map(|(_, bytes)| (name(1), bytes)).collect()
    };
    let closed = long_segment().closed();
    let mut files = named(closed.files(folder));
    files[0].1.truncate(closed.segments[0].claims.last().unwrap().0.end);
    assert_eq!(log_reader::closed_end(&files), Some(closed.next_sequence));
    assert_eq!(log_reader::read(&files).end, End::Closed { sequence: closed.next_sequence });
    assert!(log_reader::too_long(&files).is_empty());

    let open = long_segment();
    let sequence = open.next_sequence + 9;
    let first_sequence = sequence;
    let mark = BatchHeader {
        bytes: 48,
        first_sequence,
        durable_sequence: sequence,
        ..BatchHeader::default()
    };
    let record = holding(&[mark, BatchHeader { closed: true, ..mark }]);
    let open = open.batch(0, &[&record]);
    let mut files = named(open.files(folder));
    files[0].1.truncate(open.segments[0].claims.last().unwrap().0.end);
    assert_eq!(log_reader::closed_end(&files), None);
    assert_eq!(log_reader::read(&files).end, End::Open { sequence: open.next_sequence });

    let too_long = open.batch(0, &[&[0; 2 * LONGEST_BYTES as usize]]);
    assert_eq!(log_reader::too_long(&named(too_long.files(folder))), [1]);
}

#[test]
fn a_reader_made_from_the_document_reads_several_segments() {
    let (files, truth) = folder();
    let read = log_reader::read(&files);
    assert_eq!(read.records, truth);
    assert!(matches!(read.end, End::Closed { .. }), "{:?}", read.end);
    assert!(read.unlinked.is_empty(), "{:?}", read.unlinked);
}

/// Flips each bit of the first batch, and cuts the last file at each byte except in the padding.
#[test]
fn by_the_documents_rules_damage_is_told_from_a_torn_end() {
    let (files, truth) = folder();
    let read_with = |file: usize, change: &dyn Fn(&mut Vec<u8>)| {
        let mut changed = files.clone();
        change(&mut changed[file].1);
        let read = log_reader::read(&changed);
        assert!(truth.starts_with(&read.records), "a record that was never written");
        (read.records.len(), read.end)
    };
    // All of the first segment was durable before the second began.
    for bit in 0..160 * 8 {
        let (records, end) = read_with(0, &|bytes| bytes[bit / 8] ^= 1 << (bit % 8));
        assert!(records == truth.len() || matches!(end, End::Damaged { .. }), "bit {bit}: {end:?}");
    }
    for lost in 1..60 {
        let (_, end) = read_with(0, &|bytes| bytes.truncate(bytes.len() - lost));
        assert!(matches!(end, End::Damaged { .. }), "{lost} bytes lost: {end:?}");
    }
    // If the end of a file is lost, nothing proves how long the file was. The rest looks like a log
    // that was not closed.
    let second = &files[1].1;
    let ends = (segment::HEADER_BYTES..second.len()).filter(|&end| second[end] != 0);
    for end_bytes in ends {
        let (_, end) = read_with(1, &|bytes| bytes.truncate(end_bytes));
        assert!(matches!(end, End::Open { .. } | End::Torn { .. }), "{end_bytes} bytes: {end:?}");
    }
}

/// Returns a segment that was cut exactly at the start of a block, where a record began.
fn cut_at_a_block() -> (Vec<File>, Vec<(u64, Vec<u8>)>) {
    let mut segment = EncodedSegment::begin(1, 0, None);
    let before = segment::HEADER_BYTES + batch::HEADER_BYTES + record::HEADER_BYTES;
    let first = vec![b'f'; BLOCK - before];
    segment.batch(&[Frame::Data(&first), Frame::Data(b"torn")], BatchHeader::default());
    segment.cut(BLOCK, 1);
    let said = BatchHeader { durable_sequence: 1, after_cut: true, ..BatchHeader::default() };
    segment.batch(&[Frame::Data(b"after the cut")], said);
    let truth = vec![(0, first), (1, b"after the cut".to_vec())];
    (vec![(name(1), segment.bytes)], truth)
}

#[test]
fn both_readers_read_the_same() {
    for (files, truth) in [folder(), cut_at_a_block()] {
        assert_eq!(log_reader::read(&files).records, truth);
        let folder = tempfile::tempdir().expect("a folder");
        for (name, bytes) in &files {
            std::fs::write(folder.path().join(name), bytes).expect("a file of the log");
        }
        let read = LogReader::open(folder.path(), 0).expect("a log");
        let record = |record: Result<Record, Error>| record.map(|it| (it.sequence, it.bytes));
        let read: Result<Vec<(u64, Vec<u8>)>, Error> = read.map(record).collect();
        assert_eq!(read.expect("a whole log"), truth);
    }
}

/// Returns three segments. Each batch states that all earlier records were durable. The first
/// segment begins after a cut at offset 64; the second ends with a long batch without records.
fn three_segments() -> Vec<EncodedSegment> {
    let mut segments: Vec<EncodedSegment> = Vec::new();
    for number in 1..=3u64 {
        let next_sequence = segments.last().map_or(0, |segment| segment.next_sequence);
        let mut segment = EncodedSegment::begin(number, next_sequence, segments.last());
        for round in 0..3 {
            let durable_sequence = segment.next_sequence;
            let after_cut = number == 1 && round == 0;
            let said = BatchHeader { durable_sequence, after_cut, ..BatchHeader::default() };
            let own = vec![b'0' + number as u8; 3000 * round];
            segment.batch(&[Frame::Data(&own), Frame::Skipped(round), Frame::Data(b"end")], said);
        }
        if number == 2 {
            let durable_sequence = segment.next_sequence;
            let said = BatchHeader { durable_sequence, bytes: 5000, ..BatchHeader::default() };
            segment.batch(&[], said);
        }
        segments.push(segment);
    }
    segments
}

/// Reads a log with both readers, asserts that they agree, and returns the result of the second
/// one.
fn agreed(files: &[File], what: &str) -> log_reader::ReadLog {
    let folder = testing::folder();
    let placed: Vec<_> =
        files.iter().map(|(name, bytes)| (folder.join(name), bytes.clone())).collect();
    let (records, end) = testing::read(&testing::disk(1, &placed), 0);
    let records: Vec<_> = records.into_iter().map(|it| (it.sequence, it.bytes)).collect();
    let read = log_reader::read(files);
    assert!(records == read.records, "{what}: {} and {}", records.len(), read.records.len());
    let is_damaged = matches!(read.end, End::Damaged { .. });
    assert!(matches!(end, Err(Error::Damaged { .. })) == is_damaged, "{what}: {end:?}, {read:?}");
    assert!(end.is_ok() || is_damaged, "{what}: {end:?}");
    read
}

/// Returns the segments of [`three_segments`] in recycled files, and one more recycled file that is
/// ready for a segment.
fn recycled_segments() -> Vec<File> {
    let mut earlier = EncodedSegment::begin(9, 0, None);
    for round in 0..12 {
        let durable_sequence = earlier.next_sequence;
        let said = BatchHeader { durable_sequence, ..BatchHeader::default() };
        earlier.batch(&[Frame::Data(&[7; 5000]), Frame::Skipped(round)], said);
    }
    let mut spare = earlier.bytes.clone();
    segment::mark_recycled(&mut spare[..BLOCK]);
    let segments = three_segments().into_iter().map(|segment| segment.recycled(&earlier).bytes);
    let numbered = (1..).zip(segments.chain([spare]));
    numbered.map(|(number, bytes)| (name(number), bytes)).collect()
}

#[test]
fn old_bytes_of_a_recycled_file_are_neither_read_nor_torn_nor_garbage() {
    let read = agreed(&recycled_segments(), "recycled");
    let plain = (1..).zip(three_segments());
    let plain: Vec<File> = plain.map(|(number, segment)| (name(number), segment.bytes)).collect();
    assert_eq!(read, agreed(&plain, "plain"));
    assert_eq!(read.end, End::Open { sequence: 27 });
}

#[test]
fn zeros_at_the_end_of_a_batch_are_not_torn_whatever_the_file_held_behind_it() {
    let mut files = recycled_segments();
    files.pop();
    let last = &mut files.last_mut().unwrap().1;
    let end = three_segments()[2].used_bytes;
    // The last record did not reach the disk before power was lost.
    last[end - record::HEADER_BYTES - b"end".len()..end].fill(0);
    assert!(last[end.next_multiple_of(BLOCK)..].iter().any(|&byte| byte != 0));
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in &files {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    let found = crate::log::verify(folder.path(), None).unwrap();
    assert_eq!((found.records, found.torn_bytes), (17, 0));
}
