//! The traits of the crate `futures-io`.

use super::{AsyncReader, AsyncWriter};
use futures_io::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite};
use std::io::{self, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

impl AsyncRead for AsyncReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        if into.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let bytes = ready!(self.poll_fill(context))?;
        let len = bytes.len().min(into.len());
        into[..len].copy_from_slice(&bytes[..len]);
        self.take(len);
        Poll::Ready(Ok(len))
    }
}

impl AsyncBufRead for AsyncReader {
    fn poll_fill_buf(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        self.get_mut().poll_fill(context)
    }

    fn consume(mut self: Pin<&mut Self>, len: usize) {
        self.take(len);
    }
}

impl AsyncSeek for AsyncReader {
    fn poll_seek(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: SeekFrom,
    ) -> Poll<io::Result<u64>> {
        if !self.is_seeking() {
            self.start_seek(to)?;
        }
        self.poll_sought(context)
    }
}

impl AsyncWrite for AsyncWriter {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        AsyncWriter::poll_write(&mut self, context, bytes)
    }

    /// Writes everything, like `std::io::Write::flush` of a [`crate::Writer`].
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWriter::poll_flush(&mut self, context)
    }

    /// Like [`AsyncWriter::finish`].
    fn poll_close(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_end(context, true)
    }
}

impl AsyncSeek for AsyncWriter {
    fn poll_seek(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: SeekFrom,
    ) -> Poll<io::Result<u64>> {
        if !self.is_seeking() {
            ready!(self.poll_idle(context))?;
            self.start_seek(to)?;
        }
        self.poll_sought(context)
    }
}
