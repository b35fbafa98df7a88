//! Threads that copy small files in parallel with the thread that walks the tree.

use super::small::{SmallCopied, SmallCopier, SmallJob};
use crate::Error;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// The most threads including the walking one: files of one folder are created one after another.
const THREADS_MAX: usize = 4;

/// The most waiting jobs (W8).
const WAITING_MAX: usize = 64;

/// The number of waiting jobs at which a thread is woken, which takes as long as a few small files.
const WAKES_AT: usize = 8;

pub(super) type SmallResult = (SmallJob, Result<Option<SmallCopied>, Error>);

/// The threads and their jobs. The walking thread executes jobs too if many wait; it sleeps only in
/// [`Workers::finish`].
pub(super) struct Workers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    threads_max: usize,
    buffer: Vec<u8>,
    /// The number of the next job.
    taken: u64,
}

struct Shared {
    copier: SmallCopier,
    state: Mutex<State>,
    /// Signalled when there are jobs, and at the end.
    has_jobs: Condvar,
    /// Signalled when no thread is working.
    is_idle: Condvar,
}

#[derive(Default)]
struct State {
    /// Jobs in order, with their numbers.
    waiting: VecDeque<(u64, SmallJob)>,
    results: Vec<SmallResult>,
    /// The numbers of the jobs in progress.
    at_work: Vec<u64>,
    has_panicked: bool,
    is_over: bool,
}

/// A job in progress. Ends on drop, even after a panic.
struct AtWork<'a>(&'a Shared, u64);

impl Workers {
    pub(super) fn new(copier: SmallCopier) -> Workers {
        let threads_max = std::thread::available_parallelism().map_or(1, usize::from);
        let buffer = vec![0; copier.bytes_max];
        let state = Mutex::default();
        let (has_jobs, is_idle) = (Condvar::new(), Condvar::new());
        let shared = Arc::new(Shared { copier, state, has_jobs, is_idle });
        let threads_max = threads_max.min(THREADS_MAX);
        Workers { shared, threads: Vec::new(), threads_max, buffer, taken: 0 }
    }

    /// Returns the number of jobs so far.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Queues a job; if many wait, executes one on this thread.
    pub(super) fn take(&mut self, job: SmallJob) {
        let mut state = self.shared.lock();
        state.waiting.push_back((self.taken, job));
        self.taken += 1;
        let waiting = state.waiting.len();
        drop(state);
        if waiting == WAKES_AT {
            self.wake();
        }
        if waiting >= WAITING_MAX {
            self.shared.work_once(&mut self.buffer);
        }
    }

    /// Wakes the threads, starting them when there is work.
    fn wake(&mut self) {
        if self.threads.len() + 1 < self.threads_max {
            let shared = Arc::clone(&self.shared);
            let builder = std::thread::Builder::new().name("wrote-copy".to_owned());
            match builder.spawn(move || shared.work()) {
                Ok(thread) => self.threads.push(thread),
                // Fewer threads do the same work.
                Err(_) => self.threads_max = self.threads.len() + 1,
            }
        }
        self.shared.has_jobs.notify_all();
    }

    /// Returns the results since the last call, and a number: all jobs before it have completed.
    pub(super) fn results(&self) -> (Vec<SmallResult>, u64) {
        let mut state = self.shared.lock();
        let waiting = state.waiting.front().map(|&(number, _)| number);
        let unfinished = state.at_work.iter().copied().chain(waiting).min();
        (std::mem::take(&mut state.results), unfinished.unwrap_or(self.taken))
    }

    /// Completes all jobs.
    pub(super) fn finish(&mut self) {
        while self.shared.work_once(&mut self.buffer) {}
        let mut state = self.shared.lock();
        while !state.at_work.is_empty() {
            state = self.shared.is_idle.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        // That thread's file is missing in the copy.
        assert!(!state.has_panicked, "a thread that copies files panicked");
    }
}

impl Drop for Workers {
    /// Stops the threads. Waiting jobs are discarded.
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.waiting.clear();
        state.is_over = true;
        drop(state);
        self.shared.has_jobs.notify_all();
        for thread in self.threads.drain(..) {
            // The thread has printed its panic.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works until the end of all jobs.
    fn work(&self) {
        let mut buffer = vec![0; self.copier.bytes_max];
        loop {
            while self.work_once(&mut buffer) {}
            let state = self.lock();
            if state.is_over {
                return;
            }
            if state.waiting.is_empty() {
                drop(self.has_jobs.wait(state).unwrap_or_else(PoisonError::into_inner));
            }
        }
    }

    /// Executes one job; returns `false` if none waits.
    fn work_once(&self, buffer: &mut [u8]) -> bool {
        let mut state = self.lock();
        let Some((number, job)) = state.waiting.pop_front() else { return false };
        state.at_work.push(number);
        drop(state);
        let at_work = AtWork(self, number);
        let result = self.copier.copy(&job, buffer);
        self.lock().results.push((job, result));
        drop(at_work);
        true
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.has_panicked |= std::thread::panicking();
        state.at_work.retain(|&number| number != self.1);
        if state.at_work.is_empty() {
            self.0.is_idle.notify_all();
        }
    }
}
