//! `AsyncWriter`: a `Writer` behind a thread.

use super::worker::Worker;
use crate::{Error, Writer, Written};
use std::fmt;
use std::future::poll_fn;
use std::io::{self, Seek, SeekFrom, Write};
use std::task::{Context, Poll, ready};

/// The length of a chunk.
const CHUNK_BYTES: usize = 128 << 10;
/// The most full chunks that the thread has, while the task fills another.
const CHUNKS_MAX: usize = 3;

enum Job {
    Write(Vec<u8>),
    Flush,
    SyncData,
    Seek(SeekFrom),
    End { durable: bool },
}

enum Done {
    Wrote(Vec<u8>, io::Result<()>),
    Flushed(io::Result<()>),
    Synced(Result<(), Error>),
    Sought(io::Result<u64>),
    Ended(Result<Written, Error>),
}

/// A job in progress other than a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Flush,
    SyncData,
    Seek,
    End,
}

/// Writes a file in a task: a [`Writer`] on a thread, created by [`Writer::into_async`].
///
/// Implements `AsyncWrite` and `AsyncSeek` of tokio (feature `tokio`) and the traits of
/// `futures-io` (feature `futures-io`). Works on any runtime, and without one. Closing it
/// (`shutdown`, `close`) is
/// [`AsyncWriter::finish`]: the file then survives power loss.
///
/// A poll never waits for the disk. It fills a chunk of 128 KiB, which the thread writes, and is
/// pending while the thread has three of them; the thread then wakes the task. Uses 512 KiB more
/// memory than a [`Writer`] (W8).
///
/// # Errors
///
/// An error in the background is returned by the next call and every later one (W2).
///
/// # Dropped
///
/// Dropping it does not wait: the thread writes the remaining chunks, including the partial one,
/// and finishes the file like a dropped [`Writer`]. The process may end before that. An unfinished
/// replacement is removed.
pub struct AsyncWriter {
    worker: Worker<Job, Done>,
    chunk: Vec<u8>,
    spare: Vec<Vec<u8>>,
    /// The number of chunks that the thread has.
    writing: usize,
    step: Option<Step>,
    /// The result of the last seek.
    sought: Option<io::Result<u64>>,
    written: Option<Result<Written, Error>>,
    is_ended: bool,
    failed: Option<Error>,
}

impl Writer {
    /// Starts a thread that writes for a task. If no thread can be started it fails, and finishes
    /// the file like a dropped writer.
    pub fn into_async(self) -> io::Result<AsyncWriter> {
        let mut writer = Some(self);
        let worker = Worker::start("wrote-writer", move |job| do_job(&mut writer, job))?;
        Ok(AsyncWriter {
            worker,
            chunk: Vec::new(),
            spare: Vec::new(),
            writing: 0,
            step: None,
            sought: None,
            written: None,
            is_ended: false,
            failed: None,
        })
    }
}

fn do_job(slot: &mut Option<Writer>, job: Job) -> Done {
    let ended = || io::Error::other("the file was closed");
    let writer = slot.as_mut();
    match job {
        Job::Write(mut chunk) => {
            let wrote = writer.map_or_else(|| Err(ended()), |writer| writer.write_all(&chunk));
            chunk.clear();
            Done::Wrote(chunk, wrote)
        }
        Job::Flush => Done::Flushed(writer.map_or_else(|| Err(ended()), Writer::flush)),
        Job::SyncData => Done::Synced(writer.map_or(Ok(()), Writer::sync_data)),
        Job::Seek(to) => {
            Done::Sought(writer.map_or_else(|| Err(ended()), |writer| writer.seek(to)))
        }
        Job::End { durable } => {
            let writer = slot.take().expect("a task ends its file once");
            Done::Ended(if durable { writer.finish() } else { writer.close() })
        }
    }
}

impl AsyncWriter {
    /// Makes earlier writes durable, like [`Writer::sync_data`].
    pub async fn sync_data(&mut self) -> Result<(), Error> {
        poll_fn(|context| self.poll_step(context, Step::SyncData, || Job::SyncData))
            .await
            .map_err(own_error)
    }

    /// Writes the rest and closes the file durably, or puts a replacement in place, like
    /// [`Writer::finish`].
    pub async fn finish(self) -> Result<Written, Error> {
        self.end(true).await
    }

    /// Writes the rest and closes the file without a flush, like [`Writer::close`].
    pub async fn close(self) -> Result<Written, Error> {
        self.end(false).await
    }

    async fn end(mut self, durable: bool) -> Result<Written, Error> {
        let ended = poll_fn(|context| self.poll_end(context, durable)).await;
        match self.written.take() {
            Some(written) => written,
            None => Err(own_error(ended.err().unwrap_or_else(|| self.worker.gone()))),
        }
    }

