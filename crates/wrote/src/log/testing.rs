//! Sample logs that are built byte by byte, for tests of the code that reads logs.

use super::batch::{self, BatchHeader};
use super::input::LogFiles;
use super::reader::{LogReader, Record};
use super::record;
use super::segment::{self, SegmentHeader};
use crate::engine::{Folder, Options};
use crate::{Engine, Error, FileOptions, Ioengine, Sim};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

pub(super) const LOG_ID: u64 = 0x0123_4567_89ab_cdef;
pub(super) const BLOCK_BYTES: u32 = 512;

/// A log in memory.
#[derive(Clone, Debug, Default)]
pub(super) struct SampleLog {
    pub segments: Vec<SampleSegment>,
    /// The records of the log, in order.
    pub records: Vec<Vec<u8>>,
    /// The sequence that the next record will get.
    pub next_sequence: u64,
    last_checksum: u32,
}

#[derive(Clone, Debug)]
pub(super) struct SampleSegment {
    pub bytes: Vec<u8>,
    /// The offset of each batch.
    pub batches: Vec<usize>,
    /// The range of each batch, and the durable sequence that it states.
    pub claims: Vec<(Range<usize>, u64)>,
    seed: u32,
    /// The end of the segment's last batch.
    end: usize,
}

impl SampleLog {
    /// Creates a log whose first record has this sequence.
    pub(super) fn from(first_sequence: u64) -> SampleLog {
        SampleLog { next_sequence: first_sequence, ..SampleLog::default() }
    }

    /// Appends the header of the next segment.
    pub(super) fn segment(mut self) -> SampleLog {
        let header = SegmentHeader {
            log_id: LOG_ID,
            segment_id: self.segments.len() as u64 + 1,
            first_sequence: self.next_sequence,
            previous_bytes: self.segments.last().map_or(0, |segment| segment.end as u64),
            previous_checksum: self.last_checksum,
            block_bytes: BLOCK_BYTES,
            created_at_ns: 1_700_000_000_000_000_000 + self.segments.len() as u64,
            ..SegmentHeader::default()
        };
        let mut bytes = vec![0; segment::HEADER_BYTES];
        header.encode(&mut bytes);
        let end = bytes.len();
        self.segments.push(SampleSegment {
            bytes,
            batches: Vec::new(),
            claims: Vec::new(),
            seed: header.seed(),
            end,
        });
        self
    }

    /// Appends a batch with these records, which states `durable_sequence`.
    pub(super) fn batch(self, durable_sequence: u64, records: &[&[u8]]) -> SampleLog {
        let header = BatchHeader { durable_sequence, ..BatchHeader::default() };
        self.batch_of(header, records)
    }

    /// Appends the batch that closes a log.
    pub(super) fn closed(self) -> SampleLog {
        let durable_sequence = self.next_sequence;
        self.batch_of(BatchHeader { durable_sequence, closed: true, ..Default::default() }, &[])
    }

    /// Appends a batch at the next block, with the flags and the durable sequence of `header`.
    pub(super) fn batch_of(mut self, header: BatchHeader, records: &[&[u8]]) -> SampleLog {
        let segment = self.segments.last_mut().expect("a segment was begun");
        let block_bytes = BLOCK_BYTES as usize;
        if !segment.batches.is_empty() || header.after_cut {
            segment.bytes.resize(segment.bytes.len().next_multiple_of(block_bytes), 0);
        }
        let start = segment.bytes.len();
        segment.bytes.resize(start + batch::HEADER_BYTES, 0);
        let first_sequence = self.next_sequence;
        for bytes in records {
            let mut frame = vec![0; record::frame_bytes(bytes.len())];
            frame[record::HEADER_BYTES..].copy_from_slice(bytes);
            record::seal(&mut frame, segment.seed, self.next_sequence);
            segment.bytes.extend(frame);
            self.records.push(bytes.to_vec());
            self.next_sequence += 1;
        }
        let bytes = (segment.bytes.len() - start) as u32;
        let count = records.len() as u32;
        let header = BatchHeader { bytes, count, first_sequence, ..header };
        self.last_checksum = header.encode(&mut segment.bytes[start..], segment.seed);
        segment.batches.push(start);
        segment.end = segment.bytes.len();
        segment.claims.push((start..segment.end, header.durable_sequence));
        segment.bytes.resize(segment.end.next_multiple_of(block_bytes), 0);
        self
    }

    /// Cuts the last segment off at this byte, as recovery does. `records` records remain in the
    /// log.
    pub(super) fn cut(mut self, bytes: usize, records: u64) -> SampleLog {
        let segment = self.segments.last_mut().expect("a segment was begun");
        segment.bytes.truncate(bytes);
        segment.end = bytes;
        self.records.truncate(records as usize);
        self.next_sequence = records;
        self
    }

    /// Appends prepared space to the last segment.
    pub(super) fn prepared(mut self, bytes: usize) -> SampleLog {
        let segment = self.segments.last_mut().expect("a segment was begun");
        segment.bytes.resize(segment.bytes.len() + bytes, 0);
        self
    }

