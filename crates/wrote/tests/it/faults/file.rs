//! A `DirectFile` as a subject: a script of operations that overlap.

use super::{Kept, Outcome, Subject};
use crate::path;
use libc::ENOSPC;
use std::ops::Range;
use wrote::engine::{Fault, Options};
use wrote::file::{DirectFile, DiskBuffer, Operation};
use wrote::{Disk, Error, FileOptions, Ioengine, Sim};

const BLOCK_BYTES: usize = 2048;
/// The number of buffers, which is enough for all operations in progress at once.
const BUFFERS: u32 = 16;

/// One step of the script. Changes are given in blocks.
#[derive(Clone, Copy, Debug)]
enum Step {
    Write(u64),
    WriteDurable(u64),
    Allocate(u64, u64),
    Read(u64, usize),
    SyncData,
    SyncAll,
    Truncate(u64),
}

/// A script of steps that overlap, extend, truncate and flush. The steps between two truncations
/// are in progress at once.
const SCRIPT: [Step; 20] = [
    Step::Allocate(0, 2),
    Step::Write(0),
    Step::Write(1),
    Step::WriteDurable(2),
    Step::Write(1),
    Step::Read(100, 4500),
    Step::Write(5),
    Step::SyncData,
    Step::Read(3 * 2048, 4 * 2048),
    Step::Write(0),
    Step::Truncate(5000),
    Step::Read(4000, 2500),
    Step::Write(2),
    Step::WriteDurable(3),
    Step::Read(1, 1),
    Step::SyncAll,
    Step::Truncate(3400),
    Step::Read(0, 8 * 2048 - 512),
    Step::WriteDurable(1),
    Step::Read(2047, 2050),
];

/// The options of a run.
#[derive(Clone, Copy, Debug)]
struct Mode {
    direct: bool,
    dsync: bool,
    iodepth: u32,
}

const MODES: [Mode; 4] = [
    Mode { direct: true, dsync: true, iodepth: 4 },
    Mode { direct: true, dsync: false, iodepth: 4 },
    Mode { direct: false, dsync: true, iodepth: 1 },
    Mode { direct: false, dsync: false, iodepth: 8 },
];

fn content(step: usize) -> Vec<u8> {
    (0..BLOCK_BYTES).map(|place| (step * 37 + place / 5 + 1) as u8).collect()
}

/// The known facts about a file: the bytes that it must have, and the limits of its length.
#[derive(Clone, Default)]
struct Known {
    bytes: Vec<Option<u8>>,
    len_min: usize,
    len_max: usize,
}

impl Known {
    fn change(&mut self, range: Range<usize>, content: Option<&[u8]>) {
        self.len_max = self.len_max.max(range.end);
        // Bytes beyond the end appear as zeros.
        self.bytes.resize(self.bytes.len().max(range.end), Some(0));
        match content {
            Some(content) => {
                self.len_min = self.len_min.max(range.end);
                for (known, byte) in self.bytes[range].iter_mut().zip(content) {
                    *known = Some(*byte);
                }
            }
            None => self.bytes[range].fill(None),
        }
    }

    fn truncate(&mut self, len: usize) {
        self.bytes.resize(len, Some(0));
        (self.len_min, self.len_max) = (len, len);
    }

    /// Asserts that a read of `len` bytes at `offset` may return `found`.
    fn check(&self, found: &[u8], offset: usize, len: usize, what: &str) {
        let cut = |end: usize| end.saturating_sub(offset).min(len);
        assert!(
            (cut(self.len_min)..=cut(self.len_max)).contains(&found.len()),
            "{what}: {} bytes, {} to {} were right",
            found.len(),
            cut(self.len_min),
            cut(self.len_max)
        );
        for (place, byte) in found.iter().enumerate() {
            if let Some(Some(known)) = self.bytes.get(offset + place) {
                assert_eq!(byte, known, "{what}: byte {}", offset + place);
            }
        }
    }
}

enum StartedOp {
    Read(Operation<DiskBuffer>),
    Change(Operation<()>),
}