    /// Copies bytes into the chunk. Waits while it is full and the thread has all others.
    pub(super) fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        // Completes a step whose future was dropped.
        while self.step.is_some() {
            ready!(self.poll_result(context))?;
        }
        self.take_results()?;
        if self.is_ended {
            return Poll::Ready(Err(io::Error::other("the file was closed")));
        }
        while self.chunk.len() == CHUNK_BYTES {
            if self.writing < CHUNKS_MAX {
                self.hand_over();
            } else {
                ready!(self.poll_result(context))?;
            }
        }
        self.sought = None;
        if self.chunk.capacity() == 0 {
            self.chunk = self.spare.pop().unwrap_or_default();
        }
        let len = bytes.len().min(CHUNK_BYTES - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..len]);
        Poll::Ready(Ok(len))
    }

    /// Passes the chunk to the thread.
    fn hand_over(&mut self) {
        let chunk = std::mem::take(&mut self.chunk);
        self.writing += 1;
        self.worker.send(Job::Write(chunk));
    }

    /// Passes everything and the job to the thread, and waits for its result. A different step in
    /// progress is completed first.
    fn poll_step(
        &mut self,
        context: &mut Context<'_>,
        step: Step,
        job: impl FnOnce() -> Job,
    ) -> Poll<io::Result<()>> {
        while self.step.is_some_and(|other| other != step) {
            ready!(self.poll_result(context))?;
        }
        if self.step.is_none() {
            self.check()?;
            if !self.chunk.is_empty() {
                self.hand_over();
            }
            self.step = Some(step);
            self.worker.send(job());
        }
        while self.step.is_some() {
            ready!(self.poll_result(context))?;
        }
        Poll::Ready(Ok(()))
    }

    pub(super) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_ended && self.step.is_none() {
            return Poll::Ready(Ok(()));
        }
        self.poll_step(context, Step::Flush, || Job::Flush)
    }

    /// Ends the file; repeating this is not an error.
    pub(super) fn poll_end(
        &mut self,
        context: &mut Context<'_>,
        durable: bool,
    ) -> Poll<io::Result<()>> {
        if self.is_ended && self.step.is_none() {
            return Poll::Ready(self.check());
        }
        self.is_ended = true;
        self.poll_step(context, Step::End, || Job::End { durable })
    }

    pub(super) fn start_seek(&mut self, to: SeekFrom) -> io::Result<()> {
        if self.step.is_some() {
            return Err(io::Error::other("another operation is under way"));
        }
        self.check()?;
        if !self.chunk.is_empty() {
            self.hand_over();
        }
        self.step = Some(Step::Seek);
        self.sought = None;
        self.worker.send(Job::Seek(to));
        Ok(())
    }

    /// Waits for a step whose future was dropped.
    #[cfg(feature = "futures-io")]
    pub(super) fn poll_idle(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.step.is_some() {
            ready!(self.poll_result(context))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Returns whether a seek is in progress.
    #[cfg(feature = "futures-io")]
    pub(super) fn is_seeking(&self) -> bool {
        self.step == Some(Step::Seek)
    }

    /// Waits for the started seek; otherwise queries the position.
    pub(super) fn poll_sought(&mut self, context: &mut Context<'_>) -> Poll<io::Result<u64>> {
        while self.step.is_some_and(|step| step != Step::Seek) {
            ready!(self.poll_result(context))?;
        }
        if self.step.is_none() && self.sought.is_none() {
            self.start_seek(SeekFrom::Current(0))?;
        }
        while self.step.is_some() {
            ready!(self.poll_result(context))?;
        }
        Poll::Ready(self.sought.take().unwrap_or_else(|| Err(self.worker.gone())))
    }

    fn poll_result(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match ready!(self.worker.poll_next(context)) {
            Some(done) => Poll::Ready(self.note(done)),
            None => Poll::Ready(Err(self.worker.gone())),
        }
    }

    /// Takes the available results.
    fn take_results(&mut self) -> io::Result<()> {
        while let Some(done) = self.worker.try_next() {
            self.note(done)?;
        }
        self.check()
    }

    fn note(&mut self, done: Done) -> io::Result<()> {
        let result = match done {
            Done::Wrote(chunk, wrote) => {
                self.writing -= 1;
                self.spare.push(chunk);
                wrote
            }
            Done::Flushed(flushed) => {
                self.step = None;
                flushed
            }
            Done::Synced(synced) => {
                self.step = None;
                synced.map_err(io::Error::from)
            }
            Done::Sought(sought) => {
                self.step = None;
                // A seek to an impossible position fails without further effect.
                self.sought = Some(sought);
                return Ok(());
            }
            Done::Ended(ended) => {
                self.step = None;
                let result = ended.as_ref().map(drop).map_err(|error| error.clone().into());
                self.written = Some(ended);
                result
            }
        };
        if let (Err(error), None) = (&result, &self.failed) {
            let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
            self.failed = inner.cloned();
        }
        result
    }

    /// Returns the first error again (W2).
    fn check(&self) -> io::Result<()> {
        self.failed.clone().map_or(Ok(()), |error| Err(error.into()))
    }
}

/// Extracts the library's error; an error of the thread itself has none.
fn own_error(error: io::Error) -> Error {
    let what = "the thread that writes for the task ended";
    error.downcast::<Error>().unwrap_or(Error::Engine { what, errno: libc::EIO })
}

impl Drop for AsyncWriter {
    fn drop(&mut self) {
        if !self.chunk.is_empty() && !self.is_ended {
            self.hand_over();
        }
    }
}

impl fmt::Debug for AsyncWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncWriter").field("step", &self.step).finish_non_exhaustive()
    }
}
