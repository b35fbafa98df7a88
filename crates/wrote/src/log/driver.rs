//! The driver: an open log, and the thread that works for it at a given time, which is either a
//! waiting caller or the background thread.
//!
//! A caller that waits for its record runs the flusher itself if no other thread does. This avoids
//! waking another thread that would then have to wake the caller. The background thread works while
//! no caller does, and serves the log's timers. On a simulated disk without real time, a log has no
//! background thread.

use super::claim::Ready;
use super::flusher::Flusher;
use super::lock::Lock;
use super::promises::{Aim, Promises, Waiting};
use super::state::{Goal, LogState};
use super::wait::wake;
use crate::{Disk, Effective, Error, Survives};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::task::{Poll, Waker};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

thread_local! {
    /// The log that this thread drives. A waker called by this thread may drop that log.
    static DRIVEN: Cell<*const LogDriver> = const { Cell::new(std::ptr::null()) };
}

/// The approximate maximum time for which a record stays in memory if no caller waits for it.
const LINGER: Duration = Duration::from_millis(10);
/// The minimum time between ticks, even if the interval of [`SyncPolicy::Interval`] is shorter.
const TICK_MIN: Duration = Duration::from_millis(1);
/// The time without a new record after which the thread sleeps until one arrives, or for [`SLEEP`].
const QUIET: Duration = Duration::from_secs(1);
/// The maximum time of a sleep. Producers read the flag `is_asleep` without a fence, so a record
/// may fail to wake the thread.
const SLEEP: Duration = Duration::from_secs(1);

/// An open log.
pub(super) struct LogDriver {
    pub state: LogState,
    effective: Mutex<Effective>,
    flusher: Mutex<Flusher>,
    /// The thread that drives the log while no caller does; unset on a simulated disk.
    background: OnceLock<Thread>,
    /// Whether the background thread sleeps until it is woken.
    is_asleep: AtomicBool,
    /// Whether a thread holds the flusher.
    is_driven: AtomicBool,
    /// The number of threads that wait for exclusive use of the flusher.
    visitors: AtomicU32,
    /// Whether the last thread that drove the log has left work behind.
    has_left_work: AtomicBool,
    /// The number of [`super::Log`]s that share the driver.
    handles: AtomicUsize,
    /// Whether the background thread must stop.
    stop: AtomicBool,
    shutdown: Mutex<Shutdown>,
    /// The disk that the log's readers use, if one was given.
    pub disk: Option<Disk>,
}

/// The parts of a log that are consumed when it is shut down, and the result.
struct Shutdown {
    thread: Option<JoinHandle<()>>,
    /// The lock of the log, held until no write is in flight.
    lock: Option<Lock>,
    result: Option<Result<(), Error>>,
}

impl LogDriver {
    pub(super) fn new(
        state: LogState,
        flusher: Flusher,
        disk: Option<Disk>,
        lock: Option<Lock>,
    ) -> LogDriver {
        LogDriver {
            state,
            effective: Mutex::new(flusher.effective().clone()),
            flusher: Mutex::new(flusher),
            background: OnceLock::new(),
            is_asleep: AtomicBool::new(false),
            is_driven: AtomicBool::new(false),
            visitors: AtomicU32::new(0),
            has_left_work: AtomicBool::new(false),
            handles: AtomicUsize::new(1),
            stop: AtomicBool::new(false),
            shutdown: Mutex::new(Shutdown { thread: None, lock, result: None }),
            disk,
        }
    }

    /// Starts the background thread.
    pub(super) fn start_thread(
        self: &Arc<Self>,
        segment_age: Option<Duration>,
    ) -> Result<(), Error> {
        let driver = Arc::clone(self);
        let thread = std::thread::Builder::new()
            .name("wrote-log".to_owned())
            .spawn(move || driver.run_in_background(segment_age))
            .map_err(|error| {
                let what = "starting the log's thread";
                Error::Engine { what, errno: crate::error::errno_of(&error) }
            })?;
        let set = self.background.set(thread.thread().clone());
        debug_assert!(set.is_ok(), "a log has one background thread");
        self.shutdown().thread = Some(thread);
        Ok(())
    }

    /// Drives the log until `stop` is set. A caller that sets it must then wake the thread.
    fn run_in_background(&self, segment_age: Option<Duration>) {
        let _panic = FailedByPanic(self);
        let mut clock = Clock { moved_at: Instant::now(), next: None };
        while !self.stop.load(Ordering::SeqCst) {
            // If another thread holds the flusher, that thread wakes this one when it leaves work
            // behind.
            let _ = self.drive(|| self.stop.load(Ordering::SeqCst));
            if self.state.has_failed() {
                // Code called by `drive`, such as a waker or a channel, may have parked the thread,
                // and so consumed the wake-up that followed `stop`.
                if !self.stop.load(Ordering::SeqCst) {
                    std::thread::park();
                }
                continue;
            }
            if clock.moved_at.elapsed() < QUIET || has_sync_due(&self.state) {
                let interval = self.state.terms.sync.interval();
                std::thread::park_timeout(interval.unwrap_or(LINGER).clamp(TICK_MIN, LINGER));
            } else {
                self.sleep(SLEEP);
            }
            clock.tick(self, segment_age);
        }
    }

