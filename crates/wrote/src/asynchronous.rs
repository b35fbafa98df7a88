//! A `Reader` and a `Writer` for tasks of any runtime.
//!
//! A thread owns the reader or writer, and waits for the disk. A poll only passes jobs to the
//! thread and takes results, and the thread wakes the task when a result is ready. No poll waits
//! for the disk or wakes its own task.

pub mod reader;
pub mod writer;

use crate::fork::Process;
use std::io;
use std::mem::ManuallyDrop;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// The length of the chunks that a task and its thread exchange, in bytes.
const CHUNK_BYTES: usize = 128 << 10;
/// The maximum number of jobs at once: one that the thread is doing, and the next one.
const JOBS_MAX: usize = 2;

/// A thread that does jobs for a task, one after another. When a `Worker` is dropped, the thread
/// does its remaining jobs and exits; the drop does not wait for it.
struct Worker<J, R> {
    /// The channels of jobs and results. They are not dropped in a child process: the thread, which
    /// does not exist in the child, may have held a lock inside them.
    channels: ManuallyDrop<(SyncSender<J>, Receiver<R>)>,
    waker: Slot,
    process: Process,
}

/// The waker of the task, called after each result and when the thread exits.
type Slot = Arc<Mutex<Option<Waker>>>;

fn wake(slot: &Slot) {
    let waker = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    waker.into_iter().for_each(Waker::wake);
}

impl<J: Send + 'static, R: Send + 'static> Worker<J, R> {
    /// Starts the thread, which calls `work` for each job.
    fn start(name: &str, mut work: impl FnMut(J) -> R + Send + 'static) -> io::Result<Self> {
        /// A guard that wakes the task when the thread exits, even after a panic.
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
            // Dropped after the sender, so that the task finds the channel closed when it is woken.
            let end = end;
            let finished = finished;
            for job in waiting {
                // If the worker has been dropped, the result is lost, but the job is still done.
                let _ = finished.send(work(job));
                wake(&end.0);
            }
        })?;
        let channels = ManuallyDrop::new((jobs, results));
        Ok(Worker { channels, waker, process: Process::this() })
    }

    /// Passes a job to the thread. At most [`JOBS_MAX`] jobs may be pending, that is, passed
    /// without their results having been taken.
    fn send(&self, job: J) {
        if self.process.is_this() {
            // If the thread has panicked, the job is lost, and the next poll returns an error.
            let _ = self.channels.0.send(job);
        }
    }

    /// Returns the next result, in the order of the jobs. If there is none yet, the task will be
    /// woken when it arrives.
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
