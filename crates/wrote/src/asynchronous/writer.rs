//! `AsyncWriter`: a `Writer` behind a thread.

use super::worker::Worker;
use crate::{Error, Writer, Written};
use std::fmt;
use std::future::poll_fn;
use std::io::{self, Seek, SeekFrom, Write};
use std::task::{Context, Poll, ready};

/// Bytes of one chunk between the task and the thread.
const CHUNK_BYTES: usize = 128 << 10;
/// Full chunks that the thread has at most; the task fills another meanwhile.
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

/// A job that is not a write, and under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Flush,
    SyncData,
    Seek,
    End,
}

/// Writes a file in a task: a [`Writer`] behind a thread, which [`Writer::into_async`] makes.
///
/// With the feature `tokio` it is tokio's `AsyncWrite` and `AsyncSeek`, with `futures-io` those of
/// that crate; on any runtime, and without one. Closing it (`shutdown`, `close`) is
/// [`AsyncWriter::finish`]: the file survives a power loss then.
///
/// A poll never waits for the disk. It fills a chunk of 128 KiB, which the thread writes, and is
/// pending while the thread has three of them; the thread wakes the task. Memory is that of a
/// [`Writer`] and 512 KiB (W8).
///
/// # Errors
///
/// The next call, and every later one, returns an error of the background (W2).
///
/// # Dropped
///
/// Dropping it does not wait: the thread writes what it has, and finishes the file as the drop of a
/// [`Writer`] does. The process may end before. A replacement that was not finished is removed.
/// Bytes of the last chunk, which only a flush or the end hands to the thread, are handed over
/// first.
pub struct AsyncWriter {
    worker: Worker<Job, Done>,
    chunk: Vec<u8>,
    spare: Vec<Vec<u8>>,
    /// Chunks that the thread has.
    writing: usize,
    step: Option<Step>,
    /// The result of the last seek.
    sought: Option<io::Result<u64>>,
    written: Option<Result<Written, Error>>,
    is_ended: bool,
    failed: Option<Error>,
}

impl Writer {
    /// Starts a thread that writes for a task. Fails where there can be no thread; the file is then
    /// finished, as by a drop.
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
    /// Makes earlier writes survive a power loss, as [`Writer::sync_data`].
    pub async fn sync_data(&mut self) -> Result<(), Error> {
        poll_fn(|context| self.poll_step(context, Step::SyncData, || Job::SyncData))
            .await
            .map_err(own_error)
    }

    /// Writes the rest and closes the file, which then survives a power loss, or puts a
    /// replacement in its place, as [`Writer::finish`].
    pub async fn finish(self) -> Result<Written, Error> {
        self.end(true).await
    }

    /// Writes the rest and closes the file without a flush, as [`Writer::close`].
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

    /// Takes bytes into the chunk; waits while it is full, and the thread has all others.
    pub(super) fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        // A step whose future was dropped comes first.
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

    /// Hands the chunk to the thread.
    fn hand_over(&mut self) {
        let chunk = std::mem::take(&mut self.chunk);
        self.writing += 1;
        self.worker.send(Job::Write(chunk));
    }

    /// Hands over everything and the job, and waits for its result. A step of another kind that is
    /// under way ends first.
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

    /// Ends the file; once more is no error.
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

    /// Waits for a step of another kind whose future was dropped.
    #[cfg(feature = "futures-io")]
    pub(super) fn poll_idle(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.step.is_some() {
            ready!(self.poll_result(context))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Whether a seek was begun that has not ended.
    #[cfg(feature = "futures-io")]
    pub(super) fn is_seeking(&self) -> bool {
        self.step == Some(Step::Seek)
    }

    /// Waits for the seek that was begun; without one, asks for the place.
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

    /// Takes the results that are there.
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
                // A seek to where no file reaches fails alone.
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

/// The library's own error inside; an error of the thread has none.
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
