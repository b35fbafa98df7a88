//! A small thread pool: several operations at once if io_uring is refused.

use super::Callers;
use super::backend::{Backend, Files, holds_files};
use super::psync::perform;
use super::request::{Reply, Request};
use super::slots::Requests;
use super::wait::{Bell, Wait};
use std::io;
use std::os::fd::RawFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// More threads get no more from one disk, only more switching.
pub(super) const THREADS_MAX: u32 = 64;

struct Job {
    request: Request,
    file: RawFd,
}

// SAFETY: the engine does not touch a request's bytes until the request is done (W5), so the
// executing thread is their only user.
unsafe impl Send for Job {}

/// The pool. Its threads end when it is dropped.
pub(super) struct Threads {
    jobs: Option<Sender<Job>>,
    results: Receiver<Reply>,
    threads: Vec<JoinHandle<()>>,
    /// Signalled with each reply if callers wait without the engine.
    bell: Option<Arc<Bell>>,
    /// The bell's count when replies were last collected.
    seen: u64,
    files: Files,
}

impl Threads {
    pub(super) fn start(iodepth: u32, callers: Callers) -> io::Result<Threads> {
        let (jobs, waiting) = channel::<Job>();
        let (finished, results) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        let bell = (callers == Callers::Shared).then(Arc::<Bell>::default);
        let mut threads = Vec::new();
        for number in 0..iodepth {
            let (waiting, finished) = (Arc::clone(&waiting), finished.clone());
            let bell = bell.clone();
            let builder = std::thread::Builder::new().name(format!("wrote-io-{number}"));
            threads.push(builder.spawn(move || work(&waiting, &finished, bell.as_deref()))?);
        }
        Ok(Threads { jobs: Some(jobs), results, threads, bell, seen: 0, files: Files::default() })
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

impl Backend for Threads {
    holds_files!();

    fn push(&mut self, requests: Requests) {
        let jobs = self.jobs.as_ref().expect("there until dropped");
        for &request in requests {
            let file = self.files.raw(request.slot);
            jobs.send(Job { request, file }).expect("the threads wait for jobs until dropped");
        }
    }

    fn wait(&mut self, min: usize, done: &mut Vec<Reply>) -> io::Result<()> {
        if let Some(bell) = &self.bell {
            self.seen = bell.look();
        }
        for _ in 0..min {
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
        // The threads hold the other end, so an error means a timeout.
        done.extend(self.results.recv_timeout(time));
        done.extend(self.results.try_iter());
        Ok(())
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            // The thread has printed its panic.
            let _ = thread.join();
        }
    }
}
