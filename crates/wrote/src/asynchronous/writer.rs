//! `AsyncWriter`: a `Writer` behind a thread.

use super::{CHUNK_BYTES, Worker};
use crate::{Error, Writer, Written};
use std::fmt;
use std::future::poll_fn;
use std::io::{self, Seek, SeekFrom, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncSeek, AsyncWrite};

/// A job of the thread: it writes a chunk, and then does this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Nothing,
    Flush,
    SyncData,
    Seek(SeekFrom),
    End { durable: bool },
}

enum Reply {
    Done,
    Place(u64),
    Written(Box<Written>),
}

/// A chunk, and what the thread does after writing it.
type Work = (Vec<u8>, Then);

/// Writes a file in a task: a [`Writer`] on a thread, created by [`Writer::into_async`].
///
/// Implements tokio's `AsyncWrite` and `AsyncSeek`, on any runtime or without one. The compat
/// module of the crate `tokio-util` gives it the traits of `futures-io`. `shutdown` acts like
/// [`AsyncWriter::finish`]: the file then survives power loss.
///
/// A poll never waits for the disk. It fills a chunk of 128 KiB, and is pending while the thread
/// writes another and this one is full; the thread then wakes the task. Uses 256 KiB more memory
/// than a [`Writer`] (W8).
///
/// # Errors
///
/// An error in the background is returned by a later call and every one after it (W2).
///
/// # Dropped
///
/// Dropping it does not wait: the thread writes the remaining chunks, including the partial one,
/// and finishes the file like a dropped [`Writer`]. The process may end before that. An unfinished
/// replacement is removed.
pub struct AsyncWriter {
    worker: Worker<Work, (Vec<u8>, io::Result<Reply>)>,
    chunk: Vec<u8>,
    spare: Vec<u8>,
    /// The work of the thread.
    doing: Option<Then>,
    /// The seek that was asked for last, until it is complete.
    seek: Option<SeekFrom>,
    written: Option<Written>,
    is_ended: bool,
    failed: Option<Error>,
}

impl Writer {
    /// Starts a thread that writes for a task. If no thread can be started it fails, and finishes
    /// the file like a dropped writer.
    pub fn into_async(self) -> io::Result<AsyncWriter> {
        let mut writer = Some(self);
        let work = move |(mut chunk, then): Work| {
            let result = do_job(&mut writer, &chunk, then);
            chunk.clear();
            (chunk, result)
        };
        let (chunk, spare) = (Vec::new(), Vec::new());
        let worker = Worker::start("wrote-writer", work)?;
        let (doing, seek, written, is_ended, failed) = (None, None, None, false, None);
        Ok(AsyncWriter { worker, chunk, spare, doing, seek, written, is_ended, failed })
    }
}

fn do_job(slot: &mut Option<Writer>, chunk: &[u8], then: Then) -> io::Result<Reply> {
    let writer = slot.as_mut().ok_or_else(closed)?;
    writer.write_all(chunk)?;
    match then {
        Then::Nothing => {}
        Then::Flush => writer.flush()?,
        Then::SyncData => writer.sync_data()?,
        Then::Seek(to) => return Ok(Reply::Place(writer.seek(to)?)),
        Then::End { durable } => {
            let writer = slot.take().expect("it was there");
            let written = if durable { writer.finish() } else { writer.close() };
            return Ok(Reply::Written(Box::new(written?)));
        }
    }
    Ok(Reply::Done)
}

fn closed() -> io::Error {
    io::Error::other("the file was closed")
}

impl AsyncWriter {
    /// Makes earlier writes durable, like [`Writer::sync_data`].
    pub async fn sync_data(&mut self) -> Result<(), Error> {
        let synced = poll_fn(|context| self.poll_step(context, Then::SyncData)).await;
        synced.map(drop).map_err(own_error)
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
        poll_fn(|context| self.poll_end(context, durable)).await.map_err(own_error)?;
        self.written.take().ok_or_else(|| own_error(closed()))
    }

    /// Ends the file; repeating this is not an error.
    fn poll_end(&mut self, context: &mut Context<'_>, durable: bool) -> Poll<io::Result<()>> {
        if self.is_ended && self.doing.is_none() {
            return Poll::Ready(self.check());
        }
        self.is_ended = true;
        self.poll_step(context, Then::End { durable }).map_ok(drop)
    }

    /// Passes the chunk to the thread.
    fn start(&mut self, then: Then) {
        let chunk = std::mem::replace(&mut self.chunk, std::mem::take(&mut self.spare));
        self.doing = Some(then);
        self.worker.send((chunk, then));
    }

    /// Passes the chunk and the step to the thread, and waits for its result. What the thread does
    /// already is completed first, also for a future that was dropped.
    fn poll_step(&mut self, context: &mut Context<'_>, then: Then) -> Poll<io::Result<Reply>> {
        loop {
            match self.doing {
                None => {
                    self.check()?;
                    self.start(then);
                }
                Some(doing) => {
                    let reply = ready!(self.poll_done(context));
                    if doing == then {
                        return Poll::Ready(reply);
                    }
                }
            }
        }
    }

    fn poll_done(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Reply>> {
        let done = ready!(self.worker.poll(context));
        self.doing = None;
        let (chunk, result) = done?;
        self.spare = chunk;
        match &result {
            Ok(Reply::Written(written)) => self.written = Some((**written).clone()),
            // A seek to an impossible position has no error of the library's, and no effect.
            Err(error) if self.failed.is_none() => {
                let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
                self.failed = inner.cloned();
            }
            _ => {}
        }
        Poll::Ready(result)
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

impl AsyncWrite for AsyncWriter {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let is_full = self.chunk.len() == CHUNK_BYTES;
        // A step whose future was dropped covers only the bytes before it.
        while let Some(doing) = self.doing.filter(|&doing| is_full || doing != Then::Nothing) {
            let done = ready!(self.poll_done(context));
            if !matches!(doing, Then::Seek(_)) {
                done?;
            }
        }
        self.check()?;
        if self.is_ended {
            return Poll::Ready(Err(closed()));
        }
        if is_full {
            self.start(Then::Nothing);
        }
        let len = bytes.len().min(CHUNK_BYTES - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..len]);
        Poll::Ready(Ok(len))
    }

    /// Writes everything, like `std::io::Write::flush` of a [`Writer`].
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_ended && self.doing.is_none() {
            return Poll::Ready(Ok(()));
        }
        self.poll_step(context, Then::Flush).map_ok(drop)
    }

    /// Like [`AsyncWriter::finish`].
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_end(context, true)
    }
}

impl AsyncSeek for AsyncWriter {
    fn start_seek(mut self: Pin<&mut Self>, to: SeekFrom) -> io::Result<()> {
        self.check()?;
        self.seek = Some(to);
        Ok(())
    }

    fn poll_complete(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let to = self.seek.unwrap_or(SeekFrom::Current(0));
        let sought = ready!(self.poll_step(context, Then::Seek(to)));
        self.seek = None;
        match sought? {
            Reply::Place(place) => Poll::Ready(Ok(place)),
            _ => unreachable!("a seek leads to a place"),
        }
    }
}

impl Drop for AsyncWriter {
    fn drop(&mut self) {
        if !self.chunk.is_empty() && !self.is_ended {
            self.start(Then::Nothing);
        }
    }
}

impl fmt::Debug for AsyncWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncWriter").field("doing", &self.doing).finish_non_exhaustive()
    }
}