    /// Refuses a record that has never been appended, because a wait for it would never return.
    fn check_aim(&self, Aim { goal, end, cuts, .. }: Aim) -> Result<(), Error> {
        let state = &self.state;
        state.process.check()?;
        let is_there = end <= state.frontier(goal).done() || end <= state.next_sequence();
        // This check comes last, because a cut is counted before the log's end moves back.
        if is_there || cuts != Some(state.cuts()) {
            return Ok(());
        }
        let because = format!("there is no record {} yet", end - 1);
        Err(Error::refused(state.terms.folder.path(), because))
    }

    /// Waits for room in a buffer. Fails on a full disk, because the wait could take long.
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

    /// Drives the log until `is_enough` returns true, no work is left, or another thread wants
    /// exclusive use of the flusher. Returns whether `is_enough` returns true or the log has
    /// failed; false if another thread has or wants the flusher.
    pub(super) fn drive(&self, is_enough: impl Fn() -> bool) -> bool {
        if self.has_visitor() {
            return false;
        }
        let mut flusher = match self.flusher.try_lock() {
            Ok(flusher) => flusher,
            Err(TryLockError::WouldBlock) => return false,
            // This is a bug in the log, which must not continue after a step that was interrupted.
            Err(TryLockError::Poisoned(_)) => {
                self.state.fail(half_done());
                return true;
            }
        };
        let gives_way = || is_enough() || self.has_visitor();
        self.hold(&mut flusher, |flusher| flusher.run(&self.state, &gives_way));
        self.let_go(flusher);
        is_enough() || self.state.has_failed()
    }

    fn has_visitor(&self) -> bool {
        self.visitors.load(Ordering::SeqCst) > 0
    }

