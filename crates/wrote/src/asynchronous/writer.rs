//! A `Writer` that runs on a thread, on behalf of a task.

use super::{CHUNK_BYTES, Worker};
use crate::Error;
use std::io::{self, Seek, SeekFrom, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncSeek, AsyncWrite};

/// The second half of a job: what the thread does after it has written a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Nothing,
    Flush,
    Seek(SeekFrom),
    End,
}

/// A chunk, and what the thread does after writing it.
type Work = (Vec<u8>, Then);

/// The writer that [`Writer::into_async`](crate::Writer::into_async) returns.
pub struct AsyncWriter {
    worker: Worker<Work, (Vec<u8>, io::Result<u64>)>,
    chunk: Vec<u8>,
    spare: Vec<u8>,
    /// The step after the chunk that the thread is writing, if it is writing one.
    doing: Option<Then>,
    /// The most recently requested seek, until it is complete.
    seek: Option<SeekFrom>,
    is_ended: bool,
    failed: Option<Error>,
}

/// Writes the chunk, and then does the step. Returns the offset that a seek leads to.
fn do_job<W: Write + Seek, T>(
    slot: &mut Option<W>,
    finish: fn(W) -> Result<T, Error>,
    chunk: &[u8],
    then: Then,
) -> io::Result<u64> {
    let writer = slot.as_mut().ok_or_else(closed)?;
    writer.write_all(chunk)?;
    match then {
        Then::Nothing => {}
        Then::Flush => writer.flush()?,
        Then::Seek(to) => return writer.seek(to),
        Then::End => drop(finish(slot.take().expect("it was there"))?),
    }
    Ok(0)
}

fn closed() -> io::Error {
    io::Error::other("the file was closed")
}

impl AsyncWriter {
    /// Starts the thread, which calls `finish` at the end of the stream.
    pub fn start<W: Write + Seek + Send + 'static, T: 'static>(
        writer: W,
        finish: fn(W) -> Result<T, Error>,
    ) -> io::Result<AsyncWriter> {
        let mut writer = Some(writer);
        let work = move |(mut chunk, then): Work| {
            let result = do_job(&mut writer, finish, &chunk, then);
            chunk.clear();
            (chunk, result)
        };
        let (chunk, spare) = (Vec::new(), Vec::new());
        let worker = Worker::start("wrote-writer", work)?;
        let (doing, seek, is_ended, failed) = (None, None, false, None);
        Ok(AsyncWriter { worker, chunk, spare, doing, seek, is_ended, failed })
    }

    /// Passes the chunk to the thread.
    fn pass(&mut self, then: Then) {
        let chunk = std::mem::replace(&mut self.chunk, std::mem::take(&mut self.spare));
        self.doing = Some(then);
        self.worker.send((chunk, then));
    }

    /// Passes the chunk and the step to the thread, and waits for the result. The thread first
    /// completes its current work, even if the future that requested that work has been dropped.
    fn poll_step(&mut self, context: &mut Context<'_>, then: Then) -> Poll<io::Result<u64>> {
        loop {
            match self.doing {
                None => {
                    self.check()?;
                    self.pass(then);
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

    fn poll_done(&mut self, context: &mut Context<'_>) -> Poll<io::Result<u64>> {
        let done = ready!(self.worker.poll(context));
        self.doing = None;
        let (chunk, result) = done?;
        self.spare = chunk;
        if let Err(error) = &result
            && self.failed.is_none()
        {
            // The error of a seek to an impossible offset contains no [`Error`], and has no lasting
            // effect.
            let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
            self.failed = inner.cloned();
        }
        Poll::Ready(result)
    }

    /// Returns the first error again, if there was one (W2).
    fn check(&self) -> io::Result<()> {
        self.failed.clone().map_or(Ok(()), |error| Err(error.into()))
    }
}

impl AsyncWrite for AsyncWriter {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let is_full = self.chunk.len() == CHUNK_BYTES;
        // If the future of a step has been dropped, that step covers only the bytes written before
        // it.
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
            self.pass(Then::Nothing);
        }
        let len = bytes.len().min(CHUNK_BYTES - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..len]);
        Poll::Ready(Ok(len))
    }

    /// Writes everything, like `std::io::Write::flush` of a [`Writer`].
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_ended && self.doing.is_none() {
            return Poll::Ready(self.check());
        }
        self.poll_step(context, Then::Flush).map_ok(drop)
    }

    /// Writes the rest and closes the file durably, or gives a replacement its final name.
    /// Repeating this is not an error.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_ended && self.doing.is_none() {
            return Poll::Ready(self.check());
        }
        self.is_ended = true;
        self.poll_step(context, Then::End).map_ok(drop)
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
        Poll::Ready(sought)
    }
}

impl Drop for AsyncWriter {
    fn drop(&mut self) {
        if !self.chunk.is_empty() && !self.is_ended {
            self.pass(Then::Nothing);
        }
    }
}
