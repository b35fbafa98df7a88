//! Producers collect lines in one buffer, and one thread at a time writes and flushes them for all.
//! A waiting producer does that work itself; for tasks, and for lines without a waiting caller, a
//! background thread does.

use super::LinesOptions;
use super::plain::{PlainFile, Trouble, absolute};
use crate::device;
use crate::driver::{Driven, Turns};
use crate::engine::System;
use crate::error::errno_of;
use crate::fork::Process;
use crate::{Disk, Error, Survives, SyncPolicy};
use std::collections::BTreeMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest time in memory of lines without a waiting caller. Shorter ones would make more
/// writes.
const LINGER: Duration = Duration::from_millis(10);
/// The time without an append after which the background thread sleeps until it is called.
const QUIET: Duration = Duration::from_millis(100);
/// The interval of attempts on a full disk.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// A file of lines, shared by its producers, their tickets and the background thread.
pub(super) struct Shared {
    pub path: PathBuf,
    pub sync: SyncPolicy,
    /// The promise for a line once its ticket was waited for.
    pub promise: Survives,
    pub process: Process,
    buffer_bytes: usize,
    has_thread: bool,
    state: Mutex<State>,
    /// Used by the thread that has the turn.
    file: Mutex<Option<PlainFile>>,
    /// Calls the background thread.
    bell: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The state under the lock. Lines count from the opening.
pub(super) struct State {
    turns: Turns,
    /// Lines that are not written yet, each with its line feed.
    buffer: Vec<u8>,
    /// An empty buffer with room, used in turn with the other one.
    spare: Vec<u8>,
    /// The lines that a full disk did not take, and the number of lines up to and with them. They
    /// are written before the buffer, which stays as it is until then: so no attempt makes room,
    /// and memory is bounded by two buffers.
    again: Option<(Vec<u8>, u64)>,
    pub appended: u64,
    /// Lines that the kernel has, and that are in the file at the path.
    pub written: u64,
    durable: u64,
    /// Lines that a caller waits to be written, or durable.
    wanted: u64,
    wanted_durable: u64,
    flushed_at: Instant,
    /// Lines that another program cut off after they were written, and before they were durable.
    lost: Vec<Lost>,
    /// A full disk: the error of the last attempt, the number of such attempts, and the time.
    lack: Option<(Error, Instant)>,
    lacks: u64,
    reopens: bool,
    ends: bool,
    is_closed: bool,
    failed: Option<Error>,
    waiting: BTreeMap<u64, Waiting>,
    next_number: u64,
    /// Wakers to call once the lock is released.
    woken: Vec<Waker>,
    is_asleep: bool,
    /// The file in which the last opening that found a torn end kept it.
    pub torn: Option<PathBuf>,
}

struct Lost {
    lines: Range<u64>,
    /// Whether a caller that waited for them has had the error.
    is_told: bool,
}

/// A task or a sleeping thread, and the lines for which it waits.
struct Waiting {
    end: u64,
    until_durable: bool,
    waker: Waker,
}

/// The registration of a waiting task.
#[derive(Default)]
pub(super) struct TaskWaiting {
    /// Its number among the waiting ones, once it is one.
    pub number: Option<u64>,
    /// The attempts that had found the disk full when it began to wait.
    lacks: u64,
}

/// Opens the file, and starts its background thread.
pub(super) fn open(options: &LinesOptions, path: &Path) -> Result<Arc<Shared>, Error> {
    let path = absolute(options.disk.as_ref(), path)?;
    let mut file = PlainFile::open(options, &path)?;
    let system = options.disk.as_ref().map_or(&System::Kernel, Disk::system);
    // A simulated disk has no folders, and no thread drives it.
    let folder = system.hold(&file.folder, || Ok(()))?;
    let target = folder.as_ref().map(|folder| device::examine(folder.path())).transpose()?;
    let (target, has_thread) = (target.unwrap_or_default(), folder.is_some());
    let promise = target.survives(Survives::of_write(options.sync == SyncPolicy::Always, false));
    let state = State {
        turns: Turns::default(),
        buffer: Vec::new(),
        spare: Vec::new(),
        again: None,
        appended: 0,
        written: 0,
        durable: 0,
        wanted: 0,
        wanted_durable: 0,
        flushed_at: Instant::now(),
        lost: Vec::new(),
        lack: None,
        lacks: 0,
        reopens: false,
        ends: false,
        is_closed: false,
        failed: None,
        waiting: BTreeMap::new(),
        next_number: 0,
        woken: Vec::new(),
        is_asleep: false,
        torn: file.torn.take(),
    };
    let shared = Arc::new(Shared {
        path,
        sync: options.sync,
        promise,
        process: Process::this(),
        buffer_bytes: options.buffer_bytes,
        has_thread,
        state: Mutex::new(state),
        file: Mutex::new(Some(file)),
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
        *shared.thread() = Some(thread);
    }
    Ok(shared)
}

impl Shared {
    /// Appends lines; `None` if there is no room and the caller does not wait. Returns the number
    /// of lines with them.
    pub(super) fn append(
        &self,
        lines: &[impl AsRef<[u8]>],
        waits: bool,
    ) -> Result<Option<u64>, Error> {
        self.process.check()?;
        let mut bytes = 0;
        for line in lines {
            let line = line.as_ref();
            // Two fast searches; one loop over all bytes would take half of a line's time.
            if line.contains(&b'\n') || line.contains(&0) {
                let because = "a line has no line feed and no NUL in it";
                return Err(Error::refused(&self.path, because));
            }
            bytes += line.len() + 1;
        }
        if bytes > self.buffer_bytes {
            let because = format!(
                "{bytes} bytes of lines do not fit into the buffer of {} \
                 (LinesOptions::buffer_bytes)",
                self.buffer_bytes
            );
            return Err(Error::refused(&self.path, because));
        }
        let mut state = self.lock();
        let lacks = state.lacks;
        while state.refusal(&self.path).is_none() && state.buffer.len() + bytes > self.buffer_bytes
        {
            if !waits {
                return Ok(None);
            }
            if let Some((error, _)) = state.lack.as_ref().filter(|_| state.lacks != lacks) {
                return Err(error.clone());
            }
            (state.wanted, state.lack) = (state.appended, None);
            drop(state);
            self.wait_for_turn(lacks, bytes);
            state = self.lock();
        }
        if let Some(error) = state.refusal(&self.path) {
            return Err(error);
        }
        for line in lines {
            state.buffer.extend_from_slice(line.as_ref());
            state.buffer.push(b'\n');
        }
        state.appended += lines.len() as u64;
        let appended = state.appended;
        if std::mem::take(&mut state.is_asleep) {
            self.bell.notify_one();
        }
        Ok(Some(appended))
    }

    /// Waits until the buffer has room for these bytes, or an attempt found the disk full.
    fn wait_for_turn(&self, lacks: u64, bytes: usize) {
        // Any batch that is written gives room.
        self.wait_until((0, false), |state| {
            let has_room = state.buffer.len() + bytes <= self.buffer_bytes;
            let is_over = state.refusal(&self.path).is_some() || state.lacks != lacks;
            (has_room || is_over).then_some(())
        });
    }

    /// Waits until `look` returns a value, which may be there once the first `end` lines are
    /// written, or durable.
    fn wait_until<T>(
        &self,
        (end, until_durable): (u64, bool),
        look: impl FnMut(&mut State) -> Option<T>,
    ) -> T {
        let mut number = None;
        let found = self.wait_for(look, |state, waker| {
            state.register(&mut number, (end, until_durable), waker)
        });
        number.into_iter().for_each(|number| self.forget(number));
        found
    }

    /// Waits until the first `end` lines are written, or durable. Fails if the last one is lost.
    pub(super) fn wait(&self, end: u64, until_durable: bool) -> Result<(), Error> {
        self.process.check()?;
        let lacks = self.want(end, until_durable);
        self.wait_until((end, until_durable), |state| {
            let lost = state.tell(&self.path, end, until_durable);
            lost.or_else(|| state.outcome(end, until_durable, lacks))
        })
    }

    /// Makes all lines durable. Fails after that if lines are lost and no caller was told.
    pub(super) fn flush(&self) -> Result<(), Error> {
        self.process.check()?;
        let end = self.lock().appended;
        let lacks = self.want(end, true);
        self.wait_until((end, true), |state| state.outcome(end, true, lacks))?;
        self.lock().tell_all(&self.path)
    }

    /// Like [`Shared::wait`], for a task.
    pub(super) fn poll(
        &self,
        end: u64,
        until_durable: bool,
        waiting: &mut Option<TaskWaiting>,
        waker: &Waker,
    ) -> Poll<Result<(), Error>> {
        self.process.check()?;
        let waiting = waiting.get_or_insert_with(|| {
            let lacks = self.want(end, until_durable);
            TaskWaiting { number: None, lacks }
        });
        let mut state = self.lock();
        if !self.has_thread {
            // On a simulated disk a poll does the work.
            state = self.take_turn(state).unwrap_or_else(|state| state);
        }
        let lost = state.tell(&self.path, end, until_durable);
        if let Some(outcome) = lost.or_else(|| state.outcome(end, until_durable, waiting.lacks)) {
            self.release(state);
            return Poll::Ready(outcome);
        }
        let replaced = state.register(&mut waiting.number, (end, until_durable), waker);
        self.attend(&mut state);
        self.release(state);
        drop(replaced);
        Poll::Pending
    }

    /// Makes the next turn write, or flush, up to `end`. Returns the number of attempts that found
    /// the disk full.
    fn want(&self, end: u64, until_durable: bool) -> u64 {
        let mut state = self.lock();
        state.wanted = state.wanted.max(end);
        if until_durable {
            state.wanted_durable = state.wanted_durable.max(end);
        }
        // A caller that waits is reason enough to try a full disk again.
        state.lack = None;
        state.lacks
    }

    /// Returns a part of the state; in a child process, whose lock may never be released, nothing.
    pub(super) fn look<T: Default>(&self, look: impl FnOnce(&State) -> T) -> T {
        if self.process.is_this() { look(&self.lock()) } else { T::default() }
    }

    pub(super) fn forget(&self, number: u64) {
        let forgotten = self.lock().waiting.remove(&number);
        drop(forgotten);
    }

    pub(super) fn reopen(&self) -> Result<(), Error> {
        self.process.check()?;
        self.lock().reopens = true;
        self.flush()?;
        self.wait_until((0, false), |state| match (&state.failed, state.reopens) {
            (Some(error), _) => Some(Err(error.clone())),
            (None, true) if state.is_closed => state.refusal(&self.path).map(Err),
            (None, reopens) => (!reopens).then_some(Ok(())),
        })
    }

    /// Stores all lines and releases the file. On a full disk it stays open, unless the caller
    /// `gives_up` the lines that are not stored.
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
        state.wake_reached();
        self.release(state);
        self.bell.notify_all();
        let thread = self.thread().take();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
        drop(self.file().take());
        stored
    }

    /// Writes and flushes for tasks, by time, and for lines without a waiting caller, until the
    /// file is closed.
    fn run(&self) {
        let interval = match self.sync {
            SyncPolicy::EverySec => Some(Duration::from_secs(1)),
            SyncPolicy::Interval(interval) => Some(interval),
            SyncPolicy::Always | SyncPolicy::No => None,
        };
        let mut state = self.lock();
        let (mut seen, mut moved_at) = (0, Instant::now());
        while !state.is_closed {
            if state.appended != seen {
                (seen, moved_at) = (state.appended, Instant::now());
            }
            if interval.is_some_and(|interval| state.flushed_at.elapsed() >= interval) {
                state.wanted_durable = state.wanted_durable.max(state.written);
            }
            state.wanted = state.appended;
            state = self.take_turn(state).unwrap_or_else(|state| state);
            // A caller that came during the turn sleeps until another one.
            if !state.turns.is_taken() && self.has_work(&mut state) {
                continue;
            }
            let is_done = state.written == state.appended
                && (interval.is_none() || state.durable == state.written);
            let is_idle = moved_at.elapsed() > QUIET && is_done && state.lack.is_none();
            state.is_asleep = is_idle || state.failed.is_some();
            let time = if state.is_asleep { Duration::from_secs(3600) } else { LINGER };
            let time = if state.lack.is_some() { TRY_AGAIN } else { time };
            if !state.is_closed {
                let waited = self.bell.wait_timeout(state, time);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            state.is_asleep = false;
        }
    }

    fn thread(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self) -> MutexGuard<'_, Option<PlainFile>> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Driven for Shared {
    type State = State;

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn release(&self, mut state: MutexGuard<'_, State>) {
        let woken = std::mem::take(&mut state.woken);
        drop(state);
        for waker in woken {
            // It is the caller's code: if it panics, the panic hook reports it, and all others are
            // woken.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }

    fn turns(state: &mut State) -> &mut Turns {
        &mut state.turns
    }

    fn has_work(&self, state: &mut State) -> bool {
        let is_due = state.lack.as_ref().is_none_or(|(_, at)| at.elapsed() >= TRY_AGAIN);
        let is_wanted = state.wanted > state.written || state.wanted_durable > state.durable;
        state.failed.is_none() && !state.is_closed && is_due && (is_wanted || state.reopens)
    }

    fn work<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let (mut lines, end) = match state.again.take() {
            Some(again) => again,
            None => {
                let spare = std::mem::take(&mut state.spare);
                let lines = std::mem::replace(&mut state.buffer, spare);
                // The buffer has room again.
                state.wake_reached();
                (lines, state.appended)
            }
        };
        // All lines so far belong into the file as it is.
        let reopens = state.reopens && end == state.appended;
        // What waits to be durable shares one flush.
        let flush =
            self.sync == SyncPolicy::Always || reopens || state.wanted_durable > state.durable;
        self.release(state);
        let (stored, torn) = match self.file().as_mut() {
            Some(file) => {
                let stored = file.store(&lines, flush);
                let stored = match (reopens && stored.is_ok()).then(|| file.reopen()) {
                    Some(Err(error)) => Err(Trouble::Fails(error)),
                    _ => stored,
                };
                (stored, file.torn.take())
            }
            None => return self.lock(),
        };
        let mut state = self.lock();
        state.torn = torn.or(state.torn.take());
        match stored {
            Ok(has_lost) => {
                if has_lost && state.durable < state.written {
                    let lines = state.durable + 1..state.written + 1;
                    state.lost.push(Lost { lines, is_told: false });
                }
                state.written = end;
                if flush {
                    (state.durable, state.flushed_at) = (end, Instant::now());
                }
                state.reopens &= !reopens;
                state.lack = None;
                lines.clear();
                state.spare = lines;
            }
            Err(Trouble::Lacks(error)) => {
                state.again = Some((lines, end));
                state.lack = Some((error, Instant::now()));
                state.lacks += 1;
            }
            Err(Trouble::Fails(error)) => state.failed = Some(error),
        }
        state.wake_reached();
        state
    }

    fn nudge(&self, _: &mut State) {}

    fn leave(&self, state: &mut State) {
        state.is_asleep = false;
        self.bell.notify_one();
    }
}

impl State {
    /// Returns the error of an append to a file that takes no more lines.
    fn refusal(&self, path: &Path) -> Option<Error> {
        let closed = || Error::refused(path, "it was closed, and takes no more lines");
        self.failed.clone().or_else(|| (self.is_closed || self.ends).then(closed))
    }

    /// Returns the error of a wait for a line that is lost: `end` is the number of lines up to and
    /// with it.
    fn tell(&mut self, path: &Path, end: u64, until_durable: bool) -> Option<Result<(), Error>> {
        let lost = self.lost.iter_mut().find(|lost| until_durable && lost.lines.contains(&end))?;
        lost.is_told = true;
        Some(Err(lost_lines(path)))
    }

    /// Fails if lines are lost that no caller was told of.
    fn tell_all(&mut self, path: &Path) -> Result<(), Error> {
        let untold = self.lost.iter_mut().filter(|lost| !lost.is_told);
        match untold.map(|lost| lost.is_told = true).count() {
            0 => Ok(()),
            _ => Err(lost_lines(path)),
        }
    }

    /// Returns the outcome for the first `end` lines; `None` while it is unknown. `lacks` is the
    /// number of attempts that had found the disk full when the caller began to wait.
    fn outcome(&self, end: u64, until_durable: bool, lacks: u64) -> Option<Result<(), Error>> {
        let done = if until_durable { self.durable } else { self.written };
        if done >= end {
            return Some(Ok(()));
        }
        let lacked = self.lack.as_ref().filter(|_| lacks != self.lacks);
        let lacked = || lacked.map(|(error, _)| error.clone().not_yet());
        self.failed.clone().or_else(lacked).map(Err)
    }

    /// Keeps a waker, and returns the one that it replaces.
    fn register(
        &mut self,
        number: &mut Option<u64>,
        (end, until_durable): (u64, bool),
        waker: &Waker,
    ) -> Option<Waker> {
        let number = *number.get_or_insert_with(|| {
            self.next_number += 1;
            self.next_number
        });
        let waiting = Waiting { end, until_durable, waker: waker.clone() };
        self.waiting.insert(number, waiting).map(|replaced| replaced.waker)
    }

    /// Wakes everyone whose lines are written, or durable; all of them after an error, and after
    /// the end.
    fn wake_reached(&mut self) {
        let is_over = self.failed.is_some() || self.lack.is_some() || self.is_closed;
        let (written, durable) = (self.written, self.durable);
        let is_reached = |waiting: &Waiting| {
            is_over || waiting.end <= if waiting.until_durable { durable } else { written }
        };
        let reached = self.waiting.iter().filter(|(_, waiting)| is_reached(waiting));
        let reached: Vec<u64> = reached.map(|(number, _)| *number).collect();
        for number in reached {
            self.woken.extend(self.waiting.remove(&number).map(|waiting| waiting.waker));
        }
    }
}

fn lost_lines(path: &Path) -> Error {
    let because = "another program removed or shortened the file before its last lines were \
                   flushed; these lines are lost";
    Error::refused(path, because)
}
