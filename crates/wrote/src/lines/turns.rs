//! Producers collect lines in one buffer, and one thread at a time takes a turn: it writes and
//! flushes the lines of all producers.
//!
//! A producer whose line fills the buffer, or a caller that waits, takes the turn if no other
//! thread has it, so that it never depends on another thread. Callers that wait while another
//! thread has the turn sleep at one of two gates. The gate of the batch being written opens for all
//! of them when the turn ends, and they read without the lock that their lines are done. At the
//! gate of the next batch, one caller is woken to take the next turn. For tasks, and for lines
//! without a waiting caller, a background thread takes turns.

use super::LinesOptions;
use super::plain::{PlainFile, Trouble, absolute};
use super::state::{Batch, LineGoal, State, Task};
use crate::error::{Tried, errno_of};
use crate::fork::Process;
use crate::log::{Aim, Gate, Promises, Waiting};
use crate::{Action, Disk, Error, Survives, SyncPolicy};
use rustix::fs::fdatasync;
use rustix::io::retry_on_intr;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The maximum time for which lines without a waiting caller stay in memory. A shorter time would
/// cause more writes.
const LINGER: Duration = Duration::from_millis(10);
/// The time without an append after which the background thread sleeps until it is woken.
const QUIET: Duration = Duration::from_millis(100);
/// The interval between attempts when the disk is full.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// The number of parts of the buffer. When one part is full, a producer writes it while other
/// producers fill the rest.
const BATCHES: usize = 4;

