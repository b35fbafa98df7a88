//! Bodies: of requests as they arrive, of answers in whole or in pieces.

use super::exchange::Exchange;
use super::gunzip::Gunzip;
use crate::limits::Refusal;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// The body of an answer.
#[derive(Debug)]
pub(super) struct Body {
    content: Content,
    /// Set if the request was read completely; the exchange is notified when the answer is written.
    exchange: Option<Arc<Exchange>>,
}

#[derive(Debug)]
enum Content {
    Whole(Bytes),
    Pieces(Pieces),
}

/// Pieces of a body. The body holds the receiving end.
pub(super) type Pieces = mpsc::Receiver<Result<Bytes, Broken>>;

/// The records could not be read to the end. The answer is aborted, so that the client notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the records could not be read to the end")]
pub(super) struct Broken;

impl Body {
    pub(super) fn whole(bytes: Bytes) -> Body {
        Body { content: Content::Whole(bytes), exchange: None }
    }

    pub(super) fn pieces(pieces: Pieces) -> Body {
        Body { content: Content::Pieces(pieces), exchange: None }
    }

    /// Notifies `exchange` when the body is written.
    pub(super) fn then_ends(&mut self, exchange: Arc<Exchange>) {
        self.exchange = Some(exchange);
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match &mut self.content {
            Content::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Content::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Content::Pieces(pieces) => {
                pieces.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.content, Content::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Pieces(_) => SizeHint::default(),
        }
    }
}

/// The body of a request.
#[derive(Debug)]
pub(super) struct Upload {
    incoming: Incoming,
    has_ended: bool,
    is_gzip: bool,
    /// The decoder of a compressed body, from its first bytes on, and its pending input.
    gunzip: Option<Box<Gunzip>>,
    compressed: Bytes,
}

impl Upload {
    pub(super) fn new(incoming: Incoming) -> Upload {
        let has_ended = incoming.is_end_stream();
        let (is_gzip, gunzip, compressed) = (false, None, Bytes::new());
        Upload { incoming, has_ended, is_gzip, gunzip, compressed }
    }

    /// Treats the body as compressed with gzip.
    pub(super) fn gunzip(&mut self) {
        self.is_gzip = true;
    }

    /// Returns whether the body was read to its end.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns the minimum length of the body.
    pub(super) fn bytes_min(&self) -> u64 {
        if self.is_gzip { 0 } else { self.incoming.size_hint().lower() }
    }

    /// Returns the memory of the decoder and its input.
    pub(super) fn held_bytes(&self) -> usize {
        let decoder = self.gunzip.as_ref().map_or(0, |_| Gunzip::MEMORY_BYTES);
        decoder + self.compressed.len()
    }

    /// Waits for the next bytes; `None` at the end.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, Refusal> {
        loop {
            if let Some(gunzip) = &mut self.gunzip {
                while !self.compressed.is_empty() {
                    let piece = gunzip.next(&mut self.compressed).await?;
                    if !piece.is_empty() {
                        return Ok(Some(piece));
                    }
                }
            }
            let Some(chunk) = self.received().await? else { break };
            if !self.is_gzip {
                return Ok(Some(chunk));
            }
            self.gunzip.get_or_insert_with(|| Box::new(Gunzip::new()));
            self.compressed = chunk;
        }
        if !std::mem::take(&mut self.is_gzip) {
            return Ok(None);
        }
        let last = self.gunzip.take().unwrap_or_else(|| Box::new(Gunzip::new())).end()?;
        Ok((!last.is_empty()).then_some(last))
    }

    /// Waits for the next bytes as received.
    async fn received(&mut self) -> Result<Option<Bytes>, Refusal> {
        while !self.has_ended {
            match self.incoming.frame().await {
                None => self.has_ended = true,
                // Trailer fields are ignored.
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(chunk) => return Ok(Some(chunk)),
                    Err(_) => continue,
                },
                Some(Err(_)) => return Err(Refusal::Malformed("the body is broken")),
            }
        }
        Ok(None)
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if let Some(exchange) = &self.exchange {
            exchange.end();
        }
    }
}
