//! Who waits for which record, and is woken when it is written or durable.

use rustix::thread::futex;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// What is waited for: the sequence up to which everything must be done, and who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Waiting {
    sequence: u64,
    number: u64,
}

/// A frontier that only goes up, and those who wait until it has passed their record.
#[derive(Debug, Default)]
pub(super) struct Frontier {
    /// Everything before this sequence is done.
    done: AtomicU64,
    /// The highest sequence before which somebody wants everything done.
    wanted: AtomicU64,
    waiters: Mutex<BTreeMap<Waiting, Waker>>,
    number: AtomicU64,
}

impl Frontier {
    pub(super) fn new(done: u64) -> Frontier {
        Frontier { done: AtomicU64::new(done), wanted: AtomicU64::new(done), ..Default::default() }
    }

    pub(super) fn done(&self) -> u64 {
        self.done.load(Ordering::SeqCst)
    }

    pub(super) fn wanted(&self) -> u64 {
        self.wanted.load(Ordering::SeqCst)
    }

    /// Whether somebody waits for more than is done.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted() > self.done()
    }

    pub(super) fn want(&self, sequence: u64) {
        self.wanted.fetch_max(sequence, Ordering::SeqCst);
    }

    /// Has `waker` woken when everything before `sequence` is done. The place among those who wait is
    /// given back to [`Frontier::forget`] or to the next call.
    pub(super) fn wake_at(&self, sequence: u64, known: Option<Waiting>, waker: &Waker) -> Waiting {
        let waiting = known.unwrap_or_else(|| Waiting {
            sequence,
            number: self.number.fetch_add(1, Ordering::Relaxed),
        });
        self.waiters().insert(waiting, waker.clone());
        waiting
    }

    pub(super) fn forget(&self, waiting: Waiting) {
        self.waiters().remove(&waiting);
    }

    /// Everything before `sequence` is done. Gives those who waited for it.
    #[must_use]
    pub(super) fn reach(&self, sequence: u64) -> BTreeMap<Waiting, Waker> {
        self.done.fetch_max(sequence, Ordering::SeqCst);
        let mut waiters = self.waiters();
        let later = waiters.split_off(&Waiting { sequence: sequence + 1, number: 0 });
        std::mem::replace(&mut *waiters, later)
    }

    /// Those who wait, for whom nothing more will come.
    #[must_use]
    pub(super) fn all(&self) -> BTreeMap<Waiting, Waker> {
        std::mem::take(&mut *self.waiters())
    }

    fn waiters(&self) -> MutexGuard<'_, BTreeMap<Waiting, Waker>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where the threads sleep that wait for the records of one batch, so that one call of the kernel wakes them
/// all (`futex(2)`): woken one by one, the first would take the processor from the one who wakes them.
#[derive(Debug, Default)]
pub(super) struct Gate {
    /// How often it was opened.
    opened: AtomicU32,
    sleepers: AtomicU32,
}

impl Gate {
    /// What [`Gate::sleep`] must be told: looked at before what is waited for.
    pub(super) fn look(&self) -> u32 {
        self.opened.load(Ordering::SeqCst)
    }

    /// Sleeps until the gate is opened, if it was not since it was looked at. May wake for nothing.
    pub(super) fn sleep(&self, seen: u32) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        // An error is a reason to look again: it was opened (EAGAIN), or a signal came (EINTR).
        let _ = futex::wait(&self.opened, futex::Flags::PRIVATE, seen, None);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    pub(super) fn open(&self) {
        self.opened.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            // It fails for no address that is ours.
            let _ = futex::wake(&self.opened, futex::Flags::PRIVATE, i32::MAX as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_whose_record_is_done_are_woken_and_no_others() {
        let frontier = Frontier::new(10);
        let waker = Waker::noop();
        let waiting: Vec<Waiting> =
            [12, 11, 15].map(|sequence| frontier.wake_at(sequence, None, waker)).into();
        frontier.want(15);
        assert!(frontier.is_wanted());
        assert_eq!(frontier.reach(12).len(), 2);
        assert!(frontier.is_wanted());
        frontier.forget(waiting[2]);
        assert!(frontier.reach(15).is_empty() && !frontier.is_wanted());
    }

    #[test]
    fn who_asks_again_waits_once() {
        let frontier = Frontier::new(0);
        let waiting = frontier.wake_at(1, None, Waker::noop());
        assert_eq!(frontier.wake_at(1, Some(waiting), Waker::noop()), waiting);
        assert_eq!(frontier.all().len(), 1);
    }

    #[test]
    fn a_gate_that_was_opened_since_it_was_looked_at_lets_through() {
        let gate = Gate::default();
        let seen = gate.look();
        gate.open();
        gate.sleep(seen);
    }

    #[test]
    fn all_who_sleep_at_a_gate_are_woken_when_it_opens() {
        let (gate, is_open) = (Gate::default(), std::sync::atomic::AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    loop {
                        let seen = gate.look();
                        if is_open.load(Ordering::SeqCst) {
                            return;
                        }
                        gate.sleep(seen);
                    }
                });
            }
            is_open.store(true, Ordering::SeqCst);
            gate.open();
        });
    }
}
