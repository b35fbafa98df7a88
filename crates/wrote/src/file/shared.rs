//! The part of a disk that its threads share: the schedule, behind a lock, and which thread works
//! on it.
//!
//! The thread with the turn submits operations to the kernel, waits for completions, and routes
//! them. It waits without the lock, so that other threads can start operations. Those threads
//! interrupt the wait, and the waiting thread then submits everything started so far in one call.
//!
//! If no other thread is working, a blocking caller works itself, which avoids a thread switch.
//! Polling a future does no work: the disk's thread works for it while no blocking caller does.
//! There is one exception: if completions arrive only during the engine's own calls, a poll makes
//! these calls.

use super::driver::{Alarm, Driven, Turns};
use super::entry::Outcome;
use super::schedule::Schedule;
use crate::engine::Wait;
use crate::error::{Error, errno_of};
use crate::fork::Process;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::thread::Thread;

pub(super) struct Shared {
    state: Mutex<State>,
    /// A reference to itself, for the disk's thread.
    own: Weak<Shared>,
    pub process: Process,
}

pub(super) struct State {
    /// The schedule; `None` once the last handle has been dropped.
    schedule: Option<Schedule>,
    turns: Turns,
    /// Whether the thread with the turn is waiting for the kernel, without the lock.
    is_away: bool,
    /// The disk's thread, once it has been needed.
    thread: Option<Thread>,
}

impl State {
    pub fn schedule(&mut self) -> &mut Schedule {
        self.schedule.as_mut().expect("there is a handle, so the schedule is there")
    }

    /// Ends the wait of the thread that has the turn.
    fn recall(&mut self) {
        if std::mem::take(&mut self.is_away) {
            self.schedule().engine.interrupt();
        }
    }
}

type Guard<'a> = MutexGuard<'a, State>;

impl Driven for Shared {
    type State = State;

    fn lock(&self) -> Guard<'_> {
        // A panic while the lock was held has already been reported, and every operation is still
        // in the schedule.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn release(&self, mut state: Guard<'_>) {
        let wakers = state.schedule.as_mut().map(|schedule| std::mem::take(&mut schedule.wakers));
        drop(state);
        for waker in wakers.into_iter().flatten() {
            // A waker is the caller's code: if it panics, the panic hook reports that, and the
            // other tasks continue.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
    }

    fn relock<'a>(&'a self, mut state: Guard<'a>) -> Guard<'a> {
        if state.schedule().wakers.is_empty() {
            return state;
        }
        self.release(state);
        self.lock()
    }

    fn turns(state: &mut State) -> &mut Turns {
        &mut state.turns
    }

    fn has_work(&self, state: &mut State) -> bool {
        state.schedule.as_mut().is_some_and(|schedule| {
            schedule.pump();
            schedule.has_work()
        })
    }

    fn work<'a>(&'a self, mut state: Guard<'a>) -> Guard<'a> {
        let waited = match state.schedule().prepare_wait() {
            Ok(Wait::None) => state.schedule().collect(1),
            // There are wakers to call, and the thread with the turn can't call them. They must not
            // wait for the kernel.
            Ok(_) if !state.schedule().wakers.is_empty() => state.schedule().collect(0),
            Ok(wait) => {
                state.is_away = true;
                drop(state);
                let waited = wait.wait();
                state = self.lock();
                state.is_away = false;
                let what = "waiting for the kernel";
                let failed = |error| Error::Engine { what, errno: errno_of(&error) };
                waited.map_err(failed).and_then(|()| state.schedule().collect(0))
            }
            Err(error) => Err(error),
        };
        if let Err(error) = waited {
            // Every operation returns this error.
            state.schedule().fail(&error);
        }
        state.schedule().wake_watchers();
        state
    }

    fn nudge(&self, state: &mut State) {
        if state.schedule.as_ref().is_some_and(|schedule| schedule.engine.wants_turn()) {
            state.recall();
        }
    }

