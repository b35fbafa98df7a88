//! `AsyncReader`: a `Reader` behind a thread.

use super::worker::Worker;
use crate::Reader;
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::task::{Context, Poll, ready};

/// The length of a chunk.
const CHUNK_BYTES: usize = 128 << 10;
/// The task reads one chunk while the thread fills the others.
const CHUNKS: usize = 3;

enum Job {
    Fill(Vec<u8>),
    Seek(SeekFrom),
}

enum Done {
    Filled(Vec<u8>, io::Result<usize>),
    Sought(io::Result<u64>),
}

/// Reads a file in a task: a [`Reader`] on a thread, created by [`Reader::into_async`].
///
/// Implements `AsyncRead`, `AsyncBufRead` and `AsyncSeek` of tokio (feature `tokio`) and the traits
/// of `futures-io` (feature `futures-io`). Works on any runtime, and without one.
///
/// A poll never waits for the disk: the thread reads up to two chunks of 128 KiB ahead, and wakes
/// the task. An idle reader uses no CPU time. Uses 384 KiB more memory than a [`Reader`]. Dropping
/// it ends the thread after the current read.
///
/// Errors are returned at their position, as by a [`Reader`].
pub struct AsyncReader {
    worker: Worker<Job, Done>,
    chunk: Vec<u8>,
    /// The start of the unread bytes in the chunk.
    from: usize,
    to: usize,
    /// The position of the next byte.
    position: u64,
    /// The number of chunks that the thread has.
    filling: usize,
    /// Chunks that arrived during a seek, needed if it fails.
    kept: VecDeque<(Vec<u8>, io::Result<usize>)>,
    spare: Vec<Vec<u8>>,
    is_seeking: bool,
}

impl Reader {
    /// Starts a thread that reads for a task. Fails if no thread can be started.
    pub fn into_async(mut self) -> io::Result<AsyncReader> {
        let position = self.stream_position()?;
        let mut reader = self;
        let worker = Worker::start("wrote-reader", move |job| match job {
            Job::Fill(mut chunk) => {
                chunk.resize(CHUNK_BYTES, 0);
                let read = reader.read(&mut chunk);
                Done::Filled(chunk, read)
            }
            Job::Seek(to) => Done::Sought(reader.seek(to)),
        })?;
        Ok(AsyncReader {
            worker,
            chunk: Vec::new(),
            from: 0,
            to: 0,
            position,
            filling: 0,
            kept: VecDeque::new(),
            spare: (0..CHUNKS).map(|_| Vec::new()).collect(),
            is_seeking: false,
        })
    }
}

impl AsyncReader {
    /// Waits for bytes; empty at the end of the file.
    pub(super) fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        if self.is_seeking {
            ready!(self.poll_sought(context))?;
        }
        while self.from == self.to {
            let used = std::mem::take(&mut self.chunk);
            if used.capacity() > 0 {
                self.spare.push(used);
            }
            // The task keeps one.
            while self.filling + 1 < CHUNKS
                && let Some(chunk) = self.spare.pop()
            {
                self.filling += 1;
                self.worker.send(Job::Fill(chunk));
            }
            match ready!(self.poll_filled(context)) {
                Ok(0) => break,
                Ok(len) => (self.from, self.to) = (0, len),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(&self.chunk[self.from..self.to]))
    }

    fn poll_filled(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if let Some((chunk, read)) = self.kept.pop_front() {
            self.chunk = chunk;
            return Poll::Ready(read);
        }
        match ready!(self.worker.poll_next(context)) {
            Some(Done::Filled(chunk, read)) => {
                self.filling -= 1;
                self.chunk = chunk;
                Poll::Ready(read)
            }
            Some(Done::Sought(_)) | None => Poll::Ready(Err(self.worker.gone())),
        }
    }

    pub(super) fn take(&mut self, len: usize) {
        let len = len.min(self.to - self.from);
        self.from += len;
        self.position += len as u64;
    }

    /// Starts a seek, to be completed by [`AsyncReader::poll_sought`].
    pub(super) fn start_seek(&mut self, to: SeekFrom) -> io::Result<()> {
        if self.is_seeking {
            return Err(io::Error::other("another seek is under way"));
        }
        let to = match to {
            // The thread's reader is ahead of the task.
            SeekFrom::Current(by) => {
                let place = self.position.checked_add_signed(by);
                SeekFrom::Start(place.ok_or(io::ErrorKind::InvalidInput)?)
            }
            to => to,
        };
        if let SeekFrom::Start(place) = to {
            let begin = self.position - self.from as u64;
            let in_chunk = place.checked_sub(begin).filter(|&at| at <= self.to as u64);
            if let Some(at) = in_chunk {
                (self.from, self.position) = (at as usize, place);
                return Ok(());
            }
        }
        self.is_seeking = true;
        self.worker.send(Job::Seek(to));
        Ok(())
    }

    /// Returns whether a seek is in progress.
    #[cfg(feature = "futures-io")]
    pub(super) fn is_seeking(&self) -> bool {
        self.is_seeking
    }

    pub(super) fn poll_sought(&mut self, context: &mut Context<'_>) -> Poll<io::Result<u64>> {
        while self.is_seeking {
            match ready!(self.worker.poll_next(context)) {
                Some(Done::Filled(chunk, read)) => {
                    self.filling -= 1;
                    self.kept.push_back((chunk, read));
                }
                Some(Done::Sought(sought)) => {
                    self.is_seeking = false;
                    self.position = sought?;
                    (self.from, self.to) = (0, 0);
                    self.spare.extend(self.kept.drain(..).map(|(chunk, _)| chunk));
                }
                None => {
                    self.is_seeking = false;
                    return Poll::Ready(Err(self.worker.gone()));
                }
            }
        }
        Poll::Ready(Ok(self.position))
    }
}

impl fmt::Debug for AsyncReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncReader").field("position", &self.position).finish_non_exhaustive()
    }
}
