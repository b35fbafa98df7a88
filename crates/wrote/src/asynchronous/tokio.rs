//! tokio's traits.

use super::{AsyncReader, AsyncWriter};
use std::io::{self, SeekFrom};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncSeek, AsyncWrite, ReadBuf};

impl AsyncRead for AsyncReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if into.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let bytes = ready!(self.poll_fill(context))?;
        let len = bytes.len().min(into.remaining());
        into.put_slice(&bytes[..len]);
        self.take(len);
        Poll::Ready(Ok(()))
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
    fn start_seek(mut self: Pin<&mut Self>, to: SeekFrom) -> io::Result<()> {
        AsyncReader::start_seek(&mut self, to)
    }

    fn poll_complete(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<u64>> {
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
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_end(context, true)
    }
}

impl AsyncSeek for AsyncWriter {
    fn start_seek(mut self: Pin<&mut Self>, to: SeekFrom) -> io::Result<()> {
        AsyncWriter::start_seek(&mut self, to)
    }

    fn poll_complete(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<u64>> {
        self.poll_sought(context)
    }
}