/// A line file, shared by its producers, their tickets and the background thread.
pub(crate) struct Shared {
    pub(super) path: PathBuf,
    pub(super) sync: SyncPolicy,
    /// The promises for a line that has been written, and for a line that has been flushed.
    promises: [Survives; 2],
    pub(super) process: Process,
    buffer_bytes: usize,
    has_thread: bool,
    state: Mutex<State>,
    /// The file, used by the thread that has the turn.
    file: Mutex<Option<PlainFile>>,
    /// The lock that is held from the start of a flush until its outcome is known. The kernel
    /// reports an error of the disk to only one of two flushes, and the other must not acknowledge
    /// anything (W2).
    flushing: Mutex<()>,
    /// The gates where callers wait for a batch, indexed by the lowest bit of the batch's number.
    gates: [Gate; 2],
    /// The numbers of lines written and durable, up to the first loss. A caller whose gate has
    /// opened reads them without the lock, because otherwise all such callers would contend for it.
    reached: [AtomicU64; 2],
    /// The condition that wakes the thread that waits for producers to return.
    gathered: Condvar,
    /// The condition that wakes producers that wait for room in the buffer.
    room: Condvar,
    /// The condition that wakes the background thread.
    bell: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Opens the file, and starts its background thread.
pub(super) fn open(options: &LinesOptions, path: &Path) -> Result<Arc<Shared>, Error> {
    let path = absolute(options.disk.as_ref(), path)?;
    let mut file = PlainFile::open(options, &path)?;
    let system = Disk::system_of(options.disk.as_ref());
    let (target, has_thread) = (system.examine(&file.folder)?, system.has_time());
    let promise = |is_flushed| target.survives(Survives::of_write(is_flushed, false));
    let state = State { torn: file.torn.take(), ..State::default() };
    let shared = Arc::new(Shared {
        path,
        sync: options.sync,
        promises: [promise(false), promise(true)],
        process: Process::this(),
        buffer_bytes: options.buffer_bytes,
        has_thread,
        state: Mutex::new(state),
        file: Mutex::new(Some(file)),
        flushing: Mutex::default(),
        gates: Default::default(),
        reached: Default::default(),
        gathered: Condvar::new(),
        room: Condvar::new(),
        bell: Condvar::new(),
        thread: Mutex::new(None),
    });
    if has_thread {
        let own = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("wrote-lines".to_owned());
        let thread = thread.spawn(move || own.run()).map_err(|error| {
            let what = "starting the thread of a file of lines";
            Error::Engine { what, errno: errno_of(&error) }
        })?;
        *locked(&shared.thread) = Some(thread);
    }
    Ok(shared)
}

impl Shared {
    /// Appends lines, and returns the total number of lines appended so far. Returns `None` if
    /// there is no room and `waits` is false.
    pub(super) fn append(
        &self,
        lines: &[impl AsRef<[u8]>],
        waits: bool,
    ) -> Result<Option<u64>, Error> {
        self.process.check()?;
        let bytes = self.checked_bytes(lines)?;
        let mut state = self.lock();
        let lacks = state.lacks;
        loop {
            if let Some(error) = state.refusal(&self.path) {
                return Err(error);
            }
            let is_full = state.buffer.len() + bytes > self.buffer_bytes;
            if !is_full && !self.holds_producers(&state) {
                break;
            }
            if !waits {
                self.bell.notify_one();
                return Ok(None);
            }
            if let Some((error, _)) = state.lack.as_ref().filter(|_| state.lacks != lacks) {
                return Err(error.clone());
            }
            state = match is_full && !state.is_taken {
                true => self.turn(state, false),
                false => self.room.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        for line in lines {
            state.buffer.extend_from_slice(line.as_ref());
            state.buffer.push(b'\n');
        }
        state.appended += lines.len() as u64;
        let appended = state.appended;
        if state.gathering.is_complete(appended - state.durable) {
            self.gathered.notify_one();
        }
        let is_batch = state.buffer.len() >= self.buffer_bytes / BATCHES;
        // The producers of a file with `SyncPolicy::Always` wait for their own lines.
        let writes = waits && self.sync != SyncPolicy::Always;
        if is_batch && writes && !state.is_taken && state.lack.is_none() {
            drop(self.turn(state, false));
        } else if is_batch || state.is_asleep {
            state.is_asleep = false;
            self.bell.notify_one();
        }
        Ok(Some(appended))
    }

    /// Returns the length of the lines with their line feeds, in bytes. Fails if a line is not
    /// valid or the lines do not fit.
    fn checked_bytes(&self, lines: &[impl AsRef<[u8]>]) -> Result<usize, Error> {
        if lines.iter().any(|line| has_an_end(line.as_ref())) {
            let because = "a line has no line feed and no NUL in it";
            return Err(Error::refused(&self.path, because));
        }
        let bytes = lines.iter().map(|line| line.as_ref().len() + 1).sum();
        if bytes > self.buffer_bytes {
            return Err(Error::TooLong {
                path: self.path.clone(),
                action: Action::Append,
                offset: None,
                len: bytes,
                len_max: self.buffer_bytes as u64,
                limit: "LinesOptions::buffer_bytes",
            });
        }
        Ok(bytes)
    }

    /// Returns whether a flush has been running for a full interval. Lines may then remain
    /// undurable for more than two intervals, so producers must wait.
    fn holds_producers(&self, state: &State) -> bool {
        let interval = self.sync.interval();
        state.flushes_since.zip(interval).is_some_and(|(since, time)| since.elapsed() >= time)
    }

    /// Waits until `look` returns a value or the first `end` lines are written or, if `flush` is
    /// set, durable. Takes turns at writing while no other thread has the turn. `look` is passed
    /// the number of attempts that had already found the disk full when the wait began.
    fn wait_until(
        &self,
        LineGoal { end, is_durable: flush }: LineGoal,
        mut look: impl FnMut(&mut State, u64) -> Option<Result<(), Error>>,
    ) -> Result<(), Error> {
        let mut lacks = None;
        // None of the lines counted in `reached` are lost, so `look` would return success, too.
        while self.reached[usize::from(flush)].load(Ordering::Acquire) < end {
            let mut state = self.lock();
            let lacks = *lacks.get_or_insert(state.lacks);
            if let Some(found) = look(&mut state, lacks) {
                return found;
            }
            if state.is_taken {
                let batch = state.batches + usize::from(end > state.begun);
                self.sleep(state, batch);
            } else {
                drop(self.turn(state, flush));
            }
        }
        Ok(())
    }

    /// Sleeps until the gate of the batch opens. No opening is missed, because the gate's state is
    /// read under the lock, and a turn ends under the same lock before it opens a gate.
    fn sleep(&self, state: MutexGuard<'_, State>, batch: usize) {
        let gate = &self.gates[batch % 2];
        let seen = gate.look();
        drop(state);
        gate.sleep(seen);
    }

    /// Makes all lines durable. Then fails if lines are lost and no caller has received an error
    /// about them.
    pub(super) fn flush(&self) -> Result<(), Error> {
        self.process.check()?;
        let goal = LineGoal { end: self.lock().appended, is_durable: true };
        self.wait_until(goal, |state, lacks| {
            let outcome = state.outcome(goal, lacks)?;
            Some(outcome.and_then(|()| state.tell_all(&self.path)))
        })
    }

    /// Flushes all lines, and reopens the path.
    pub(super) fn reopen(&self) -> Result<(), Error> {
        self.process.check()?;
        self.lock().reopens = true;
        self.flush()?;
        self.wait_until(LineGoal { end: u64::MAX, is_durable: true }, |state, _| {
            match (&state.failed, state.reopens) {
                (Some(error), _) => Some(Err(error.clone())),
                (None, true) if state.is_closed => state.refusal(&self.path).map(Err),
                (None, reopens) => (!reopens).then_some(Ok(())),
            }
        })
    }

    /// Returns a part of the state, or its default value in a child process, where the lock may
    /// never be released.
    pub(super) fn look<T: Default>(&self, look: impl FnOnce(&State) -> T) -> T {
        if self.process.is_this() { look(&self.lock()) } else { T::default() }
    }

    /// Returns what a line survives once it is durable or, without `is_durable`, once it is
    /// written.
    pub(super) fn promise(&self, is_durable: bool) -> Survives {
        self.promises[usize::from(is_durable)]
    }

    /// Stores all lines and closes the file. If the disk is full, the file stays open, unless
    /// `gives_up` allows the lines that can't be stored to be lost.
    pub(super) fn close(&self, gives_up: bool) -> Result<(), Error> {
        self.process.check()?;
        {
            let mut state = self.lock();
            if state.is_closed {
                return state.failed.clone().map_or(Ok(()), Err);
            }
            state.ends = true;
        }
        let stored = self.flush();
        let mut state = self.lock();
        if let Err(error @ Error::NotYet { .. }) = &stored {
            if !gives_up {
                state.ends = false;
                return stored;
            }
            state.failed = Some(error.clone().given_up());
        }
        state.is_closed = true;
        self.bell.notify_all();
        drop(self.wake(state));
        let thread = locked(&self.thread).take();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
        drop(locked(&self.file).take());
        stored
    }

    /// Runs the background thread until the file is closed: writes and flushes for tasks, at
    /// intervals, and for lines without a waiting caller.
    fn run(&self) {
        let interval = self.sync.interval();
        let mut state = self.lock();
        let (mut seen, mut moved_at, mut flushed_at) = (0, Instant::now(), Instant::now());
        while !state.is_closed {
            if state.appended != seen {
                (seen, moved_at) = (state.appended, Instant::now());
            }
            let is_due = state.lack.as_ref().is_none_or(|(_, at)| at.elapsed() >= TRY_AGAIN);
            let is_over = |time| flushed_at.elapsed() >= time && state.durable < state.appended;
            if state.failed.is_none() && !state.is_taken && is_due {
                if interval.is_some_and(is_over) {
                    flushed_at = Instant::now();
                    state = self.flush_beside(state);
                }
                let wants_flush = state.tasks.values().any(|task| task.goal.is_durable);
                let flush = wants_flush || self.sync == SyncPolicy::Always;
                let done = if flush { state.durable } else { state.written };
                if done < state.appended && !state.is_taken {
                    state = self.turn(state, flush);
                }
            }
            let wants_more = state.tasks.values().any(|task| task.goal.end > state.begun);
            if wants_more && !state.is_taken && state.failed.is_none() && state.lack.is_none() {
                continue;
            }
            let is_done = state.written == state.appended
                && (interval.is_none() || state.durable == state.written);
            let is_idle = moved_at.elapsed() > QUIET && is_done && state.lack.is_none();
            state.is_asleep = is_idle || state.failed.is_some();
            let time = match state.lack {
                Some(_) => TRY_AGAIN,
                None if state.is_asleep => Duration::from_secs(3600),
                None => LINGER,
            };
            if !state.is_closed {
                let waited = self.bell.wait_timeout(state, time);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            state.is_asleep = false;
        }
    }

    /// Writes the pending lines, and then flushes them without the turn. During the flush,
    /// producers can append, and other threads can take turns.
    fn flush_beside<'a>(&'a self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let mut state = self.turn(state, false);
        let end = state.written;
        state.flushes_since = Some(Instant::now());
        drop(state);
        // If another thread has reopened the path, it has flushed the earlier file.
        let copy = locked(&self.file).as_ref().map(PlainFile::copy);
        let flushing = locked(&self.flushing);
        let flushed = copy.map_or(Ok(()), |copy| {
            copy.and_then(|copy| {
                retry_on_intr(|| fdatasync(&copy)).tried(&self.path, Action::Fdatasync)
            })
        });
        let mut state = self.lock();
        state.flushes_since = None;
        let is_flushed = flushed.is_ok();
        state.failed = state.failed.take().or(flushed.err());
        drop(flushing);
        self.room.notify_all();
        if !is_flushed || state.failed.is_some() {
            return self.wake(state);
        }
        // Another program may have cut off lines during the flush, so they are checked once more.
        while state.is_taken {
            let next = state.batches + 1;
            self.sleep(state, next);
            state = self.lock();
        }
        let mut state = self.turn(state, false);
        if state.failed.is_none() {
            state.durable = state.durable.max(end);
        }
        self.wake(state)
    }

    /// Takes the turn: writes the pending lines, and flushes the file if `flush` is set or every
    /// line must be durable.
    fn turn<'a>(&'a self, mut state: MutexGuard<'a, State>, flush: bool) -> MutexGuard<'a, State> {
        let flush = flush || self.sync == SyncPolicy::Always;
        state.is_taken = true;
        // Until the batch begins, every line appended belongs to it.
        (state.batches, state.begun) = (state.batches + 1, u64::MAX);
        if flush {
            state = self.gather(state);
        }
        let (lines, end) = match state.again.take() {
            Some(again) => again,
            None => {
                let spare = std::mem::take(&mut state.spare);
                let lines = std::mem::replace(&mut state.buffer, spare);
                self.room.notify_all();
                (lines, state.appended)
            }
        };
        state.begun = end;
        // All lines appended so far belong in the file that is open now.
        let reopens = flush && state.reopens && end == state.appended;
        drop(state);
        let flushing = flush.then(|| locked(&self.flushing));
        let begun_at = Instant::now();
        let done = catch_unwind(AssertUnwindSafe(|| {
            let mut file = locked(&self.file);
            let Some(file) = file.as_mut() else { return (Ok(false), None) };
            let stored = file.store(&lines, flush);
            let reopened = if reopens && stored.is_ok() { file.reopen() } else { Ok(()) };
            (reopened.map_err(Trouble::Fails).and(stored), file.torn.take())
        }));
        let mut state = self.lock();
        drop(flushing);
        let batch = Batch { lines, end, flushed_in: flush.then(|| begun_at.elapsed()) };
        let panicked = match done {
            Ok((stored, torn)) => {
                state.torn = torn.or(state.torn.take());
                state.reopens &= !(reopens && stored.is_ok());
                state.finish(stored, batch);
                None
            }
            Err(panicked) => {
                let what = "an earlier panic while lines were written";
                state.failed = Some(Error::Engine { what, errno: libc::EIO });
                Some(panicked)
            }
        };
        state.is_taken = false;
        let state = self.wake(state);
        panicked.map_or(state, |panicked| resume_unwind(panicked))
    }

    /// Waits for the producers whose lines have just become durable, so that they share this flush.
    fn gather<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        loop {
            let (waiting, now) = (state.appended - state.durable, Instant::now());
            if !state.gathering.is_waiting(waiting, now) {
                return state;
            }
            let rest = state.gathering.rest(now);
            let waited = self.gathered.wait_timeout(state, rest);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Wakes every caller whose goal is reached, and one more to take the next turn. After an
    /// error, or once the file is closed, wakes all callers. The lock is not held while wakers are
    /// called.
    fn wake<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let is_over = state.failed.is_some() || state.lack.is_some() || state.is_closed;
        let batches = state.batches;
        let State { tasks, written, durable, lost, .. } = &mut *state;
        if lost.is_empty() {
            self.reached[0].store(*written, Ordering::Release);
            self.reached[1].store(*durable, Ordering::Release);
        }
        let is_reached = |task: &Task| {
            is_over || task.goal.end <= if task.goal.is_durable { *durable } else { *written }
        };
        let mut woken = Vec::new();
        tasks.retain(|_, task| {
            let is_reached = is_reached(task);
            // Cloned because the last copy of a waker must not be dropped under the lock.
            woken.extend(is_reached.then(|| task.waker.clone()));
            !is_reached
        });
        if !tasks.is_empty() {
            self.bell.notify_one();
        }
        drop(state);
        self.gates[batches % 2].wake(Gate::ALL);
        self.gates[(batches + 1) % 2].wake(if is_over { Gate::ALL } else { 1 });
        match is_over {
            true => self.room.notify_all(),
            // If the line of the woken producer still does not fit, the producer takes the turn.
            false => self.room.notify_one(),
        }
        for waker in woken {
            // A waker is the caller's code. If it panics, the panic hook reports that, and all
            // other tasks are still woken.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
        self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

impl Promises for Arc<Shared> {
    /// Fails if the last line of the goal is lost.
    fn wait(&self, aim: &Aim) -> Result<(), Error> {
        self.process.check()?;
        let goal = LineGoal::of(aim);
        self.wait_until(goal, |state, lacks| state.outcome_unless_lost(&self.path, goal, lacks))
    }

    fn poll(
        &self,
        aim: &Aim,
        waiting: &mut Option<Waiting>,
        waker: &Waker,
    ) -> Poll<Result<(), Error>> {
        self.process.check()?;
        let goal = LineGoal::of(aim);
        let mut state = self.lock();
        let Waiting { number, lacks } =
            waiting.get_or_insert_with(|| Waiting { number: None, lacks: state.lacks });
        let outcome = |state: &mut State| state.outcome_unless_lost(&self.path, goal, *lacks);
        let mut found = outcome(&mut state);
        if found.is_none() && !self.has_thread && !state.is_taken {
            // On a simulated disk, the poll itself does the work.
            state = self.turn(state, goal.is_durable);
            found = outcome(&mut state);
        }
        if let Some(outcome) = found {
            return Poll::Ready(outcome);
        }
        let number = *number.get_or_insert_with(|| {
            state.next_task += 1;
            state.next_task
        });
        let replaced = state.tasks.insert(number, Task { goal, waker: waker.clone() });
        if !state.is_taken {
            self.bell.notify_one();
        }
        drop(state);
        // A waker is the caller's code, and may call this function again.
        drop(replaced);
        Poll::Pending
    }

    fn forget(&self, _: &Aim, waiting: Waiting) {
        if let Some(number) = waiting.number
            && self.process.is_this()
        {
            let forgotten = self.lock().tasks.remove(&number);
            drop(forgotten);
        }
    }

    fn survives(&self, end: u64) -> Survives {
        match self.look(|state| (state.durable >= end, state.written >= end)) {
            (is_durable, true) => self.promise(is_durable),
            _ => Survives::Nothing,
        }
    }

    fn owned(&self) -> Box<dyn Promises> {
        Box::new(Arc::clone(self))
    }
}

/// Returns whether the line contains a line feed or a NUL. Because it has no early return and is a
/// separate function, it compiles to vector instructions.
#[inline(never)]
fn has_an_end(line: &[u8]) -> bool {
    line.iter().fold(false, |found, &byte| found | (byte == b'\n') | (byte == 0))
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lines, Sim};
    use std::thread;

    #[test]
    fn a_caller_that_sleeps_is_called_to_take_the_next_turn() {
        let lines = Lines::options().on(&Sim::new(1).disk()).open("lines").unwrap();
        let shared = &lines.shared;
        shared.lock().is_taken = true;
        thread::scope(|scope| {
            let callers: Vec<_> =
                (0..4).map(|_| scope.spawn(|| lines.append(b"line").unwrap().wait())).collect();
            while lines.appended() < 4 {
                thread::yield_now();
            }
            let mut state = shared.lock();
            state.is_taken = false;
            drop(shared.wake(state));
            assert!(callers.into_iter().all(|caller| caller.join().unwrap().is_ok()));
        });
    }

    #[test]
    fn callers_that_wait_for_earlier_lines_share_a_flush_that_gathers() {
        let disk = Sim::new(1).disk();
        let lines = Lines::options().sync(SyncPolicy::No).on(&disk).open("lines").unwrap();
        lines.append(b"line").unwrap().wait().unwrap();
        let mut state = lines.shared.lock();
        state.gathering.note_flush(Duration::from_secs(1), 64, 0, Instant::now());
        drop(state);
        thread::scope(|scope| {
            (0..4).for_each(|_| drop(scope.spawn(|| lines.flush().unwrap())));
        });
        assert_eq!(lines.durable(), 1);
    }

    #[test]
    fn a_panic_in_a_turn_leaves_no_caller_asleep() {
        let lines = Lines::options().on(&Sim::new(1).disk()).open("lines").unwrap();
        if let Some(file) = locked(&lines.shared.file).as_mut() {
            // An engine panics if a file is used after it has been closed.
            file.engine.close_file(file.file).unwrap();
        }
        thread::scope(|scope| {
            let callers: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| lines.append(b"line").and_then(|ticket| ticket.wait())))
                .collect();
            for caller in callers {
                let error = caller.join().ok().map(Result::unwrap_err);
                assert!(error.is_none_or(|error| error.errno() == libc::EIO));
            }
        });
        // The file is already closed, so `Lines` must not close it again.
        std::mem::forget(lines);
    }
}
