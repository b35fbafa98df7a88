//! The stream as hyper sees it, which counts bytes and limits the time of writes.

use super::exchange::Exchange;
use crate::refusals::Refusal;
use crate::stream::Stream;
use bytes::{Buf, Bytes};
use std::cell::RefCell;
use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// The maximum size of the first read of a request.
const READ_BYTES: usize = 16 << 10;

thread_local! {
    /// The buffer that all first reads of a thread share, so that idle connections need none.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

/// A client's stream.
#[derive(Debug)]
pub(super) struct Wire<S> {
    stream: S,
    exchange: Arc<Exchange>,
    /// Bytes that were read ahead, and are returned by the next read.
    ahead: Bytes,
    /// The deadline for the client to read what was written, set while the stream accepts no more.
    unread: Option<Pin<Box<Sleep>>>,
}

impl<S: Stream> Wire<S> {
    pub(super) fn new(stream: S, exchange: Arc<Exchange>) -> Wire<S> {
        Wire { stream, exchange, ahead: Bytes::new(), unread: None }
    }

    /// Returns bytes of the next request to the stream.
    pub(super) fn put_back(&mut self, bytes: &[u8]) {
        // A slice of a buffer, even an empty one, would keep the whole buffer alive.
        self.ahead = [bytes, &self.ahead].concat().into();
    }

    /// Returns whether bytes of the next request were read ahead.
    pub(super) fn has_ahead(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// Returns whether the stream or the kernel has bytes that were not read.
    pub(super) fn has_unread(&mut self) -> bool {
        self.stream.has_unread()
    }

    /// Waits for the first bytes of a request; `false` if the client has closed the stream.
    pub(super) async fn fill(&mut self) -> bool {
        self.ahead = poll_fn(|context| self.poll_some(context, Bytes::copy_from_slice)).await;
        self.has_ahead()
    }

    /// Reads and discards data until the client closes the stream.
    pub(super) async fn discard(&mut self) {
        while poll_fn(|context| self.poll_some(context, |bytes| bytes.len())).await > 0 {}
    }

    /// Reads once. Passes no bytes to `take` if the client has closed the stream.
    fn poll_some<T>(
        &mut self,
        context: &mut Context<'_>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Poll<T> {
        SCRATCH.with_borrow_mut(|scratch| {
            let mut buffer = ReadBuf::new(scratch);
            let outcome = ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer));
            // A broken stream is treated as ended.
            Poll::Ready(take(if outcome.is_ok() { buffer.filled() } else { &[] }))
        })
    }

    /// Fails once a client that follows new records has closed its side. A write would reveal that,
    /// too, but there may never be another write.
    fn check_follower(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if !self.exchange.follows() || self.has_ahead() {
            return Ok(());
        }
        if let Poll::Ready(ahead) = self.poll_some(context, Bytes::copy_from_slice) {
            self.ahead = ahead;
            if !self.has_ahead() {
                return Err(ErrorKind::ConnectionAborted.into());
            }
        }
        Ok(())
    }

    /// Notes the reason, which the session counts, and returns the error that cuts the stream.
    fn cut(&self, refusal: Refusal) -> io::Error {
        self.exchange.refuse(refusal);
        ErrorKind::ConnectionAborted.into()
    }

    /// Returns the outcome of a write, or an error if the client has left answers unread for too
    /// long.
    fn timed<T>(
        &mut self,
        outcome: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.unread = None;
            return outcome;
        }
        let limit = self.exchange.limits().unread_time;
        let unread = self.unread.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(unread.as_mut().poll(context));
        Poll::Ready(Err(self.cut(Refusal::Unread)))
    }
}

impl<S: Stream> AsyncRead for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        if self.has_ahead() {
            let bytes = self.ahead.len().min(buffer.remaining());
            buffer.put_slice(&self.ahead[..bytes]);
            self.ahead.advance(bytes);
            if self.ahead.is_empty() {
                self.ahead = Bytes::new();
            }
        } else {
            ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        }
        let bytes = buffer.filled().len() - before;
        self.exchange.count_head(bytes);
        Poll::Ready(Ok(()))
    }
}

impl<S: Stream> AsyncWrite for Wire<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.exchange.awaits_head() {
            // If hyper can't read a head, its own answer gives no reason. It is discarded here, and
            // the session answers.
            return Poll::Ready(Ok(bytes.len()));
        }
        self.exchange.set_flushed(false);
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.timed(outcome, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.exchange.awaits_head() {
            return Poll::Ready(Ok(slices.iter().map(|slice| slice.len()).sum()));
        }
        self.exchange.set_flushed(false);
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.timed(outcome, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_flush(context);
        self.exchange.set_flushed(outcome.is_ready());
        self.check_follower(context)?;
        self.timed(outcome, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        self.timed(outcome, context)
    }
}