/// A run of the script.
struct Run {
    sim: Sim,
    file: DirectFile,
    disk: Disk,
    known: Known,
    /// The bytes that must survive a power loss.
    stable: Vec<Option<u8>>,
    failures: Vec<(Step, Error)>,
}

impl Run {
    fn new(sim: Sim, mode: Mode) -> Run {
        let options = Options::new(Ioengine::IoUring, mode.iodepth, BLOCK_BYTES).buffers(BUFFERS);
        let disk = Disk::simulated(&sim, &options).unwrap();
        let options = FileOptions::new().create_new(true).write(true).direct(mode.direct);
        let file = disk.open_file(path(), &options).unwrap();
        sim.sync();
        file.set_dsync(mode.dsync);
        let (known, stable, failures) = Default::default();
        Run { sim, file, disk, known, stable, failures }
    }

    fn script(mut self) -> Run {
        let mut started = Vec::new();
        for (number, step) in SCRIPT.into_iter().enumerate() {
            if matches!(step, Step::Truncate(_)) {
                self.finish(&mut started);
            }
            match step {
                Step::Truncate(len) => self.truncate(step, len as usize),
                Step::Read(offset, len) => {
                    started.push((
                        number,
                        step,
                        StartedOp::Read(self.file.start_read(offset, len)),
                    ));
                }
                _ => match self.start(number, step) {
                    Ok(operation) => started.push((number, step, StartedOp::Change(operation))),
                    Err(error) => self.failures.push((step, error)),
                },
            }
        }
        self.finish(&mut started);
        assert_eq!(self.disk.outstanding(), 0);
        assert_eq!(self.disk.buffers_free(), BUFFERS as usize, "W5: every buffer came back");
        self
    }

    fn start(&self, number: usize, step: Step) -> Result<Operation<()>, Error> {
        let filled = || {
            let mut buffer = self.disk.lease()?;
            buffer.copy_from_slice(&content(number));
            Ok(buffer)
        };
        let bytes = |blocks: u64| blocks * BLOCK_BYTES as u64;
        Ok(match step {
            Step::Write(block) => self.file.start_write(filled()?, bytes(block)),
            Step::WriteDurable(block) => self.file.start_write_durable(filled()?, bytes(block)),
            Step::Allocate(block, blocks) => self.file.start_allocate(bytes(block), bytes(blocks)),
            Step::SyncData => self.file.start_sync_data(),
            Step::SyncAll => self.file.start_sync_all(),
            Step::Read(..) | Step::Truncate(_) => unreachable!("started elsewhere"),
        })
    }

    fn truncate(&mut self, step: Step, len: usize) {
        match self.file.truncate(len as u64) {
            Ok(()) => {
                self.known.truncate(len);
                // A power loss may bring truncated bytes back.
                self.stable.truncate(len);
            }
            Err(error) => self.failures.push((step, error)),
        }
    }

    /// Waits for the started operations, in order.
    fn finish(&mut self, started: &mut Vec<(usize, Step, StartedOp)>) {
        for (number, step, started) in started.drain(..) {
            let result = match started {
                StartedOp::Read(read) => read.wait().map(|bytes| self.check_read(step, &bytes)),
                StartedOp::Change(change) => {
                    let result = change.wait();
                    self.changed(number, step, result.is_ok());
                    result
                }
            };
            self.failures.extend(result.err().map(|error| (step, error)));
        }
    }

    fn check_read(&self, step: Step, bytes: &DiskBuffer) {
        let Step::Read(offset, len) = step else { unreachable!("only reads give bytes") };
        self.known.check(bytes, offset as usize, len, &format!("{step:?}"));
    }

