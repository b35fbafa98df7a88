//! The state that the threads of a run share.

use super::Tally;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use wrote_result::Stop;

/// The state that a thread shares with other threads of its run.
#[derive(Clone, Copy)]
pub struct Shared<'a> {
    /// A request of the caller to stop.
    pub stop: &'a Stop,
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