    /// Waits for the flusher, which a driving thread then releases, and calls `work` with it. Fails
    /// in a waker that the log has called, because the waker's thread holds the flusher.
    pub(super) fn visit<T>(
        &self,
        work: impl FnOnce(&mut Flusher) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.state.process.check()?;
        if self.is_driven_here() {
            let because = "this call waits for the log, in a waker that the log has called";
            return Err(Error::refused(self.state.terms.folder.path(), because));
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
        // The flag is cleared after the unlock, so that a thread that finds it cleared can take the
        // lock.
        self.is_driven.store(false, Ordering::SeqCst);
        // The background thread does work that has arrived in the meantime.
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

    /// Returns the options in effect and every fallback.
    pub(super) fn effective(&self) -> Effective {
        if !self.state.process.is_this() {
            return Effective::default();
        }
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

    /// Wakes the background thread if it sleeps without checking regularly for work.
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

    /// Puts the background thread, which is the calling thread, to sleep until a record arrives, or
    /// for `time`.
    fn sleep(&self, time: Duration) {
        self.is_asleep.store(true, Ordering::SeqCst);
        // On a full disk, the next attempt is made at the next tick or call.
        let is_open = self.state.claims.has_open_records() && !self.state.lacks_room();
        if !is_open && !self.has_work() {
            std::thread::park_timeout(time);
        }
        self.is_asleep.store(false, Ordering::SeqCst);
    }

    /// Requests that the next record starts a new segment if the current one is older than `age`.
    fn rotate_if_older(&self, age: Duration) {
        // If another thread drives the log now, the next tick checks again.
        let Ok(mut flusher) = self.flusher.try_lock() else { return };
        if flusher.take_rotation(age) {
            self.state.claims.rotate();
            self.state.written.want(self.state.next_sequence());
        }
    }

    /// Closes the log: writes everything, makes it durable and marks the log as closed. On a full
    /// disk, the remaining records stay in memory, and a later call tries again.
    pub(super) fn close(&self) -> Result<(), Error> {
        self.state.process.check()?;
        let mut shutdown = self.shutdown();
        if let Some(result) = &shutdown.result {
            return result.clone();
        }
        // This makes producers stop waiting for room, and the driving thread stop working. Closing
        // the log takes every batch, so the flusher needs no notification.
        let _ = self.state.claims.end();
        wake(self.state.freed.all());
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = shutdown.thread.take() {
            thread.thread().unpark();
            if thread.join().is_err() {
                let what = "the log's thread panicked";
                self.state.fail(Error::Engine { what, errno: libc::EIO });
            }
        }
        let result = self.flush_and_close();
        // If the disk was full, the next call tries again.
        if result.is_ok() || self.state.has_failed() {
            shutdown.lock = None;
            shutdown.result = Some(result.clone());
        }
        result
    }

    fn flush_and_close(&self) -> Result<(), Error> {
        let mut flusher = self.flusher.lock().unwrap_or_else(|poisoned| {
            self.state.fail(half_done());
            poisoned.into_inner()
        });
        let closed = self.state.check().and_then(|()| flusher.close(&self.state));
        if let Err(error) = &closed {
            self.state.fail(error.clone());
        }
        // No write must reach the disk once another process can open the log.
        flusher.drain(&self.state);
        closed?.inspect(|()| self.state.close())
    }

    fn shutdown(&self) -> MutexGuard<'_, Shutdown> {
        self.shutdown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an additional [`super::Log`].
    pub(super) fn add_handle(&self) {
        self.handles.fetch_add(1, Ordering::Relaxed);
    }

    /// Subtracts one [`super::Log`] from the count, and closes the log with the last one.
    pub(super) fn drop_handle(self: &Arc<Self>) {
        if self.handles.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let driver = Arc::clone(self);
        if !self.state.process.is_this() {
            // The log's thread and its lock belong to the parent process.
            return std::mem::forget(driver);
        }
        let close = move || {
            if let Err(error) = driver.close() {
                ::log::error!("a dropped log could not be closed: {error}");
                // The log fails even on a full disk, because no later call can try again.
                driver.state.fail(error.given_up());
            }
        };
        if !self.is_driven_here() {
            close();
        } else if let Err(error) = std::thread::Builder::new().spawn(close) {
            // A waker called by this thread has dropped the last clone. This thread holds the
            // flusher, and may be the log's background thread, so another thread must close the
            // log.
            ::log::error!("a dropped log could not be closed: {error}");
        }
    }
}

impl Promises for Arc<LogDriver> {
    fn wait(&self, aim: &Aim) -> Result<(), Error> {
        self.check_aim(*aim)?;
        let Aim { goal, end, .. } = *aim;
        let cuts = Some(aim.cuts.unwrap_or_else(|| self.state.cuts()));
        let (frontier, gate) = (self.state.frontier(goal), &self.state.gates[aim.gate]);
        let lacks = self.state.lacks();
        frontier.want(end);
        loop {
            let seen = gate.look();
            if let Some(outcome) = self.state.outcome_since(lacks, cuts, goal, end) {
                return outcome;
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

    fn poll(
        &self,
        aim: &Aim,
        waiting: &mut Option<Waiting>,
        waker: &Waker,
    ) -> Poll<Result<(), Error>> {
        self.state.process.check()?;
        let Aim { goal, end, cuts, .. } = *aim;
        let frontier = self.state.frontier(goal);
        // Without a number of cuts, the future waits for the record of that sequence, even beyond a
        // cut.
        if cuts.is_some() {
            if waiting.is_none() {
                self.check_aim(*aim)?;
            }
            frontier.want(end);
        }
        let lacks = waiting.map_or_else(|| self.state.lacks(), |known| known.lacks);
        let outcome = || {
            let outcome = self.state.outcome_since(lacks, cuts, goal, end);
            outcome.map_or(Poll::Pending, Poll::Ready)
        };
        if let is_over @ Poll::Ready(_) = outcome() {
            return is_over;
        }
        let number = frontier.wake_at(end, waiting.and_then(|known| known.number), waker);
        *waiting = Some(Waiting { number: Some(number), lacks });
        match self.background.get() {
            Some(_) => self.notify(),
            None => _ = self.drive(|| self.state.outcome(goal, end).is_some()),
        }
        outcome()
    }

    fn forget(&self, aim: &Aim, waiting: Waiting) {
        if let Some(number) = waiting.number
            && self.state.process.is_this()
        {
            self.state.frontier(aim.goal).forget(aim.end, number);
        }
    }

    fn survives(&self, end: u64) -> Survives {
        self.state.survives(end - 1)
    }

    fn owned(&self) -> Box<dyn Promises> {
        Box::new(Arc::clone(self))
    }
}

/// A guard that fails the log if its thread panics, so that callers that sleep until the thread has
/// done their work do not sleep forever.
struct FailedByPanic<'a>(&'a LogDriver);

impl Drop for FailedByPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.state.fail(half_done());
        }
    }
}

/// The timers of the background thread.
struct Clock {
    /// The time when the thread last saw a new record.
    moved_at: Instant,
    /// The log's next sequence as of the last tick.
    next: Option<u64>,
}

impl Clock {
    /// Requests that the records appended before the last tick are written, or made durable if the
    /// log promises that.
    fn tick(&mut self, driver: &LogDriver, segment_age: Option<Duration>) {
        let state = &driver.state;
        let next = state.next_sequence();
        let before = self.next.replace(next);
        if before != Some(next) {
            self.moved_at = Instant::now();
        }
        if let Some(before) = before {
            // Some of these records may have been cut off since the last tick.
            state.frontier(state.promised()).want(before.min(next));
        }
        if let Some(age) = segment_age {
            driver.rotate_if_older(age);
        }
    }
}

/// Returns whether written records wait for the next interval, so that the thread must not sleep
/// for long.
fn has_sync_due(state: &LogState) -> bool {
    state.terms.sync.interval().is_some() && state.durable.done() < state.written.done()
}

/// Creates the error for a flusher that was interrupted by a panic.
fn half_done() -> Error {
    Error::Engine { what: "an earlier panic while the log was written", errno: libc::EIO }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SyncPolicy;
    use crate::log::Log;
    use std::sync::mpsc::{Sender, channel};
    use std::task::Wake;
    use std::thread;

    /// A time limit that only a hang can reach.
    const HANG: Duration = Duration::from_secs(60);

    /// A waker that fails the log, and then sleeps until its thread is woken.
    struct Sleeper {
        driver: Arc<LogDriver>,
        begun: Mutex<Sender<()>>,
    }

    impl Wake for Sleeper {
        fn wake(self: Arc<Self>) {
            self.driver.state.fail(half_done());
            // This consumes an earlier wake-up.
            thread::park_timeout(Duration::ZERO);
            self.begun.lock().unwrap().send(()).unwrap();
            thread::park();
        }
    }

    fn poll<T>(future: impl Future<Output = T>) -> T {
        let context = &mut std::task::Context::from_waker(Waker::noop());
        match std::pin::pin!(future).poll(context) {
            std::task::Poll::Ready(output) => output,
            std::task::Poll::Pending => panic!("it would wait forever"),
        }
    }

    fn is_forked<T>(result: Result<T, Error>) {
        assert!(matches!(result, Err(Error::Forked)));
    }

    #[test]
    fn no_call_in_a_child_process_waits_for_a_lock_that_a_thread_of_its_parent_holds() {
        let folder = fixtures::folder();
        let log = Log::options().sync(SyncPolicy::No).open(folder.path()).unwrap();
        let ticket = log.append(b"in flight").unwrap().into_owned();
        let reader = || log.reader(0).unwrap();
        let mut parts = Some((log.clone(), ticket, reader(), reader(), log.written(9)));
        let driver = log.driver();
        let flusher = driver.flusher.lock().unwrap();
        let held = (flusher, driver.effective.lock(), driver.shutdown(), driver.state.lock_all());
        crate::fork::in_child(|| {
            let (log, ticket, reader, streamed, written) = parts.take().unwrap();
            is_forked(log.append(b"by the child"));
            is_forked(log.try_append(&["by", "the child"]));
            is_forked(log.append_all(&["by", "the child"]));
            is_forked(poll(log.room()));
            is_forked(poll(written));
            is_forked(ticket.wait());
            is_forked(poll(log.ticket(7).until_durable()));
            is_forked(log.sync());
            is_forked(log.check());
            is_forked(log.reader(0));
            is_forked(reader.following());
            is_forked(streamed.into_stream());
            is_forked(log.trim_before(1));
            is_forked(log.truncate_from(1));
            is_forked(log.close());
            assert_eq!((log.next_sequence(), log.stats().next_sequence), (0, 0));
            assert_eq!(log.effective(), Effective::default());
            let _ = (log.is_waiting_for_room(), log.survives(0), format!("{log:?}"));
            let _ = (log.written_sequence(), log.durable_sequence());
            drop(log);
        });
        drop(held);
        drop(parts);
        log.append(b"by the parent").unwrap().wait().unwrap();
        log.close().unwrap();
    }

    #[test]
    fn a_log_is_closed_whose_thread_missed_the_wake_up_as_it_failed() {
        let folder = fixtures::folder();
        let log = Log::options().sync(SyncPolicy::No).open(folder.path()).unwrap();
        let (begun, has_begun) = channel();
        let sleeper = Sleeper { driver: Arc::clone(log.driver()), begun: Mutex::new(begun) };
        let waker = Waker::from(Arc::new(sleeper));
        log.driver().state.written.wake_at(1, None, &waker);
        // The log's thread then writes the record and calls the waker.
        drop(log.append(b"hello").unwrap());
        has_begun.recv_timeout(HANG).unwrap();
        let (closed, is_closed) = channel();
        thread::spawn(move || closed.send(log.close()));
        assert_eq!(is_closed.recv_timeout(HANG).unwrap().unwrap_err().errno(), libc::EIO);
    }
}
