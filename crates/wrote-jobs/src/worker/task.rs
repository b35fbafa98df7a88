//! What one thread is to do, and what it shares with the others of its run.

use super::Tally;
use crate::spec;
use crate::worker::pace::Pace;
use crate::worker::sequence::Sequence;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use wrote_result::Stop;

/// What one thread is to do, and how.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its operations.
    pub sequence: Sequence,
    /// An operation may fall on the bytes of another one that is in flight.
    pub comes_again: bool,
    /// What is written.
    pub data: spec::Data,
    /// Another run's data is never the same (M2).
    pub data_seed: u64,
    /// Written blocks carry a header with a checksum.
    pub verify: bool,
    /// Blocks that are read must carry one.
    pub check_reads: bool,
    /// Each write is flushed before it is complete.
    pub durable: bool,
    /// `fsync(2)` after so many writes; waits for those in flight.
    pub fsync_after: Option<u32>,
    /// `fdatasync(2)` after so many writes; waits for those in flight.
    pub fdatasync_after: Option<u32>,
    /// A write counts as complete only after the flush that follows it.
    pub latency_with_flush: bool,
    /// `fsync(2)` after the last write, inside the clock (M1).
    pub end_fsync: bool,
    /// `fdatasync(2)` after the last write, inside the clock (M1).
    pub end_fdatasync: bool,
    /// How many operations are handed on together; `None` is what serves best.
    pub submit_together: Option<usize>,
    /// How many completions are waited for; `None` is what serves best.
    pub wait_for: Option<usize>,
    /// Whether each operation's latency is taken.
    pub latencies: bool,
    /// Whether the rates are sampled.
    pub samples: bool,
    /// The rates of reads and writes.
    pub pace: [Pace; 2],
    /// How long after the others it begins.
    pub startdelay: Duration,
    /// What is done in the first so much time is not counted.
    pub ramp: Duration,
    /// When it is cut off, counted from the end of the ramp.
    pub time: Option<Duration>,
}

/// What a thread shares with the others of its run.
#[derive(Clone, Copy)]
pub struct Shared<'a> {
    /// Someone asked to stop.
    pub stop: &'a Stop,
    /// Another thread of the run failed.
    pub failed: &'a AtomicBool,
    pub progress: &'a Progress,
}

impl Shared<'_> {
    pub fn must_stop(&self) -> bool {
        self.stop.is_requested() || self.failed.load(Ordering::Relaxed)
    }
}

/// How far a thread is, for those who watch: read and written bytes.
#[derive(Debug, Default)]
pub struct Progress([AtomicU64; 2]);

impl Progress {
    pub(super) fn publish(&self, tally: &Tally) {
        for (shown, bytes) in self.0.iter().zip(tally.moved_bytes()) {
            shown.store(bytes, Ordering::Relaxed);
        }
    }

    /// Bytes read and written so far, those of the ramp included.
    pub fn moved_bytes(&self) -> [u64; 2] {
        [0, 1].map(|direction: usize| self.0[direction].load(Ordering::Relaxed))
    }
}
