//! `Following`, which decides when a reader at the end of a log checks for more records.

use crate::engine::Folder;
use crate::log::watch::{Slept, Watch};
use std::time::{Duration, Instant};

/// The interval between checks if no change is reported, where the kernel reports every change.
const LOOK_AFTER: Duration = Duration::from_secs(1);
/// The interval between checks where the kernel does not report every change.
const LOOK_UNTOLD_AFTER: Duration = Duration::from_millis(20);
/// The time without a record after which a reader checks that the disk has not lost the next one.
/// The time doubles after each check, up to the maximum, because a check reads all prepared space.
const CHECK_AFTER: Duration = Duration::from_millis(200);
const CHECK_AFTER_MAX: Duration = Duration::from_secs(10);
/// The interval between checks of the flag of [`crate::log::until`], whose changes are not
/// reported.
const FLAG_AFTER: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Following {
    pub(super) watch: Watch,
    /// Whether the watch is armed and reports every change.
    is_told: bool,
    /// Whether there may be more records before the end that the last check found.
    has_more: bool,
    /// Whether there may be more records than the last check found.
    pub(super) has_changed: bool,
    /// Whether a change has been reported since the last check.
    has_event: bool,
    looked_at: Instant,
    /// The time when the reader reached the end of the log, or last checked for a lost record
    /// there.
    quiet_since: Instant,
    /// Whether no check for a lost record has been made since the last record or change.
    is_unchecked: bool,
    check_after: Duration,
    /// The number of checks since the reader was opened.
    #[cfg(test)]
    pub looks: u64,
    /// The number of checks that also searched for a lost record.
    #[cfg(test)]
    pub checks: u64,
}

/// A check of the files that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    ForMore,
    /// Also check for a record that the disk has lost.
    ForLost,
}

impl Following {
    pub(super) fn new() -> Following {
        let now = Instant::now();
        Following {
            watch: Watch::default(),
            is_told: false,
            has_more: true,
            has_changed: true,
            has_event: false,
            looked_at: now,
            quiet_since: now,
            is_unchecked: true,
            check_after: CHECK_AFTER,
            #[cfg(test)]
            looks: 0,
            #[cfg(test)]
            checks: 0,
        }
    }

    /// Follows the log in this folder, which must exist.
    pub(super) fn enter(&mut self, folder: &Folder) {
        self.watch.enter(folder);
    }

    /// Returns whether the reader has reached the end that the last check found.
    pub(super) fn is_at_end(&self) -> bool {
        !self.has_more
    }

    /// Starts a wait. Makes sure that even a caller that does not wait gets the records that have
    /// arrived since the last check.
    pub(super) fn begin(&mut self) {
        if std::mem::take(&mut self.has_more) {
            self.quiet_since = Instant::now();
        }
        self.has_changed |= !self.is_told;
        if !self.has_changed {
            self.sleep_for(Duration::ZERO);
        }
    }

    /// Returns the check that is due now, if any, and prepares it: a change after this call ends
    /// the next sleep.
    pub(super) fn due(&mut self, has_slept: bool) -> Option<Look> {
        // A check for a lost record may read a lot, so it is left to callers that wait.
        let is_check = has_slept && self.until_check().is_zero();
        let is_due = self.has_changed || is_check || self.looked_at.elapsed() >= self.look_after();
        if !is_due {
            return None;
        }
        self.is_told = self.watch.arm();
        self.has_changed = false;
        self.looked_at = Instant::now();
        #[cfg(test)]
        {
            self.looks += 1;
        }
        if !is_check {
            return Some(Look::ForMore);
        }
        self.quiet_since = self.looked_at;
        self.is_unchecked = !self.is_told;
        self.check_after = (self.check_after * 2).min(CHECK_AFTER_MAX);
        self.has_event = false;
        #[cfg(test)]
        {
            self.checks += 1;
        }
        Some(Look::ForLost)
    }

    /// Notes that a record was read. This is cheap, because a reader that catches up calls it for
    /// each record.
    pub(super) fn found(&mut self) {
        self.has_more = true;
        self.has_event = false;
        self.is_unchecked = true;
    }

    /// Notes that a check has found no record.
    pub(super) fn found_nothing(&mut self) {
        // A writer may have continued after a record that can't be read.
        self.is_unchecked |= std::mem::take(&mut self.has_event);
    }

    /// Returns the time until a check for a lost record is due; zero if it is due now.
    fn until_check(&self) -> Duration {
        let left = self.check_after.saturating_sub(self.quiet_since.elapsed());
        if self.is_unchecked { left } else { Duration::MAX }
    }

    /// Sleeps until a check may be due, for at most `left`. Returns whether the bell has rung.
    pub(super) fn sleep(&mut self, left: Duration, has_flag: bool) -> bool {
        let next_look = self.look_after().saturating_sub(self.looked_at.elapsed());
        let flag = if has_flag { FLAG_AFTER } else { Duration::MAX };
        self.sleep_for(left.min(next_look).min(self.until_check()).min(flag))
    }

    fn sleep_for(&mut self, time: Duration) -> bool {
        let slept = self.watch.sleep(time);
        let has_event = slept == Slept::Changed;
        self.has_event |= has_event;
        self.has_changed |= has_event;
        slept == Slept::Rung
    }

    fn look_after(&self) -> Duration {
        if self.is_told { LOOK_AFTER } else { LOOK_UNTOLD_AFTER }
    }
}
