//! Scripts of operations on a [`DirectFile`], compared with a model in memory.

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::VecDeque;
use wrote::Disk;
use wrote::file::{DirectFile, DiskBuffer, Operation};

pub const BUFFER_BYTES: usize = 8 << 10;
/// An upper bound for the length of files in scripts, in bytes.
pub const FILE_BYTES: u64 = 2 << 20;

/// One operation. Offsets and lengths are reduced to the bounds of the file.
#[derive(Clone, Copy, Debug)]
pub enum Step {
    Read { offset: u64, len: usize },
    Write { offset: u64, len: usize, from: usize, durable: bool },
    Allocate { offset: u64, len: u64 },
    Sync { all: bool },
    Truncate { len: u64 },
    WaitForAll,
}

/// The bytes for writes, which are long enough for no two writes to be equal.
pub struct Source(Vec<u8>);

impl Source {
    pub fn new(random: &mut Xoshiro256PlusPlus) -> Source {
        let mut bytes = vec![0; 1 << 20];
        random.fill(&mut bytes[..]);
        Source(bytes)
    }

    pub fn bytes(&self, from: usize, len: usize) -> &[u8] {
        let start = from % (self.0.len() - BUFFER_BYTES);
        &self.0[start..start + len]
    }
}

/// Returns a random step, which is a read or a write in nine of ten cases.
pub fn random_step(random: &mut Xoshiro256PlusPlus) -> Step {
    let offset = random.random_range(0..FILE_BYTES);
    let from = random.random_range(0..usize::MAX);
    match random.random_range(0..2000) {
        0..1000 => {
            let longest = if random.random_range(0..20) == 0 { 5 * BUFFER_BYTES } else { 4096 };
            Step::Read { offset, len: random.random_range(0..longest) }
        }
        1000..1990 => {
            let longest = if random.random_range(0..20) == 0 { BUFFER_BYTES } else { 2048 };
            let durable = random.random_range(0..2000) == 0;
            Step::Write { offset, len: random.random_range(1..=longest), from, durable }
        }
        1990..1996 => Step::Allocate { offset, len: random.random_range(1..50_000) },
        1996 => Step::Sync { all: random.random_range(0..2) == 0 },
        1997 => Step::Truncate { len: offset },
        _ => Step::WaitForAll,
    }
}

/// A started operation, and its expected result.
enum StartedOp {
    Read { step: Step, operation: Operation<DiskBuffer>, expected: Vec<u8> },
    Change { step: Step, operation: Operation<()> },
}

impl StartedOp {
    fn finish(self) {
        match self {
            StartedOp::Read { step, operation, expected } => {
                let bytes = operation.wait().unwrap_or_else(|error| panic!("{step:?}: {error}"));
                assert!(bytes == expected[..], "{step:?} gave other bytes than were written");
            }
            StartedOp::Change { step, operation } => {
                operation.wait().unwrap_or_else(|error| panic!("{step:?}: {error}"));
            }
        }
    }

    /// Returns the maximum number of buffers that the step may hold.
    fn buffers(step: &Step) -> usize {
        match step {
            Step::Read { len, .. } => len / BUFFER_BYTES + 2,
            Step::Write { .. } => 1,
            _ => 0,
        }
    }
}

/// A file and its expected contents.
pub struct Script<'a> {
    disk: &'a Disk,
    file: &'a DirectFile,
    source: &'a Source,
    model: Vec<u8>,
    started: VecDeque<(usize, StartedOp)>,
    /// The number of buffers that operations in progress may hold.
    held: usize,
    depth: usize,
    pub reads_and_writes: u64,
}

impl<'a> Script<'a> {
    /// Creates a script that keeps up to `depth` operations in progress at once.
    pub fn new(
        disk: &'a Disk,
        file: &'a DirectFile,
        source: &'a Source,
        depth: usize,
    ) -> Script<'a> {
        let (model, started) = (Vec::new(), VecDeque::new());
        Script { disk, file, source, model, started, held: 0, depth, reads_and_writes: 0 }
    }

    /// Starts a step. If too many operations are in progress, waits for the oldest ones first.
    pub fn step(&mut self, step: Step) {
        let buffers = StartedOp::buffers(&step);
        let count = self.disk.buffers() as usize;
        while self.started.len() >= self.depth || self.held + buffers > count {
            self.finish_oldest();
        }
        match step {
            Step::Read { offset, len } => {
                let end = (offset as usize + len).min(self.model.len());
                let expected = self.model.get(offset as usize..end).unwrap_or_default().to_vec();
                let operation = self.file.start_read(offset, len);
                self.reads_and_writes += 1;
                self.push(step, StartedOp::Read { step, operation, expected });
            }
            Step::Write { offset, len, from, durable } => {
                let operation = self.write(offset, len, from, durable);
                self.push(step, StartedOp::Change { step, operation });
            }
            Step::Allocate { offset, len } => {
                let end = (offset + len) as usize;
                self.model.resize(self.model.len().max(end), 0);
                let operation = self.file.start_allocate(offset, len);
                self.push(step, StartedOp::Change { step, operation });
            }
            Step::Sync { all } => {
                let operation =
                    if all { self.file.start_sync_all() } else { self.file.start_sync_data() };
                self.push(step, StartedOp::Change { step, operation });
            }
            Step::Truncate { len } => {
                self.model.resize(len as usize, 0);
                self.file.truncate(len).unwrap();
                assert_eq!(self.file.len().unwrap(), len);
            }
            Step::WaitForAll => self.finish_all(),
        }
    }

    fn write(&mut self, offset: u64, len: usize, from: usize, durable: bool) -> Operation<()> {
        let align = u64::from(self.file.alignment());
        let offset = offset / align * align;
        let len = len.next_multiple_of(align as usize);
        let bytes = self.source.bytes(from, len);
        let end = offset as usize + len;
        self.model.resize(self.model.len().max(end), 0);
        self.model[offset as usize..end].copy_from_slice(bytes);
        let mut buffer = self.disk.lease().unwrap();
        buffer.set_len(len);
        buffer.copy_from_slice(bytes);
        self.reads_and_writes += 1;
        if durable {
            self.file.start_write_durable(buffer, offset)
        } else {
            self.file.start_write(buffer, offset)
        }
    }

    fn push(&mut self, step: Step, started: StartedOp) {
        let buffers = StartedOp::buffers(&step);
        self.held += buffers;
        self.started.push_back((buffers, started));
    }

    fn finish_oldest(&mut self) {
        let (buffers, started) = self.started.pop_front().expect("something is under way");
        self.held -= buffers;
        started.finish();
    }

    pub fn finish_all(&mut self) {
        while !self.started.is_empty() {
            self.finish_oldest();
        }
    }

    /// Waits for every operation, and returns the expected content.
    pub fn end(mut self) -> Vec<u8> {
        self.finish_all();
        assert_eq!(self.disk.outstanding(), 0);
        assert_eq!(self.disk.buffers_free(), self.disk.buffers() as usize, "W5");
        std::mem::take(&mut self.model)
    }
}