    fn changed(&mut self, number: usize, step: Step, whole: bool) {
        let content = content(number);
        match step {
            Step::Write(block) | Step::WriteDurable(block) => {
                let start = block as usize * BLOCK_BYTES;
                let range = start..start + BLOCK_BYTES;
                self.known.change(range.clone(), whole.then_some(&content));
                self.stable.resize(self.stable.len().max(range.end), None);
                self.stable[range.clone()].fill(None);
                if whole && matches!(step, Step::WriteDurable(_)) {
                    self.stable[range.clone()].copy_from_slice(&self.known.bytes[range]);
                }
            }
            Step::Allocate(block, blocks) => {
                let end = (block + blocks) as usize * BLOCK_BYTES;
                let len = self.known.len_max;
                self.known.change(len..end.max(len), None);
                self.known.bytes[len..].fill(Some(0));
                if whole {
                    self.known.len_min = self.known.len_min.max(end);
                }
            }
            Step::SyncData | Step::SyncAll if whole => {
                self.stable = self.known.bytes[..self.known.len_min].to_vec();
            }
            _ => {}
        }
    }
}

pub fn subjects() -> Vec<Box<dyn Subject>> {
    MODES.map(|mode| Box::new(mode) as Box<dyn Subject>).into()
}

impl Subject for Mode {
    fn work(&self, sim: &Sim, fault: Option<Fault>) -> Outcome {
        let run = Run::new(sim.clone(), *self).script();
        let is_poison = |error: &Error| matches!(error, Error::Poisoned { .. });
        if matches!(fault, Some(Fault::Once(_))) && run.failures.iter().any(|it| is_poison(&it.1)) {
            // W2
            let flushes =
                |step| matches!(step, Step::SyncAll | Step::SyncData | Step::WriteDurable(_));
            let mut failures = run.failures.iter();
            assert!(failures.any(|(step, error)| flushes(*step) && !is_poison(error)));
            assert!(is_poison(&run.file.sync_all().unwrap_err()));
            assert!(is_poison(&run.file.truncate(0).unwrap_err()));
            let buffer = run.disk.lease().unwrap();
            assert!(is_poison(&run.file.write(buffer, 0).unwrap_err()));
        }
        let Known { bytes, len_min, len_max } = run.known;
        let now = Kept::Bytes { known: bytes, len_min, len_max };
        let len_min = run.stable.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        let stable = Kept::Bytes { known: run.stable, len_min, len_max: usize::MAX };
        let failures = run.failures.into_iter().map(|(_, error)| error).collect();
        Outcome { failures, files: vec![(path().to_owned(), now, stable)] }
    }

    fn shorts(&self) -> &'static [u64] {
        &[512, 1024, BLOCK_BYTES as u64 - 512]
    }

    fn capacities(&self) -> Vec<u64> {
        vec![2 * BLOCK_BYTES as u64]
    }
}

#[test]
fn a_flush_covers_what_was_started_before_it_and_not_waited_for() {
    // W1
    for mode in MODES {
        for seed in 0..50 {
            let run = Run::new(Sim::new(seed), mode);
            let writes: Vec<_> =
                (0..4).map(|block| run.start(block, Step::Write(block as u64)).unwrap()).collect();
            run.file.sync_data().unwrap();
            let found = run.sim.after_power_loss(path()).unwrap();
            assert_eq!(found, (0..4).flat_map(content).collect::<Vec<_>>());
            drop(writes);
        }
    }
}

#[test]
fn the_error_of_a_write_that_nobody_waited_for_is_told_by_the_next_flush_or_by_close() {
    for (by_flush, completed_first) in [(true, true), (true, false), (false, true), (false, false)]
    {
        let sim = Sim::new(1);
        sim.fault(0, Fault::Once(ENOSPC));
        let run = Run::new(sim, MODES[0]);
        let write = run.start(0, Step::Write(0)).unwrap();
        if completed_first {
            run.disk.drain().unwrap();
        }
        drop(write);
        if by_flush {
            assert_eq!(run.file.sync_data().unwrap_err().errno(), ENOSPC);
            run.file.sync_data().unwrap();
            run.file.close().unwrap();
        } else {
            assert_eq!(run.file.close().unwrap_err().errno(), ENOSPC);
        }
    }
}
