//! The task of one thread, and the state that the threads of a run share.

use super::Tally;
use crate::spec;
use crate::worker::pace::Pace;
use crate::worker::sequence::Sequence;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use wrote_result::Stop;

/// The task of one thread.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its operations.
    pub sequence: Sequence,
    /// An operation may be to the bytes of another one in flight.
    pub comes_again: bool,
    /// The kind of bytes that the task writes.
    pub data: spec::Data,
    /// The seed of these bytes, another for each run (M2).
    pub data_seed: u64,
    /// Written blocks carry a header with a checksum.
    pub verify: bool,
    /// Blocks to read must carry one.
    pub check_reads: bool,
    /// Each write is flushed before it is complete.
    pub durable: bool,
    /// Writes between two calls of `fsync(2)`, which wait for the writes in flight.
    pub fsync_after: Option<u32>,
    /// Writes between two calls of `fdatasync(2)`, which wait for the writes in flight.
    pub fdatasync_after: Option<u32>,
    /// The latency of a write ends with the flush that follows it.
    pub latency_with_flush: bool,
    /// `fsync(2)` after the last write, inside the clock (M1).
    pub end_fsync: bool,
    /// `fdatasync(2)` after the last write, inside the clock (M1).
    pub end_fdatasync: bool,
    /// Operations handed on together; with `None` the worker decides.
    pub submit_together: Option<usize>,
    /// Completions that one call waits for; with `None` the worker decides.
    pub wait_for: Option<usize>,
    /// Times each operation.
    pub latencies: bool,
    /// Samples the rates.
    pub samples: bool,
    /// The rates of reads and writes.
    pub pace: [Pace; 2],
    /// Delay of the start after that of other tasks.
    pub startdelay: Duration,
    /// Time at the start that is not counted.
    pub ramp: Duration,
    /// The time limit, counted from the end of the ramp.
    pub time: Option<Duration>,
}

/// The state that a thread shares with other threads of its run.
#[derive(Clone, Copy)]
pub struct Shared<'a> {
    /// A request of the caller to stop.
    pub stop: &'a Stop,
    /// A thread of the run failed.
    pub failed: &'a AtomicBool,
    pub progress: &'a Progress,
}

impl Shared<'_> {
    pub fn must_stop(&self) -> bool {
        self.stop.is_requested() || self.failed.load(Ordering::Relaxed)
    }
}

/// The progress of a thread: bytes read and written.
#[derive(Debug, Default)]
pub struct Progress([AtomicU64; 2]);

impl Progress {
    pub(super) fn publish(&self, tally: &Tally) {
        for (shown, bytes) in self.0.iter().zip(tally.moved_bytes()) {
            shown.store(bytes, Ordering::Relaxed);
        }
    }

    /// Returns the bytes read and written so far, with those of the ramp.
    pub fn moved_bytes(&self) -> [u64; 2] {
        [0, 1].map(|direction: usize| self.0[direction].load(Ordering::Relaxed))
    }
}
