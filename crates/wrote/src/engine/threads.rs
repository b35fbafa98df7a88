//! Executes requests as system calls: one at a time on the calling thread or, if io_uring is
//! refused, several at once on a small pool of threads.

use super::Callers;
use super::backend::Queue;
use super::op::{OpKind, Reply, Request};
use super::open_file::raw;
use super::slots::Requests;
use super::wait::{Bell, Wait};
use rustix::fs::{FallocateFlags, fallocate, fdatasync, fsync};
use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Executes each request when it is pushed.
#[derive(Default)]
pub(super) struct Psync {
    done: Vec<Reply>,
}

impl Queue for Psync {
    fn push(&mut self, requests: Requests) {
        let files = requests.files;
        for request in requests {
            let file = raw(files, request.slot);
            // SAFETY: the engine holds the request's buffer and file until the request is done, and
            // `perform` is over when it returns.
            self.done.push(unsafe { perform(request, file) });
        }
    }

    fn wait(&mut self, _min: usize, done: &mut Vec<Reply>) -> io::Result<()> {
        done.append(&mut self.done);
        Ok(())
    }
}

/// Makes one attempt at a request. The result may be short, and EINTR is returned.
///
/// # Safety
///
/// `file` must be open, and for a transfer `request.address` must be valid for `request.len` bytes
/// that no other code uses until this returns.
pub(super) unsafe fn perform(request: &Request, file: RawFd) -> Reply {
    // SAFETY: the caller keeps `file` open until this returns.
    let file = unsafe { BorrowedFd::borrow_raw(file) };
    let Request { token, kind, offset, address, len, rw_flags, .. } = *request;
    let flags = ReadWriteFlags::from_bits_retain(rw_flags.cast_unsigned());
    let moved: Result<usize, Errno> = match kind {
        OpKind::Write | OpKind::DurableWrite => {
            // SAFETY: the caller's promise about `address` and `len`.
            let bytes = unsafe { std::slice::from_raw_parts(address, len as usize) };
            pwritev2(file, &[IoSlice::new(bytes)], offset, flags)
        }
        OpKind::Read => {
            // SAFETY: the caller's promise about `address` and `len`.
            let bytes = unsafe { std::slice::from_raw_parts_mut(address, len as usize) };
            preadv2(file, &mut [IoSliceMut::new(bytes)], offset, flags)
        }
        OpKind::Fdatasync => fdatasync(file).map(|()| 0),
        OpKind::Fsync => fsync(file).map(|()| 0),
        OpKind::Fallocate => fallocate(file, FallocateFlags::empty(), offset, len).map(|()| 0),
        OpKind::Reserve => fallocate(file, FallocateFlags::KEEP_SIZE, offset, len).map(|()| 0),
    };
    Reply::new(token, moved)
}

/// The maximum number of threads. More would not increase a disk's throughput, but cause more
/// context switches.
pub(super) const THREADS_MAX: u32 = 64;

/// The number of threads if the caller does its reads and writes itself. There are two, so that an
/// allocation need not wait for a flush.
const ASIDE: u32 = 2;

struct Job {
    request: Request,
    file: RawFd,
}

// SAFETY: the engine does not touch a request's bytes until the request is done (W5), so the
// executing thread is their only user.
unsafe impl Send for Job {}

/// The pool. When it is dropped, its threads exit.
pub(super) struct Threads {
    jobs: Option<Sender<Job>>,
    results: Receiver<Reply>,
    threads: Vec<JoinHandle<()>>,
    /// A bell that rings for each reply, if callers wait without holding the engine.
    bell: Option<Arc<Bell>>,
    /// The bell's count when replies were last collected.
    seen: u64,
    /// Whether the caller's thread does reads and writes itself, and the pool does the rest.
    transfers_itself: bool,
    /// The replies of the caller's own transfers.
    done: Vec<Reply>,
}

impl Threads {
    /// Starts the threads; only a few if the caller `transfers_itself`.
    pub(super) fn start(
        iodepth: u32,
        callers: Callers,
        transfers_itself: bool,
    ) -> io::Result<Threads> {
        let (jobs, waiting) = channel::<Job>();
        let (finished, results) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        let bell = (callers == Callers::Shared).then(Arc::<Bell>::default);
        let mut threads = Vec::new();
        let count = if transfers_itself { ASIDE } else { iodepth };
        for number in 0..count {
            let (waiting, finished) = (Arc::clone(&waiting), finished.clone());
            let bell = bell.clone();
            let builder = std::thread::Builder::new().name(format!("wrote-io-{number}"));
            threads.push(builder.spawn(move || work(&waiting, &finished, bell.as_deref()))?);
        }
        let (jobs, done) = (Some(jobs), Vec::new());
        Ok(Threads { jobs, results, threads, bell, seen: 0, transfers_itself, done })
    }
}

fn work(waiting: &Mutex<Receiver<Job>>, finished: &Sender<Reply>, bell: Option<&Bell>) {
    loop {
        // The lock is held only while the thread waits for a job.
        let job = waiting.lock().expect("no thread panics with the lock").recv();
        let Ok(Job { request, file }) = job else { return };
        // SAFETY: the engine holds the request's buffer and file until it has seen the result.
        let done = unsafe { perform(&request, file) };
        if finished.send(done).is_err() {
            return;
        }
        if let Some(bell) = bell {
            bell.ring();
        }
    }
}

impl Queue for Threads {
    fn completes_in_calls(&self) -> bool {
        false
    }

    fn push(&mut self, requests: Requests) {
        let jobs = self.jobs.as_ref().expect("there until dropped");
        let files = requests.files;
        for &request in requests {
            let file = raw(files, request.slot);
            if self.transfers_itself && request.kind.transfers() {
                // SAFETY: the engine holds the request's buffer and file until the request is done,
                // and `perform` is over when it returns.
                self.done.push(unsafe { perform(&request, file) });
                continue;
            }
            jobs.send(Job { request, file }).expect("the threads wait for jobs until dropped");
        }
    }

    fn wait(&mut self, min: usize, done: &mut Vec<Reply>) -> io::Result<()> {
        if let Some(bell) = &self.bell {
            self.seen = bell.look();
        }
        let own = self.done.len();
        done.append(&mut self.done);
        for _ in own..min {
            done.push(self.results.recv().expect("the threads hold the other end"));
        }
        done.extend(self.results.try_iter());
        Ok(())
    }

    fn prepare_wait(&mut self) -> io::Result<Wait> {
        let Some(bell) = &self.bell else { return Ok(Wait::None) };
        Ok(Wait::Bell { bell: Arc::clone(bell), seen: self.seen })
    }

    fn interrupt(&mut self) -> io::Result<()> {
        self.bell.iter().for_each(|bell| bell.ring());
        Ok(())
    }

    fn wait_within(&mut self, time: Duration, done: &mut Vec<Reply>) -> io::Result<()> {
        if self.done.is_empty() {
            // The threads hold the other end of the channel, so an error means a timeout.
            done.extend(self.results.recv_timeout(time));
        }
        done.append(&mut self.done);
        done.extend(self.results.try_iter());
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // If the thread panicked, it has already printed that.
            let _ = thread.join();
        }
    }
}
