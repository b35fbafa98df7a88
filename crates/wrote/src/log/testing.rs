//! Logs made byte by byte, for tests of what reads them.

use super::batch::{self, BatchHeader};
use super::segment::{self, SegmentHeader};
use super::{Format, LogReader, Record, record};
use crate::{Engine, Error, FileOptions, Ioengine, Op, Options, Sim};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

pub(super) const LOG_ID: u64 = 0x0123_4567_89ab_cdef;
pub(super) const BLOCK_BYTES: u32 = 512;

/// A framed log on its way.
#[derive(Clone, Debug, Default)]
pub(super) struct Built {
    pub segments: Vec<Segment>,
    /// The records that are in it, in order.
    pub records: Vec<Vec<u8>>,
    /// The sequence that the next record gets.
    pub next_sequence: u64,
    last_checksum: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub bytes: Vec<u8>,
    /// Where each batch begins.
    pub batches: Vec<usize>,
    /// Where each batch is, and before which record it says that all were durable.
    pub claims: Vec<(Range<usize>, u64)>,
    seed: u32,
    /// Where its last batch ends.
    end: usize,
}

impl Built {
    /// A log of which the first record that is there has this sequence.
    pub(super) fn from(first_sequence: u64) -> Built {
        Built { next_sequence: first_sequence, ..Built::default() }
    }

    /// Begins the next segment, with its header only.
    pub(super) fn segment(mut self) -> Built {
        let header = SegmentHeader {
            log_id: LOG_ID,
            segment_id: self.segments.len() as u64 + 1,
            first_sequence: self.next_sequence,
            previous_bytes: self.segments.last().map_or(0, |segment| segment.end as u64),
            previous_checksum: self.last_checksum,
            block_bytes: BLOCK_BYTES,
            created_at_ns: 1_700_000_000_000_000_000 + self.segments.len() as u64,
        };
        let mut bytes = vec![0; segment::HEADER_BYTES];
        header.encode(&mut bytes);
        let end = bytes.len();
        self.segments.push(Segment {
            bytes,
            batches: Vec::new(),
            claims: Vec::new(),
            seed: header.seed(),
            end,
        });
        self
    }

    /// A batch of these records, all before `durable_sequence` being durable.
    pub(super) fn batch(self, durable_sequence: u64, records: &[&[u8]]) -> Built {
        let header = BatchHeader { durable_sequence, ..BatchHeader::default() };
        self.batch_of(header, records)
    }

    /// The batch with which a log is closed.
    pub(super) fn closed(self) -> Built {
        let durable_sequence = self.next_sequence;
        self.batch_of(BatchHeader { durable_sequence, closed: true, ..Default::default() }, &[])
    }

    /// A batch with what is said of it, which stands at the next block.
    pub(super) fn batch_of(mut self, header: BatchHeader, records: &[&[u8]]) -> Built {
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

    /// Cuts the last segment off at this byte, as recovery does, with so many records left of the log.
    pub(super) fn cut(mut self, bytes: usize, records: u64) -> Built {
        let segment = self.segments.last_mut().expect("a segment was begun");
        segment.bytes.truncate(bytes);
        segment.end = bytes;
        self.records.truncate(records as usize);
        self.next_sequence = records;
        self
    }

    /// The space of the last segment, made ready.
    pub(super) fn prepared(mut self, bytes: usize) -> Built {
        let segment = self.segments.last_mut().expect("a segment was begun");
        segment.bytes.resize(segment.bytes.len() + bytes, 0);
        self
    }

    /// The files of the log.
    pub(super) fn files(&self, folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
        let named = |(index, segment): (usize, &Segment)| {
            let path = segment::path(folder, Format::Framed, index as u64 + 1);
            (path, segment.bytes.clone())
        };
        self.segments.iter().enumerate().map(named).collect()
    }
}

/// A log of 2 segments with 4 batches, the first two of them durable: 10 records.
pub(super) fn two_segments() -> Built {
    Built::default()
        .segment()
        .batch(0, &[b"zero", b"", b"two"])
        .batch(3, &[&[b'x'; 700], b"four"])
        .segment()
        .batch(5, &[b"five", b"six", b"seven"])
        .batch(5, &[b"eight", b"nine"])
}

/// The folder of logs on simulated disks.
pub(super) fn folder() -> &'static Path {
    Path::new("/log")
}

/// An engine on the disk, with small buffers so that records lie in several.
pub(super) fn engine(sim: &Sim) -> Engine {
    Engine::simulated(sim, &Options::new(Ioengine::IoUring, 4, 2048)).unwrap()
}

/// A simulated disk with these files on stable storage.
pub(super) fn disk(seed: u64, files: &[(PathBuf, Vec<u8>)]) -> Sim {
    let sim = Sim::new(seed);
    let mut engine = engine(&sim);
    for (path, bytes) in files {
        let options = FileOptions { create_new: true, write: true, ..FileOptions::default() };
        let file = engine.open_file(path, &options).unwrap();
        for (number, piece) in bytes.chunks(2048).enumerate() {
            let mut buffer = engine.lease().unwrap();
            buffer.set_len(piece.len());
            buffer.copy_from_slice(piece);
            engine
                .queue(0, Op::Write { file, offset: number as u64 * 2048, buffer, durable: false });
        }
        engine.drain().unwrap();
        engine.close_file(file).unwrap();
    }
    sim.sync();
    sim
}

/// The records that a reader finds on the disk, and how it ended.
pub(super) fn read(sim: &Sim, from: u64) -> (Vec<Record>, Result<(), Error>) {
    let mut records = Vec::new();
    let reader = match LogReader::open_simulated(sim, folder(), from) {
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

/// Asserts that these are the first of the log's records, in order, and tells how many.
pub(super) fn assert_begins(built: &Built, records: &[Record], what: &str) -> u64 {
    for (sequence, record) in records.iter().enumerate() {
        assert_eq!(record.sequence, sequence as u64, "{what}");
        assert_eq!(Some(&record.bytes), built.records.get(sequence), "{what}, record {sequence}");
    }
    records.len() as u64
}

/// The records that are read in a folder: how long each is, by sequence.
pub(super) fn read_all(folder: &Path) -> BTreeMap<u64, usize> {
    let length = |record: Result<Record, Error>| {
        let record = record.unwrap();
        (record.sequence, record.bytes.len())
    };
    LogReader::open(folder, 0).unwrap().map(length).collect()
}
