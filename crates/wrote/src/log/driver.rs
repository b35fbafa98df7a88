//! The driver: lets a waiting caller, or the background thread, run the flusher.
//!
//! A caller that waits for its record runs the flusher itself if no other thread does. This avoids
//! waking another thread that would then have to wake the caller.

use super::claim::Ready;
use super::flusher::Flusher;
use super::state::{Goal, LogState};
use super::wait::{Frontier, Gate, Waiter, wake, wake_one};
use crate::{Effective, Error};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::task::Waker;
use std::thread::Thread;
use std::time::Duration;

/// A future that waits for a goal.
#[derive(Clone, Copy)]
pub(super) struct Waiting {
    waiter: Waiter,
    /// [`LogState::lacks`] at its first poll.
    lacks: u64,
}

impl Waiting {
    pub(super) fn forget(self, frontier: &Frontier) {
        frontier.forget(self.waiter);
    }
}

thread_local! {
    /// The log that this thread drives; wakers that it calls may drop that log.
    static DRIVEN: Cell<*const LogDriver> = const { Cell::new(std::ptr::null()) };
}

/// The most time for which polling a future drives the log: as long as a task may occupy its
/// thread, and longer than a write and flush of a fast disk.
const BRIEF: Duration = Duration::from_micros(500);
/// The most polls that leave the log to its thread after brief drives that did not finish.
const PASSED_OVER_MAX: u32 = 1024;

pub(super) struct LogDriver {
    pub state: LogState,
    effective: Mutex<Effective>,
    flusher: Mutex<Flusher>,
    /// The thread that drives while no caller does; none on a simulated disk.
    background: OnceLock<Thread>,
    /// The background thread sleeps until it is woken.
    is_asleep: AtomicBool,
    /// A thread holds the flusher.
    is_driven: AtomicBool,
    /// The number of threads that wait for exclusive use of the flusher.
    visitors: AtomicU32,
    /// The last thread that drove left work behind.
    has_left_work: AtomicBool,
    brevity: Brevity,
}

/// Tracks whether a brief drive is worthwhile, which it is not on a slow disk.
#[derive(Debug, Default)]
struct Brevity {
    /// The number of polls still to skip.
    passed_over: AtomicU32,
    /// The polls to skip after the next brief drive that does not finish.
    penalty: AtomicU32,
}

impl Brevity {
    // Races are harmless here, so the atomics are relaxed.

    fn is_due(&self) -> bool {
        let passed_over = self.passed_over.load(Ordering::Relaxed);
        self.passed_over.store(passed_over.saturating_sub(1), Ordering::Relaxed);
        passed_over == 0
    }

    fn note(&self, has_ended: bool) {
        let penalty = if has_ended {
            0
        } else {
            let penalty = self.penalty.load(Ordering::Relaxed);
            self.passed_over.store(penalty, Ordering::Relaxed);
            (2 * penalty).clamp(1, PASSED_OVER_MAX)
        };
        self.penalty.store(penalty, Ordering::Relaxed);
    }
}

impl LogDriver {
    /// Makes the driver, and gives every slot its first buffer.
    pub(super) fn new(state: LogState, mut flusher: Flusher) -> Result<LogDriver, Error> {
        flusher.open_slots(&state)?;
        Ok(LogDriver {
            state,
            effective: Mutex::new(flusher.effective().clone()),
            flusher: Mutex::new(flusher),
            background: OnceLock::new(),
            is_asleep: AtomicBool::new(false),
            is_driven: AtomicBool::new(false),
            visitors: AtomicU32::new(0),
            has_left_work: AtomicBool::new(false),
            brevity: Brevity::default(),
        })
    }

    pub(super) fn set_background(&self, thread: Thread) {
        let set = self.background.set(thread);
        debug_assert!(set.is_ok(), "a log has one background thread");
    }

    /// Waits until every record before `end` has reached `goal`, and drives if no other thread
    /// does. `cuts` is [`LogState::cuts`] when the last of them was known to be in the log.
    pub(super) fn wait(&self, goal: Goal, end: u64, cuts: u64, gate: &Gate) -> Result<(), Error> {
        self.state.process.check()?;
        let frontier = self.state.frontier(goal);
        let lacks = self.state.lacks();
        frontier.want(end);
        loop {
            let seen = gate.look();
            // A cut makes every record durable before it removes some.
            if self.state.cuts() != cuts {
                return Ok(());
            }
            if let Some(outcome) = self.state.outcome(goal, end) {
                return outcome;
            }
            if let Some(error) = self.state.lacked_since(lacks, goal, end) {
                return Err(error);
            }
            if self.drive(|| frontier.done() >= end) || self.state.outcome(goal, end).is_some() {
                continue;
            }
            self.notify();
            match self.background.get() {
                Some(_) => gate.sleep(seen),
                None => std::thread::yield_now(),
            }
        }
    }

