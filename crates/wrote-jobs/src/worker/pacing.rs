//! Operations at their due times (M5): the next one due, and the wait for it.

use super::{Arrival, Worker};
use crate::spec::Rw;
use crate::worker::pace::nap;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};
use wrote::engine::Completion;
use wrote_result::Error;

/// The worker spins through the last part of a wait: the kernel wakes threads some 10 us late.
const AWAKE_NS: u64 = 50_000;

impl Worker<'_> {
    /// Sets the thread's timer slack, which is 50 us by default (prctl(2), `PR_SET_TIMERSLACK`).
    pub(super) fn prepare_to_pace(&self) {
        if self.paced {
            // After an error timers stay late, which the issue delay shows.
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        }
    }

    /// Waits for the task's start within its group.
    pub fn delay(&mut self) {
        let begin = Instant::now();
        while let Some(left) = self.spec.startdelay.checked_sub(begin.elapsed())
            && !left.is_zero()
            && !self.shared.must_stop()
        {
            std::thread::sleep(nap(left));
        }
    }

    /// Pauses once the operations in flight have completed; ends early with the task's time.
    pub(super) fn think(&mut self) -> Result<(), Error> {
        self.reap(usize::MAX)?;
        let Some(think) = self.spec.think else { return Ok(()) };
        self.think_at += u64::from(think.blocks);
        let begin = Instant::now();
        while begin.elapsed() < think.spin {
            std::hint::spin_loop();
        }
        while let Some(left) = think.time.checked_sub(begin.elapsed())
            && !left.is_zero()
            && !self.over
        {
            std::thread::sleep(nap(left));
            // Progress is published and samples are taken during the pause.
            self.acknowledge()?;
        }
        // A pause belongs to the job: no latency counts it.
        self.read_clock();
        self.thought_until_ns = self.now_ns;
        Ok(())
    }

    /// Returns the next direction and its due time, where a rate decides them.
    ///
    /// With two rates, the direction due first is next. If only one direction has a rate, the other
    /// one fills the time between.
    #[inline]
    pub(super) fn due(&self) -> (Option<bool>, Option<u64>) {
        if !self.paced {
            return (None, None);
        }
        let Rw { read, write, .. } = self.spec.rw;
        let due = |write: bool| {
            let pace = &self.pace[usize::from(write)];
            pace.holds().then(|| pace.due_ns().max(self.thought_until_ns))
        };
        match (read && write, due(false), due(true)) {
            (false, read_due, write_due) => (Some(write), if write { write_due } else { read_due }),
            (true, Some(read_due), Some(write_due)) => {
                (Some(write_due < read_due), Some(read_due.min(write_due)))
            }
            (true, Some(read_due), None) => (Some(read_due > self.now_ns), None),
            (true, None, Some(write_due)) => (Some(write_due <= self.now_ns), None),
            (true, None, None) => (None, None),
        }
    }

    /// Waits up to `time` for an operation.
    fn collect_within(&mut self, time: Duration) -> Result<(), Error> {
        self.engine.reap_within(time, &mut self.completions)?;
        for Completion { user_data, result, buffer, .. } in self.completions.drain(..) {
            self.arrivals.push(Arrival { place: user_data as u32, bytes: result?, buffer });
        }
        Ok(())
    }

    /// Waits until the next operation is due, and collects completions while it waits.
    pub(super) fn wait_until(&mut self, due_ns: u64) -> Result<(), Error> {
        self.reap(0)?;
        let left_ns = due_ns.min(self.deadline_ns).saturating_sub(self.now_ns);
        if self.over || left_ns <= AWAKE_NS {
            // The caller calls again at once, unless the operation is due.
            std::hint::spin_loop();
            return Ok(());
        }
        let left = nap(Duration::from_nanos(left_ns - AWAKE_NS));
        if self.engine.outstanding() > 0 {
            self.collect_within(left)?;
            return self.acknowledge();
        }
        std::thread::sleep(left);
        Ok(())
    }
}
