//! The bodies of requests as they arrive, and answers: a code, a body that is complete or in
//! pieces, and whether to retry.

use super::exchange::Exchange;
use crate::refusals::Refusal;
use bytes::{Buf, Bytes};
use flate2::write::MultiGzDecoder;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use std::io::Write;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;
use tokio::task::yield_now;

/// The maximum decompressed size of a body: gzip can expand data by a factor of a thousand.
const BYTES_MAX: u64 = 1 << 30;
const BROKEN: Refusal = Refusal::Malformed("the body is not gzip");

/// The body of an answer.
#[derive(Debug)]
pub(super) struct Body {
    content: Content,
    /// Set if the request has been read completely. The exchange is then notified once the answer
    /// is written.
    exchange: Option<Arc<Exchange>>,
}

#[derive(Debug)]
enum Content {
    Whole(Bytes),
    Pieces(Pieces),
}

/// The pieces of a body. The body holds the receiving end.
pub(super) type Pieces = mpsc::Receiver<Result<Bytes, Broken>>;

/// An error that occurred while records were read. The answer is aborted, so that the client
/// notices.
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

    /// Arranges for `exchange` to be notified once the body is written.
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
    pub has_ended: bool,
    pub is_gzip: bool,
    /// The decoder of a compressed body, once its first bytes have arrived, and its pending input.
    gunzip: Option<Box<Gunzip>>,
    compressed: Bytes,
}

impl Upload {
    pub(super) fn new(incoming: Incoming) -> Upload {
        let has_ended = incoming.is_end_stream();
        let (is_gzip, gunzip, compressed) = (false, None, Bytes::new());
        Upload { incoming, has_ended, is_gzip, gunzip, compressed }
    }

    /// Returns a lower bound of the length of the body.
    pub(super) fn bytes_min(&self) -> u64 {
        if self.is_gzip { 0 } else { self.incoming.size_hint().lower() }
    }

    /// Returns the memory that the decoder and its input use.
    pub(super) fn held_bytes(&self) -> usize {
        let decoder = self.gunzip.as_ref().map_or(0, |_| Gunzip::MEMORY_BYTES);
        decoder + self.compressed.len()
    }

    /// Waits for the next bytes of the body, decompressed if necessary; `None` at the end.
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

