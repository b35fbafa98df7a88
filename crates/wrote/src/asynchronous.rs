//! A `Reader` and a `Writer` for tasks of any runtime.
//!
//! A thread owns the reader or writer and waits for the disk. A poll only passes jobs and takes
//! results, and the thread wakes the task when a result is ready. No poll waits for the disk, and
//! none wakes itself.

pub mod reader;
pub mod writer;

use crate::fork::Process;
use std::io;
use std::mem::ManuallyDrop;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// The length of the chunks that a task and its thread exchange.
const CHUNK_BYTES: usize = 128 << 10;
/// The maximum number of jobs at once: one that the thread does, and one after it.
const JOBS_MAX: usize = 2;

/// A thread that does jobs for a task, one after another. Dropping this ends the thread after its
/// remaining jobs, without waiting.
struct Worker<J, R> {
    /// Not dropped in a child process: a lock of theirs may be the thread's, which the child lacks.
    channels: ManuallyDrop<(SyncSender<J>, Receiver<R>)>,
    waker: Slot,
    process: Process,
}

/// The waker of the task, to call after each result and at the thread's end.
type Slot = Arc<Mutex<Option<Waker>>>;

fn wake(slot: &Slot) {
    let waker = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    waker.into_iter().for_each(Waker::wake);
}

impl<J: Send + 'static, R: Send + 'static> Worker<J, R> {
    /// Starts the thread, which calls `work` for each job.
    fn start(name: &str, mut work: impl FnMut(J) -> R + Send + 'static) -> io::Result<Self> {
        /// Wakes the task when the thread ends, even by a panic.
        struct End(Slot);
        impl Drop for End {
            fn drop(&mut self) {
                wake(&self.0);
            }
        }
        let (jobs, waiting) = sync_channel(JOBS_MAX);
        let (finished, results) = sync_channel(JOBS_MAX);
        let waker = Slot::default();
        let end = End(Arc::clone(&waker));
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            // Dropped after the channel, which then has no other end.
            let end = end;
            let finished = finished;
            for job in waiting {
                // After a drop no task takes it, and the jobs are still done.
                let _ = finished.send(work(job));
                wake(&end.0);
            }
        })?;
        let channels = ManuallyDrop::new((jobs, results));
        Ok(Worker { channels, waker, process: Process::this() })
    }

    /// Passes a job to the thread, at most [`JOBS_MAX`] before their results are taken.
    fn send(&self, job: J) {
        if self.process.is_this() {
            // A thread that has panicked takes none; the next poll returns that.
            let _ = self.channels.0.send(job);
        }
    }

    /// Returns the next result, in the order of the jobs, or wakes the task once there is one.
    fn poll(&self, context: &mut Context<'_>) -> Poll<io::Result<R>> {
        self.process.check()?;
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(context.waker().clone());
        match self.channels.1.try_recv() {
            Ok(result) => Poll::Ready(Ok(result)),
            Err(TryRecvError::Empty) => Poll::Pending,
            Err(TryRecvError::Disconnected) => {
                Poll::Ready(Err(io::Error::other("the thread that did its I/O panicked")))
            }
        }
    }
}

impl<J, R> Drop for Worker<J, R> {
    fn drop(&mut self) {
        if self.process.is_this() {
            // SAFETY: they are not used after this.
            unsafe { ManuallyDrop::drop(&mut self.channels) };
        }
    }
}
