//! The time of the flusher. A simulated disk has none, so each of its steps takes the same time
//! and a seed repeats a run.

use std::time::{Duration, Instant};

/// The time of a step on a simulated disk: a few steps make records late.
const STEP: Duration = Duration::from_millis(500);
/// The rate of a simulated disk, at which a few batches are late.
pub(super) const SIMULATED_BYTES_PER_S: u64 = 10_000;

/// The time of a log.
pub(super) enum Clock {
    Real,
    Simulated(Instant),
}

impl Clock {
    pub(super) fn new(is_simulated: bool) -> Clock {
        if is_simulated { Clock::Simulated(Instant::now()) } else { Clock::Real }
    }

    pub(super) fn now(&self) -> Instant {
        match self {
            Clock::Real => Instant::now(),
            Clock::Simulated(now) => *now,
        }
    }

    /// Records that the flusher takes its next step.
    pub(super) fn step(&mut self) {
        if let Clock::Simulated(now) = self {
            *now += STEP;
        }
    }
}