    /// Waits for the next bytes as received; `None` at the end.
    async fn received(&mut self) -> Result<Option<Bytes>, Refusal> {
        while !self.has_ended {
            match self.incoming.frame().await {
                None => self.has_ended = true,
                // Trailers are ignored.
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

/// Decompresses gzip, one bounded piece at a time.
#[derive(Debug)]
struct Gunzip {
    decoder: MultiGzDecoder<Vec<u8>>,
    bytes: u64,
}

impl Gunzip {
    /// The memory that a decoder uses: 32 KiB each for input and output, and tables.
    const MEMORY_BYTES: usize = 76 << 10;

    fn new() -> Gunzip {
        Gunzip { decoder: MultiGzDecoder::new(Vec::new()), bytes: 0 }
    }

    /// Decompresses from the front of `compressed` and returns at most 32 KiB, possibly nothing. A
    /// few bytes may expand to thousands of pieces, so other tasks get to run before each.
    async fn next(&mut self, compressed: &mut Bytes) -> Result<Bytes, Refusal> {
        yield_now().await;
        let taken = self.decoder.write(compressed).map_err(|_| BROKEN)?;
        compressed.advance(taken);
        let piece = self.piece()?;
        if taken == 0 && piece.is_empty() { Err(BROKEN) } else { Ok(piece) }
    }

    /// Returns the remaining output at the end of the body. Fails if the gzip stream is incomplete.
    fn end(&mut self) -> Result<Bytes, Refusal> {
        self.decoder.try_finish().map_err(|_| BROKEN)?;
        self.piece()
    }

    fn piece(&mut self) -> Result<Bytes, Refusal> {
        let piece = std::mem::take(self.decoder.get_mut());
        self.bytes += piece.len() as u64;
        if self.bytes > BYTES_MAX { Err(Refusal::TooLong) } else { Ok(piece.into()) }
    }
}

pub(super) type Answer = Response<Body>;

/// The number of seconds after which the client should retry.
const RETRY_AFTER_S: HeaderValue = HeaderValue::from_static("1");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Returns a JSON answer on a single line, so that it is readable in a terminal.
pub(super) fn json_answer(status: StatusCode, value: &Value) -> Answer {
    let mut answer = Response::new(Body::whole(Bytes::from(format!("{value}\n"))));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, JSON);
    answer
}

/// Returns an answer that explains what is wrong with a request.
pub(super) fn wrong(status: StatusCode, because: &str) -> Answer {
    json_answer(status, &json!({ "error": because }))
}

/// Returns an answer that asks the client to repeat the request later.
pub(super) fn not_now(because: &str) -> Answer {
    later(wrong(StatusCode::SERVICE_UNAVAILABLE, because))
}

pub(super) fn wrong_method(allowed: &'static str) -> Answer {
    let because = format!("this path takes {allowed} only");
    let mut answer = wrong(StatusCode::METHOD_NOT_ALLOWED, &because);
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

/// Returns the answer to a request whose remaining records are refused. The `appended` records
/// before them are in the log, but are not acknowledged.
pub(super) fn refused(refusal: &Refusal, appended: u64) -> Answer {
    let status = status(refusal);
    let value = json!({ "error": refusal.to_string(), "appended": appended });
    let answer = json_answer(status, &value);
    if status == StatusCode::SERVICE_UNAVAILABLE { later(answer) } else { answer }
}

/// Returns the complete answer, including its head, for a request whose head did not arrive
/// completely.
pub(super) fn to_no_request(refusal: &Refusal) -> String {
    let text = format!("{}\n", json!({ "error": refusal.to_string() }));
    let status = status(refusal);
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{text}",
        text.len()
    )
}

/// Returns the answer to a request if only these lines were refused and all others are safe.
pub(super) fn partly(refusal: &Refusal, mut taken: Value, count: u64, lines: &[u64]) -> Answer {
    taken["error"] = format!("line {}: {refusal}", lines[0]).into();
    taken["refused"] = count.into();
    taken["refused_lines"] = lines.into();
    json_answer(status(refusal), &taken)
}

/// Returns the status code for a refusal. Clients such as fluent-bit (`plugins/out_http/http.c`)
/// and vector's sink drop their records after codes 400 to 499, except 408 and 429.
fn status(refusal: &Refusal) -> StatusCode {
    match refusal {
        Refusal::TooLong => StatusCode::PAYLOAD_TOO_LARGE,
        Refusal::Malformed(_) | Refusal::Unfit(_) => StatusCode::BAD_REQUEST,
        Refusal::Revoked => StatusCode::UNAUTHORIZED,
        Refusal::LongHead => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        Refusal::Silent | Refusal::Slow | Refusal::SlowHead | Refusal::Unread => {
            StatusCode::REQUEST_TIMEOUT
        }
        Refusal::Memory | Refusal::Log(_) | Refusal::Closed => StatusCode::SERVICE_UNAVAILABLE,
    }
}

fn later(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_S);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn other_tasks_have_their_turn_before_each_piece() {
        const BYTES: usize = 1 << 20;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&[b'\n'; BYTES]).unwrap();
        let mut compressed = Bytes::from(encoder.finish().unwrap());
        let (mut gunzip, mut bytes) = (Gunzip::new(), 0);
        let context = &mut Context::from_waker(Waker::noop());
        while !compressed.is_empty() {
            let mut next = pin!(gunzip.next(&mut compressed));
            assert!(next.as_mut().poll(context).is_pending());
            let Poll::Ready(piece) = next.poll(context) else { panic!("it waits for nothing") };
            let piece = piece.unwrap();
            assert!(piece.len() <= 32 << 10);
            bytes += piece.len();
        }
        assert_eq!(bytes + gunzip.end().unwrap().len(), BYTES);
    }
}
