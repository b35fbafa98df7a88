//! `Following`: when a reader at the end of a log looks for more.

use super::super::watch::{Bell, Slept, Watch};
use std::path::Path;
use std::time::{Duration, Instant};

/// The time after which a reader looks although no change was reported, on a file system where the
/// kernel reports every change.
const LOOK_AFTER: Duration = Duration::from_secs(1);
/// The same time where it does not. It doubles up to the most.
const SLEEP_MIN: Duration = Duration::from_millis(1);
const SLEEP_MAX: Duration = Duration::from_millis(20);
/// The time without a record after which a following reader checks that the disk has not lost the
/// next one. It doubles each time.
const CHECK_AFTER: Duration = Duration::from_millis(200);
/// The time after which a reader examines the flag of [`super::super::until`], which reports no
/// change.
const FLAG_AFTER: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Following {
    watch: Watch,
    /// The watch is armed, and reports every change.
    is_told: bool,
    /// The reader has not come to the end of the bytes of the last look.
    has_more: bool,
    /// There may be more than at the last look.
    has_changed: bool,
    looked_at: Instant,
    sleep: Duration,
    /// When the last record was read, or the reader was made.
    quiet_since: Instant,
    check_after: Duration,
    /// Looks since the opening.
    #[cfg(test)]
    pub looks: u64,
}

/// A look of a reader that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    ForMore,
    /// It also looks for a record that the disk has lost.
    ForLost,
}

impl Following {
    /// Follows the log in the folder; `None` is a simulated disk.
    pub(super) fn new(folder: Option<&Path>) -> Following {
        let now = Instant::now();
        Following {
            watch: Watch::new(folder),
            is_told: false,
            has_more: true,
            has_changed: true,
            looked_at: now,
            sleep: SLEEP_MIN,
            quiet_since: now,
            check_after: CHECK_AFTER,
            #[cfg(test)]
            looks: 0,
        }
    }

    /// Makes the reader end its wait when the bell rings.
    pub(super) fn set_bell(&mut self, bell: Bell) {
        self.watch.set_bell(bell);
    }

    /// Tells whether the reader is behind the end that it saw at the last look.
    pub(super) fn is_at_end(&self) -> bool {
        !self.has_more
    }

    /// Begins a wait. A caller that does not wait gets what came since the last look, too.
    pub(super) fn begin(&mut self) {
        self.has_more = false;
        self.has_changed |= !self.is_told;
        if !self.has_changed {
            self.sleep_for(Duration::ZERO);
        }
    }

    /// Returns the look that is due now, and prepares it: a change after this call ends the next
    /// sleep.
    pub(super) fn due(&mut self, has_slept: bool) -> Option<Look> {
        // A check may read much, and is left to a caller that waits.
        let is_check = has_slept && self.quiet_since.elapsed() >= self.check_after;
        if !self.has_changed && !is_check {
            if self.looked_at.elapsed() < self.look_after() {
                return None;
            }
            self.sleep = (self.sleep * 2).min(SLEEP_MAX);
        }
        self.is_told = self.watch.arm();
        self.has_changed = false;
        self.looked_at = Instant::now();
        #[cfg(test)]
        {
            self.looks += 1;
        }
        if is_check {
            self.check_after *= 2;
            return Some(Look::ForLost);
        }
        Some(Look::ForMore)
    }

    /// Notes that a record was read.
    pub(super) fn found(&mut self) {
        self.has_more = true;
        self.sleep = SLEEP_MIN;
        self.quiet_since = Instant::now();
        self.check_after = CHECK_AFTER;
    }

    /// Sleeps until a look may be due, or for `left`. Returns whether the bell rang.
    pub(super) fn sleep(&mut self, left: Duration, has_flag: bool) -> bool {
        let next_look = self.look_after().saturating_sub(self.looked_at.elapsed());
        let next_check = self.check_after.saturating_sub(self.quiet_since.elapsed());
        let flag = if has_flag { FLAG_AFTER } else { Duration::MAX };
        self.sleep_for(left.min(next_look).min(next_check).min(flag))
    }

    fn sleep_for(&mut self, time: Duration) -> bool {
        let slept = self.watch.sleep(time);
        self.has_changed |= slept == Slept::Changed;
        slept == Slept::Rung
    }

    fn look_after(&self) -> Duration {
        if self.is_told { LOOK_AFTER } else { self.sleep }
    }
}