    /// Returns the files of the log.
    pub(super) fn files(&self, folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
        let named = |(index, segment): (usize, &SampleSegment)| {
            let path = segment::path(folder, index as u64 + 1);
            (path, segment.bytes.clone())
        };
        self.segments.iter().enumerate().map(named).collect()
    }
}

/// Returns a log with 10 records in two segments and four batches. The first two batches are
/// durable.
pub(super) fn two_segments() -> SampleLog {
    SampleLog::default()
        .segment()
        .batch(0, &[b"zero", b"", b"two"])
        .batch(3, &[&[b'x'; 700], b"four"])
        .segment()
        .batch(5, &[b"five", b"six", b"seven"])
        .batch(5, &[b"eight", b"nine"])
}

/// The maximum length of a batch in [`long_segment`], in bytes, as its first batch states.
pub(super) const LONGEST_BYTES: u32 = 2048;

/// Returns the bytes of a record that contains these headers, one at each of the blocks after the
/// one in which its batch begins.
pub(super) fn holding(headers: &[BatchHeader]) -> Vec<u8> {
    let seed = segment::seed(LOG_ID, 1);
    let block_bytes = BLOCK_BYTES as usize;
    let head_bytes = batch::HEADER_BYTES + record::HEADER_BYTES;
    let mut bytes = vec![b'h'; headers.len() * block_bytes + batch::HEADER_BYTES - head_bytes];
    for (header, block) in headers.iter().zip(1..) {
        let at = block * block_bytes - head_bytes;
        header.encode(&mut bytes[at..], seed);
    }
    bytes
}

/// Returns a log with one segment of 600 batches. Each batch states that everything before it was
/// durable. Every seventh batch contains the bytes of false batches, with the expected sequence and
/// with others.
pub(super) fn long_segment() -> SampleLog {
    let mut built = SampleLog::default().segment();
    for number in 0..600_u64 {
        let durable_sequence = built.next_sequence;
        let longest_bytes = LONGEST_BYTES;
        let header = BatchHeader { durable_sequence, longest_bytes, ..BatchHeader::default() };
        if number % 7 == 3 {
            let forged = |first_sequence, bytes| BatchHeader { bytes, first_sequence, ..header };
            let forged = [forged(durable_sequence + 2, 48), forged(number * 99, 5000)];
            built = built.batch_of(header, &[&holding(&forged)]);
            continue;
        }
        let records: Vec<Vec<u8>> = (0..1 + number % 3)
            .map(|index| vec![number as u8; (number * 31 + index * 7) as usize % 600])
            .collect();
        let records: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
        built = built.batch_of(header, &records);
    }
    built
}

/// Returns the folder of logs on simulated disks.
pub(super) fn folder() -> &'static Path {
    Path::new("/log")
}

/// Opens an engine on the disk, with buffers that are smaller than a record.
pub(super) fn engine(sim: &Sim) -> Engine {
    Engine::simulated(sim, &Options::new(Ioengine::IoUring, 4, 2048)).unwrap()
}

/// Returns the files of the log on the disk, for reading with the engine of [`engine`].
pub(super) fn files_of(sim: &Sim) -> LogFiles {
    LogFiles::new(engine(sim), Folder::named(folder()))
}

/// Creates a simulated disk with these files on stable storage.
pub(super) fn disk(seed: u64, files: &[(PathBuf, Vec<u8>)]) -> Sim {
    let sim = Sim::new(seed);
    let mut engine = engine(&sim);
    for (path, bytes) in files {
        let options = FileOptions::new().create_new(true).write(true);
        let file = engine.open_file(path, &options).unwrap();
        engine.write(file, 0, bytes).unwrap();
        engine.close_file(file).unwrap();
    }
    sim.sync();
    sim
}

/// Returns the total length of all files in bytes.
pub(super) fn used_bytes(sim: &Sim) -> u64 {
    sim.names().iter().map(|path| sim.contents(path).unwrap().len() as u64).sum()
}

/// Returns the records that a reader finds on the disk, and the reader's final result.
pub(super) fn read(sim: &Sim, from: u64) -> (Vec<Record>, Result<(), Error>) {
    let mut records = Vec::new();
    let reader = match LogReader::open_on(&sim.disk(), folder(), from) {
        Ok(reader) => reader,
        Err(error) => return (records, Err(error)),
    };
    for record in reader {
        match record {
            Ok(record) => records.push(record),
            Err(error) => return (records, Err(error)),
        }
    }
    (records, Ok(()))
}

/// Asserts that these are the first records of the log, in order. Returns their number.
pub(super) fn assert_begins(built: &SampleLog, records: &[Record], what: &str) -> u64 {
    for (sequence, record) in records.iter().enumerate() {
        assert_eq!(record.sequence, sequence as u64, "{what}");
        assert_eq!(Some(&record.bytes), built.records.get(sequence), "{what}, record {sequence}");
    }
    records.len() as u64
}

/// Returns the length of each record in a folder, by sequence.
pub(super) fn read_all(folder: &Path) -> BTreeMap<u64, usize> {
    let length = |record: Result<Record, Error>| {
        let record = record.unwrap();
        (record.sequence, record.bytes.len())
    };
    LogReader::open(folder, 0).unwrap().map(length).collect()
}