    /// Like [`LogDriver::wait`], for a future that has registered whether it wants the goal.
    /// Without `cuts` it waits for the record of that sequence, even beyond a cut.
    pub(super) fn poll(
        &self,
        goal: Goal,
        (end, cuts): (u64, Option<u64>),
        known: &mut Option<Waiting>,
        waker: &Waker,
    ) -> Option<Result<(), Error>> {
        if let Err(error) = self.state.process.check() {
            return Some(Err(error));
        }
        let lacks = known.map_or_else(|| self.state.lacks(), |known| known.lacks);
        let outcome = || {
            if cuts.is_some_and(|cuts| self.state.cuts() != cuts) {
                return Some(Ok(()));
            }
            let lacked = || self.state.lacked_since(lacks, goal, end).map(Err);
            self.state.outcome(goal, end).or_else(lacked)
        };
        if let Some(outcome) = outcome() {
            return Some(outcome);
        }
        let frontier = self.state.frontier(goal);
        let is_over = || self.state.outcome(goal, end).is_some();
        let is_brief =
            goal != Goal::Room && self.background.get().is_some() && self.brevity.is_due();
        let gives_way = is_brief && known.is_none();
        if is_brief && !gives_way {
            self.drive_briefly(is_over);
            if let Some(outcome) = outcome() {
                return Some(outcome);
            }
        }
        let waiter = frontier.wake_at(end, known.map(|known| known.waiter), waker);
        *known = Some(Waiting { waiter, lacks });
        match self.background.get() {
            // Ready tasks append first and share the flush; otherwise each would flush its record
            // separately.
            Some(_) if gives_way => wake_one(waker.clone()),
            Some(_) => self.notify(),
            None => _ = self.drive(is_over),
        }
        outcome()
    }

    /// Waits for room in a buffer. Fails on a full disk, where that may take long.
    pub(super) fn wait_for_room(&self) -> Result<(), Error> {
        let (claims, lacks) = (&self.state.claims, self.state.lacks());
        match self.background.get() {
            Some(_) => {
                self.notify();
                claims.wait_for_room(|| self.state.lacks() != lacks);
            }
            None => _ = self.drive(|| claims.has_room()),
        }
        match self.state.lacked_since(lacks, Goal::Room, 0) {
            Some(error) if !claims.has_room() => Err(error),
            _ => Ok(()),
        }
    }

    /// Drives the log until `is_enough` holds or no work is left, unless another thread drives.
    /// Returns whether `is_enough` holds or the log has failed.
    pub(super) fn drive(&self, is_enough: impl Fn() -> bool) -> bool {
        let gives_way = || is_enough() || self.has_visitor();
        self.drive_by(&is_enough, |flusher| flusher.run(&self.state, &gives_way))
    }

    fn has_visitor(&self) -> bool {
        self.visitors.load(Ordering::SeqCst) > 0
    }

    /// Waits for the flusher and calls `work` with it; driving threads give way. Fails for a waker
    /// called by the log, whose thread holds the flusher.
    pub(super) fn visit<T>(
        &self,
        work: impl FnOnce(&mut Flusher) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.state.process.check()?;
        if self.is_driven_here() {
            let because = "this call waits for the log, in a waker that the log has called";
            return Err(Error::refused(&self.state.terms.folder, because));
        }
        self.visitors.fetch_add(1, Ordering::SeqCst);
        let flusher = self.flusher.lock();
        self.visitors.fetch_sub(1, Ordering::SeqCst);
        let Ok(mut flusher) = flusher else {
            self.state.fail(half_done());
            return Err(half_done());
        };
        let done = self.state.check().and_then(|()| {
            if self.state.is_over() {
                return Err(self.state.refusal_of_closed());
            }
            self.hold(&mut flusher, work)
        });
        self.let_go(flusher);
        done
    }

    /// Like [`LogDriver::drive`] for at most [`BRIEF`], so that a waiting future needs no other
    /// thread to be woken and to wake it.
    fn drive_briefly(&self, is_enough: impl Fn() -> bool) {
        if self.is_driven.load(Ordering::SeqCst) {
            return;
        }
        let run = |flusher: &mut Flusher| flusher.run_briefly(&self.state, BRIEF, &is_enough);
        self.brevity.note(self.drive_by(&is_enough, run));
    }

    fn drive_by(&self, is_enough: &impl Fn() -> bool, run: impl FnOnce(&mut Flusher)) -> bool {
        if self.has_visitor() {
            return false;
        }
        let mut flusher = match self.flusher.try_lock() {
            Ok(flusher) => flusher,
            Err(TryLockError::WouldBlock) => return false,
            // A bug in the log: it must not continue from an unfinished step.
            Err(TryLockError::Poisoned(_)) => {
                self.state.fail(half_done());
                return true;
            }
        };
        self.hold(&mut flusher, run);
        self.let_go(flusher);
        is_enough() || self.state.has_failed()
    }

    fn hold<T>(&self, flusher: &mut Flusher, work: impl FnOnce(&mut Flusher) -> T) -> T {
        self.is_driven.store(true, Ordering::SeqCst);
        let outer = DRIVEN.replace(self);
        let done = work(flusher);
        DRIVEN.set(outer);
        done
    }

