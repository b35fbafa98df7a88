//! Frontiers and gates, at which tasks and threads wait until a record is written or durable.

use rustix::thread::futex;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// The wakers of waiting futures. The key is the sequence that a future waits for, and the future's
/// number.
pub(super) type Waiters = BTreeMap<(u64, u64), Waker>;

/// A sequence that increases until a cut moves it back, and the futures that wait for it.
#[derive(Debug, Default)]
pub(super) struct Frontier {
    /// The sequence before which every record is done.
    done: AtomicU64,
    /// The highest sequence before which a caller wants every record to be done.
    wanted: AtomicU64,
    waiters: Mutex<Waiters>,
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

    /// Returns whether a caller wants more records to be done.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted() > self.done()
    }

    pub(super) fn want(&self, sequence: u64) {
        self.wanted.fetch_max(sequence, Ordering::SeqCst);
    }

    /// Registers `waker`, which is woken once all records before `sequence` are done. Returns a
    /// number. Pass it as `known` in the next call, or to [`Frontier::forget`].
    pub(super) fn wake_at(&self, sequence: u64, known: Option<u64>, waker: &Waker) -> u64 {
        let number = known.unwrap_or_else(|| self.number.fetch_add(1, Ordering::Relaxed));
        self.waiters().insert((sequence, number), waker.clone());
        number
    }

    pub(super) fn forget(&self, sequence: u64, number: u64) {
        self.waiters().remove(&(sequence, number));
    }

    /// Advances the frontier to `sequence`, and returns the waiters that it has reached.
    #[must_use]
    pub(super) fn reach(&self, sequence: u64) -> Waiters {
        self.done.fetch_max(sequence, Ordering::SeqCst);
        let mut waiters = self.waiters();
        let later = waiters.split_off(&(sequence + 1, 0));
        std::mem::replace(&mut *waiters, later)
    }

    /// Moves the frontier back to `sequence` after later records were cut off. Returns all waiters.
    #[must_use]
    pub(super) fn fall(&self, sequence: u64) -> Waiters {
        self.wanted.store(sequence, Ordering::SeqCst);
        self.done.store(sequence, Ordering::SeqCst);
        self.all()
    }

    /// Lowers the wanted sequence if it lies beyond the end of the log, because records that a
    /// caller wanted have been cut off. `next` returns the sequence of the next record.
    pub(super) fn want_no_more_than(&self, next: impl Fn() -> u64) {
        let (wanted, most) = (self.wanted(), next());
        if wanted > most {
            let order = Ordering::SeqCst;
            let _ = self.wanted.compare_exchange(wanted, most, order, order);
            // A record that was appended in the meantime may be wanted.
            self.want(next().min(wanted));
        }
    }

    /// Removes and returns all waiters, to be woken although the frontier has not reached them.
    #[must_use]
    pub(super) fn all(&self) -> Waiters {
        std::mem::take(&mut *self.waiters())
    }

    pub(super) fn waiters(&self) -> MutexGuard<'_, Waiters> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes the futures of these waiters.
pub(super) fn wake(waiters: Waiters) {
    waiters.into_values().for_each(wake_one);
}

/// Wakes one future. A waker is the caller's code. If it panics, the panic hook reports that, and
/// the log and all other futures continue.
pub(super) fn wake_one(waker: Waker) {
    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
}

/// A gate at which threads sleep while they wait for the records of one batch.
///
/// A single system call wakes all of them (`futex(2)`). If they were woken one by one, the first
/// thread would take the processor away from the waking thread.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    opened: AtomicU32,
    sleepers: AtomicU32,
}

impl Gate {
    pub(crate) const ALL: u32 = i32::MAX as u32;

    /// Returns the state to pass to [`Gate::sleep`]. Call this function before checking the awaited
    /// condition.
    pub(crate) fn look(&self) -> u32 {
        self.opened.load(Ordering::SeqCst)
    }

    /// Sleeps until the gate is opened, unless it has been opened since [`Gate::look`] returned
    /// `seen`. May also return spuriously.
    pub(crate) fn sleep(&self, seen: u32) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        // After an error, the caller checks its condition again: either the gate has been opened
        // (EAGAIN), or a signal has arrived (EINTR).
        let _ = futex::wait(&self.opened, futex::Flags::PRIVATE, seen, None);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    pub(super) fn open(&self) {
        self.wake(Gate::ALL);
    }

    /// Wakes at most `most` sleeping threads, and keeps threads that are about to sleep from doing
    /// so.
    pub(crate) fn wake(&self, most: u32) {
        self.opened.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            // The call cannot fail for an address in this process.
            let _ = futex::wake(&self.opened, futex::Flags::PRIVATE, most);
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
        let waiting: Vec<u64> =
            [12, 11, 15].map(|sequence| frontier.wake_at(sequence, None, waker)).into();
        frontier.want(15);
        assert!(frontier.is_wanted());
        assert_eq!(frontier.reach(12).len(), 2);
        assert!(frontier.is_wanted());
        frontier.forget(15, waiting[2]);
        assert!(frontier.reach(15).is_empty() && !frontier.is_wanted());
    }

    #[test]
    fn a_future_that_asks_again_waits_once() {
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