    fn leave(&self, state: &mut State) {
        let schedule = state.schedule();
        if schedule.awaited > 0 && schedule.engine.completes_in_calls() {
            schedule.wake_tasks();
        } else if schedule.awaited > 0 {
            self.call_thread(state);
        } else if schedule.engine.wants_turn()
            && let Err(error) = schedule.engine.submit()
        {
            schedule.fail(&error);
        }
    }
}

impl Shared {
    pub fn new(schedule: impl FnOnce(&Weak<Shared>) -> Schedule) -> Arc<Shared> {
        Arc::new_cyclic(|own| {
            let schedule = Some(schedule(own));
            let (turns, is_away, thread) = (Turns::default(), false, None);
            let state = Mutex::new(State { schedule, turns, is_away, thread });
            Shared { state, own: Weak::clone(own), process: Process::this() }
        })
    }

    /// Calls `look` with the schedule, and then calls the wakers of finished operations.
    pub fn with<T>(&self, look: impl FnOnce(&mut Schedule) -> T) -> T {
        let mut state = self.lock();
        let result = look(state.schedule());
        self.release(state);
        result
    }

    /// Waits until the operation is complete, and returns its result. Even if it is already
    /// complete, submits everything that has been started.
    pub fn wait(&self, key: usize) -> Result<Outcome, Error> {
        self.process.check()?;
        self.wait_for(
            |state| state.schedule().take(key),
            |state, waker| state.schedule().register(key, waker, false),
        )
    }

    /// Waits until `is_there` returns a value.
    pub fn wait_until<T>(
        &self,
        mut is_there: impl FnMut(&mut Schedule) -> Option<T>,
    ) -> Result<T, Error> {
        self.process.check()?;
        self.wait_for(
            |state| {
                let schedule = state.schedule();
                is_there(schedule).map(Ok).or_else(|| schedule.failure.clone().map(Err))
            },
            |state, waker| {
                state.schedule().watch(waker);
                None
            },
        )
    }

    /// Returns the result of the operation, or registers `waker` to be woken when it is complete.
    pub fn poll(&self, key: usize, waker: &Waker) -> Poll<Result<Outcome, Error>> {
        if let Err(error) = self.process.check() {
            return Poll::Ready(Err(error));
        }
        let mut state = self.lock();
        while state.schedule().engine.completes_in_calls() && !state.schedule().is_over(key) {
            match self.take_turn(state) {
                Ok(turned) => state = turned,
                Err(same) => {
                    state = same;
                    break;
                }
            }
        }
        let polled = state.schedule().take(key);
        // The previous waker is dropped after the lock is released.
        let _before = match polled {
            Some(_) => None,
            None => state.schedule().register(key, waker, true),
        };
        self.attend(&mut state);
        self.release(state);
        polled.map_or(Poll::Pending, Poll::Ready)
    }

    /// Drops an operation's handle. Waits while the number of operations in progress without a
    /// handle exceeds the engine's depth (W8).
    pub fn forget(&self, key: usize) {
        if !self.process.is_this() {
            return;
        }
        let mut state = self.lock();
        // The waker is dropped after the lock is released.
        let _waker = state.schedule().forget(key);
        self.attend(&mut state);
        let is_bounded = state.schedule().is_bounded();
        self.release(state);
        if !is_bounded {
            // This fails only if the engine has failed, and then nothing is in progress.
            let _ = self.wait_until(|schedule| schedule.is_bounded().then_some(()));
        }
    }

