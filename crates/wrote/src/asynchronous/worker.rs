//! A thread that executes jobs for a task one after another.

use crate::fork::Process;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;

/// A thread, with its queues of jobs and results.
///
/// Dropping it ends the thread after its remaining jobs, without waiting.
pub(super) struct Worker<J, R> {
    shared: Arc<Shared<J, R>>,
    process: Process,
}

struct Shared<J, R> {
    state: Mutex<State<J, R>>,
    /// Signalled for each job, and when no more will come.
    bell: Condvar,
}

struct State<J, R> {
    jobs: VecDeque<J>,
    results: VecDeque<R>,
    waker: Option<Waker>,
    /// No more jobs will come.
    is_closed: bool,
    /// The thread has panicked.
    is_gone: bool,
}

impl<J, R> Shared<J, R> {
    fn state(&self) -> MutexGuard<'_, State<J, R>> {
        // No code that can panic runs under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<J: Send + 'static, R: Send + 'static> Worker<J, R> {
    /// Starts the thread, which calls `work` for each job.
    pub(super) fn start(
        name: &str,
        mut work: impl FnMut(J) -> R + Send + 'static,
    ) -> io::Result<Worker<J, R>> {
        let (jobs, results) = (VecDeque::new(), VecDeque::new());
        let state = State { jobs, results, waker: None, is_closed: false, is_gone: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), bell: Condvar::new() });
        let end = Ending(Arc::clone(&shared));
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            while let Some(job) = end.next() {
                let result = work(job);
                end.give(result);
            }
        })?;
        Ok(Worker { shared, process: Process::this() })
    }
}

impl<J, R> Worker<J, R> {
    pub(super) fn send(&self, job: J) {
        if self.process.is_this() {
            self.shared.state().jobs.push_back(job);
            self.shared.bell.notify_one();
        }
    }

    /// Returns the next result, in job order, or wakes the task once there is one. `None` if the
    /// thread is [`Worker::gone`].
    pub(super) fn poll_next(&self, context: &mut Context<'_>) -> Poll<Option<R>> {
        if !self.process.is_this() {
            return Poll::Ready(None);
        }
        let mut state = self.shared.state();
        if let Some(result) = state.results.pop_front() {
            return Poll::Ready(Some(result));
        }
        if state.is_gone {
            return Poll::Ready(None);
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }

    /// Returns the next result, if ready.
    pub(super) fn try_next(&self) -> Option<R> {
        self.process.check().ok()?;
        self.shared.state().results.pop_front()
    }

    /// Returns the error for a thread that has panicked, or belongs to the parent process.
    pub(super) fn gone(&self) -> io::Error {
        match self.process.check() {
            Err(error) => error.into(),
            Ok(()) => io::Error::other("the thread that did its I/O panicked"),
        }
    }
}

impl<J, R> Drop for Worker<J, R> {
    fn drop(&mut self) {
        if self.process.is_this() {
            self.shared.state().is_closed = true;
            self.shared.bell.notify_one();
        }
    }
}

/// The thread's side. Its end wakes the task, even after a panic.
struct Ending<J, R>(Arc<Shared<J, R>>);

impl<J, R> Ending<J, R> {
    fn next(&self) -> Option<J> {
        let mut state = self.0.state();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                return Some(job);
            }
            if state.is_closed {
                return None;
            }
            state = self.0.bell.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn give(&self, result: R) {
        let waker = {
            let mut state = self.0.state();
            state.results.push_back(result);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<J, R> Drop for Ending<J, R> {
    fn drop(&mut self) {
        let waker = {
            let mut state = self.0.state();
            state.is_gone = true;
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