    fn let_go(&self, flusher: MutexGuard<'_, Flusher>) {
        self.has_left_work.store(flusher.leaves_work(), Ordering::SeqCst);
        self.note_effective(&flusher);
        drop(flusher);
        // Stored after the unlock: a thread that reads it can take the lock.
        self.is_driven.store(false, Ordering::SeqCst);
        // New work is left to the background thread.
        if self.has_work() {
            self.notify();
        }
    }

    /// Returns whether this thread drives the log, and so holds the flusher.
    pub(super) fn is_driven_here(&self) -> bool {
        std::ptr::eq(DRIVEN.get(), self)
    }

    fn note_effective(&self, flusher: &Flusher) {
        let mut known = self.effective.lock().unwrap_or_else(PoisonError::into_inner);
        if known.fallbacks.len() != flusher.effective().fallbacks.len() {
            known.clone_from(flusher.effective());
        }
    }

    /// Returns the options in effect, and every fallback.
    pub(super) fn effective(&self) -> Effective {
        self.effective.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn has_work(&self) -> bool {
        let LogState { written, durable, claims, .. } = &self.state;
        let is_wanted = || written.is_wanted() || durable.is_wanted() || claims.has_closed();
        !self.state.has_failed()
            && (self.has_left_work.load(Ordering::SeqCst)
                || !self.state.lacks_room() && is_wanted())
    }

    pub(super) fn notify(&self) {
        if !self.is_driven.load(Ordering::SeqCst) {
            self.wake_background();
        }
    }

    pub(super) fn notify_of(&self, ready: Ready) {
        if ready.0 {
            self.notify();
        }
    }

    /// Wakes the background thread if it sleeps without a tick.
    pub(super) fn wake_sleeper(&self) {
        if self.is_asleep.load(Ordering::Relaxed) {
            self.wake_background();
        }
    }

    fn wake_background(&self) {
        if let Some(background) = self.background.get() {
            background.unpark();
        }
    }

    /// Puts the background thread, which calls this, to sleep until a record arrives, or for
    /// `time`.
    pub(super) fn sleep(&self, time: Duration) {
        self.is_asleep.store(true, Ordering::SeqCst);
        // On a full disk the next attempt happens at the next tick or call.
        let is_open = self.state.claims.has_open_records() && !self.state.lacks_room();
        if !is_open && !self.has_work() {
            std::thread::park_timeout(time);
        }
        self.is_asleep.store(false, Ordering::SeqCst);
    }

    /// Makes the next record start a segment if the current one is older than `age`.
    pub(super) fn rotate_if_older(&self, age: Duration) {
        // If another thread drives now, the next tick checks again.
        let Ok(mut flusher) = self.flusher.try_lock() else { return };
        if flusher.take_rotation(age) {
            self.state.claims.rotate();
            self.state.written.want(self.state.next_sequence());
        }
    }

    /// Lets retention remove the records before `sequence`, in the background thread.
    pub(super) fn release(&self, sequence: u64) {
        if self.state.release(sequence) {
            match self.background.get() {
                Some(background) => background.unpark(),
                None => self.retain_if_released(),
            }
        }
    }

    /// Applies retention if records were released, because without new records no flush does it.
    pub(super) fn retain_if_released(&self) {
        // If another thread drives now, the next tick tries again.
        let Ok(mut flusher) = self.flusher.try_lock() else { return };
        if self.state.take_released() && !self.state.has_failed() {
            flusher.retain(&self.state);
        }
    }

    /// Ends the log: refuses further records, and wakes producers that wait for room.
    pub(super) fn end(&self) {
        // Closing the log takes every batch, so the flusher needs no notification.
        let _ = self.state.claims.end();
        wake(self.state.freed.all());
    }

    /// Writes everything, makes it durable and marks the log as closed. On a full disk the rest
    /// stays in memory, and a later call tries again.
    pub(super) fn close(&self) -> Result<(), Error> {
        let mut flusher = self.flusher.lock().unwrap_or_else(|poisoned| {
            self.state.fail(half_done());
            poisoned.into_inner()
        });
        let closed = self.state.check().and_then(|()| flusher.close(&self.state));
        if let Err(error) = &closed {
            self.state.fail(error.clone());
        }
        // No write may reach the disk once another process can open the log.
        flusher.drain(&self.state);
        closed?.inspect(|()| self.state.close())
    }
}

/// Creates the error for a panic that interrupted the flusher.
pub(super) fn half_done() -> Error {
    Error::Engine { what: "an earlier panic while the log was written", errno: libc::EIO }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_soon_leave_a_slow_disk_to_the_logs_thread() {
        let brevity = Brevity::default();
        let drives = |polls: u32, has_ended: bool| {
            let is_driven = |_: &u32| {
                let is_due = brevity.is_due();
                if is_due {
                    brevity.note(has_ended);
                }
                is_due
            };
            (0..polls).filter(is_driven).count()
        };
        // Pauses of 0, 1, 2, 4 .. 512 polls, and then of 1024.
        assert_eq!(drives(1023 + 12, false), 12);
        assert_eq!(drives(10 * 1025, false), 10);
        assert_eq!(drives(1024, true), 0, "the last pause ends first");
        assert_eq!(drives(1000, true), 1000, "a flush in time ends the pauses");
    }
}
