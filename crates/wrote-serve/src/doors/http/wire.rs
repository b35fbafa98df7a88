//! The stream of a connection, as hyper sees it: its bytes counted, its writes timed.

use super::exchange::Exchange;
use crate::limits::Refusal;
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

/// Bytes of the first read of a request at most.
const READ_BYTES: usize = 16 << 10;

thread_local! {
    /// The buffer of every first read of a thread: an idle connection has none.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES]);
}

/// A client's stream.
#[derive(Debug)]
pub(super) struct Wire<S> {
    stream: S,
    exchange: Arc<Exchange>,
    /// Bytes that were read and are given before all others.
    ahead: Bytes,
    /// The client's time for reading what was written, while the stream takes no more.
    unread: Option<Pin<Box<Sleep>>>,
}

impl<S: Stream> Wire<S> {
    pub(super) fn new(stream: S, exchange: Arc<Exchange>) -> Wire<S> {
        Wire { stream, exchange, ahead: Bytes::new(), unread: None }
    }

    /// Puts back bytes that were read and belong to the next request.
    pub(super) fn put_back(&mut self, bytes: &[u8]) {
        // A part of a buffer, even an empty one, would keep the whole.
        self.ahead = [bytes, &self.ahead].concat().into();
    }

    /// Tells whether bytes of the next request were read.
    pub(super) fn has_ahead(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// Tells whether bytes wait in the kernel.
    pub(super) fn has_unread(&mut self) -> bool {
        self.stream.has_unread()
    }

    /// Waits for the first bytes of a request; `false` at the client's end.
    pub(super) async fn fill(&mut self) -> bool {
        self.ahead = poll_fn(|context| self.poll_some(context, Bytes::copy_from_slice)).await;
        self.has_ahead()
    }

    /// Reads what comes until the client's end, and forgets it.
    pub(super) async fn discard(&mut self) {
        while poll_fn(|context| self.poll_some(context, |bytes| bytes.len())).await > 0 {}
    }

    /// Reads once. At the client's end there are no bytes.
    fn poll_some<T>(
        &mut self,
        context: &mut Context<'_>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Poll<T> {
        SCRATCH.with_borrow_mut(|scratch| {
            let mut buffer = ReadBuf::new(scratch);
            let outcome = ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer));
            // A broken stream is one that ended.
            Poll::Ready(take(if outcome.is_ok() { buffer.filled() } else { &[] }))
        })
    }

    /// Fails once the client of an answer without an end has closed its side: the next write, which
    /// would find out, may never come.
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

    /// Cuts the stream off, for a reason that the session counts.
    fn cut(&self, refusal: Refusal) -> io::Error {
        self.exchange.refuse(refusal);
        ErrorKind::ConnectionAborted.into()
    }

    /// Passes on the outcome of a write, unless the client has left answers unread for too long.
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
        self.exchange.set_flushed(false);
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.timed(outcome, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
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
