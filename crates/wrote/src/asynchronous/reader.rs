//! A `Reader` that runs on a thread, on behalf of a task.

use super::{CHUNK_BYTES, Worker};
use std::io::{self, Read, Seek, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncSeek, ReadBuf};

enum Job {
    Fill(Vec<u8>),
    Seek(SeekFrom),
}

enum Done {
    Filled(Vec<u8>, io::Result<usize>),
    Sought(io::Result<u64>),
}

/// The reader that [`Reader::into_async`](crate::Reader::into_async) returns.
pub struct AsyncReader {
    worker: Worker<Job, Done>,
    /// The chunk from which the task reads. Its unread bytes are `from..to`.
    chunk: Vec<u8>,
    from: usize,
    to: usize,
    /// The offset of the next byte.
    position: u64,
    /// Whether the thread is filling the next chunk.
    is_filling: bool,
    /// The next chunk, if it has arrived, and the result of reading into it.
    next: Option<(Vec<u8>, io::Result<usize>)>,
    spare: Vec<u8>,
    is_seeking: bool,
}

impl AsyncReader {
    pub fn start(mut reader: impl Read + Seek + Send + 'static) -> io::Result<AsyncReader> {
        let position = reader.stream_position()?;
        let worker = Worker::start("wrote-reader", move |job| match job {
            Job::Fill(mut chunk) => {
                chunk.resize(CHUNK_BYTES, 0);
                let read = reader.read(&mut chunk);
                Done::Filled(chunk, read)
            }
            Job::Seek(to) => Done::Sought(reader.seek(to)),
        })?;
        let ((chunk, spare), (from, to)) = ((Vec::new(), Vec::new()), (0, 0));
        let (is_filling, next, is_seeking) = (false, None, false);
        Ok(AsyncReader { worker, chunk, from, to, position, is_filling, next, spare, is_seeking })
    }

    fn fill_next(&mut self) {
        self.is_filling = true;
        self.worker.send(Job::Fill(std::mem::take(&mut self.spare)));
    }

    /// Handles the thread's next result.
    fn poll_done(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match ready!(self.worker.poll(context))? {
            Done::Filled(chunk, read) => {
                self.is_filling = false;
                self.next = Some((chunk, read));
            }
            Done::Sought(sought) => {
                self.is_seeking = false;
                // If the seek failed, the bytes that were read ahead are still the next ones.
                self.position = sought?;
                (self.from, self.to) = (0, 0);
                self.spare = self.next.take().map_or(Vec::new(), |(chunk, _)| chunk);
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for AsyncReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if into.remaining() > 0 {
            let bytes = ready!(self.as_mut().poll_fill_buf(context))?;
            let len = bytes.len().min(into.remaining());
            into.put_slice(&bytes[..len]);
            self.consume(len);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncBufRead for AsyncReader {
    fn poll_fill_buf(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.get_mut();
        while this.is_seeking || this.from == this.to {
            if this.is_seeking {
                ready!(this.poll_done(context))?;
                continue;
            }
            let Some((chunk, read)) = this.next.take() else {
                if !this.is_filling {
                    this.fill_next();
                }
                ready!(this.poll_done(context))?;
                continue;
            };
            this.spare = std::mem::replace(&mut this.chunk, chunk);
            match read? {
                0 => break,
                len => (this.from, this.to) = (0, len),
            }
            this.fill_next();
        }
        Poll::Ready(Ok(&this.chunk[this.from..this.to]))
    }

    fn consume(mut self: Pin<&mut Self>, len: usize) {
        let len = len.min(self.to - self.from);
        self.from += len;
        self.position += len as u64;
    }
}

impl AsyncSeek for AsyncReader {
    fn start_seek(mut self: Pin<&mut Self>, to: SeekFrom) -> io::Result<()> {
        if self.is_seeking {
            return Err(io::Error::other("another seek is under way"));
        }
        let to = match to {
            // The position of the thread's reader is ahead of the task's.
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

    fn poll_complete(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<u64>> {
        while self.is_seeking {
            ready!(self.poll_done(context))?;
        }
        Poll::Ready(Ok(self.position))
    }
}