    /// Runs a future to completion on this thread, which sleeps while the future is pending.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let alarm = Alarm::new();
        let waker = Waker::from(Arc::clone(&alarm));
        let mut future = std::pin::pin!(future);
        loop {
            match future.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(output) => return output,
                Poll::Pending => alarm.sleep(),
            }
        }
    }

    /// Submits operations to the kernel without waiting.
    pub fn submit(&self) -> Result<(), Error> {
        self.process.check()?;
        let mut state = self.lock();
        state.schedule().pump();
        let submitted = if state.turns.is_taken() {
            self.nudge(&mut state);
            Ok(())
        } else {
            state.schedule().engine.submit()
        };
        self.release(state);
        submitted
    }

    /// Passes a buffer that has been returned from outside the disk to the first operation that is
    /// waiting for one.
    pub fn buffer_returned(&self) {
        if !self.process.is_this() {
            return;
        }
        let mut state = self.lock();
        if let Some(schedule) = &mut state.schedule {
            schedule.pump();
            schedule.wake_watchers();
            self.attend(&mut state);
        }
        self.release(state);
    }

    /// Wakes the disk's thread. The first call starts it.
    fn call_thread(&self, state: &mut State) {
        if let Some(thread) = &state.thread {
            return thread.unpark();
        }
        let disk = self.own.upgrade().expect("it is in use");
        let builder = std::thread::Builder::new().name("wrote-disk".to_owned());
        match builder.spawn(move || disk.serve()) {
            Ok(started) => state.thread = Some(started.thread().clone()),
            // If there is no memory for a thread, there is none for the operations either.
            Err(error) => {
                let what = "starting the disk's thread";
                state.schedule().fail(&Error::Engine { what, errno: errno_of(&error) });
            }
        }
    }

    /// Works while tasks await operations and no caller works. Returns when the last handle has
    /// been dropped.
    fn serve(&self) {
        let mut state = self.lock();
        while let Some(schedule) = &mut state.schedule {
            if !schedule.wakers.is_empty() {
                // A waker may drop the last handle, or consume the unpark that ends a sleep.
                self.release(state);
                state = self.lock();
                continue;
            }
            if schedule.awaited > 0 {
                match self.take_turn(state) {
                    Ok(turned) => {
                        state = turned;
                        continue;
                    }
                    Err(same) => state = same,
                }
            } else {
                self.attend(&mut state);
            }
            drop(state);
            std::thread::park();
            state = self.lock();
        }
    }

    /// Closes the disk when its last handle is dropped: waits for the thread that has the turn, and
    /// completes every operation (W5).
    pub fn close(&self) {
        if !self.process.is_this() {
            return;
        }
        self.wait_for(
            |state| {
                state.recall();
                (!state.turns.is_taken()).then_some(())
            },
            |state, waker| {
                state.schedule().watch(waker);
                None
            },
        );
        let mut state = self.lock();
        let schedule = state.schedule.take();
        if let Some(thread) = &state.thread {
            thread.unpark();
        }
        drop(state);
        drop(schedule);
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::Options;
    use crate::{Disk, Error, FileOptions, Ioengine};

    fn is_forked<T>(result: Result<T, Error>) {
        assert!(matches!(result, Err(Error::Forked)));
    }

    #[test]
    fn no_call_in_a_child_process_waits_for_a_lock_that_a_thread_of_its_parent_holds() {
        let folder = fixtures::folder();
        let path = folder.path().join("file");
        let disk = Disk::open(&Options::new(Ioengine::Threads, 2, 4096)).unwrap();
        let options = FileOptions::new().create(true).write(true);
        let file = disk.open_file(&path, &options).unwrap();
        let [buffer, other] = [(); 2].map(|()| disk.lease().unwrap());
        let mut parts = Some((disk.clone(), file.clone(), file.start_sync_data(), buffer));
        let held = disk.shared().state.lock().unwrap();
        crate::fork::in_child(|| {
            let (disk, file, started, buffer) = parts.take().unwrap();
            let _ = (disk.buffers(), disk.buffers_free(), disk.buffer_bytes(), disk.outstanding());
            let _ = (disk.effective(), disk.try_lease(), format!("{disk:?} {file:?}"));
            let _ = (file.path(), file.is_direct(), file.alignment(), started.is_over());
            is_forked(disk.lease());
            is_forked(disk.submit());
            is_forked(disk.drain());
            is_forked(disk.open_file(&path, &options));
            is_forked(disk.write(&path, b"by the child"));
            is_forked(disk.write_many([(&path, b"by the child")]));
            is_forked(file.read(0, 1));
            is_forked(file.write(buffer, 0));
            is_forked(file.allocate(0, 4096));
            is_forked(file.sync_data());
            is_forked(file.truncate(0));
            is_forked(file.len());
            is_forked(started.wait());
            is_forked(file.close());
            drop((disk, other));
        });
        drop(held);
        drop(parts);
        disk.drain().unwrap();
    }
}
