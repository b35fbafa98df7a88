//! `POST /append`: appends the records of a body, and answers once all of them are safe.

use super::body::{Answer, Upload, json_answer, partly, refused, wrong};
use super::exchange::Exchange;
use super::query::{self, By, Coding, Piece, Pieces};
use crate::channel::Turn;
use crate::metrics::Paused;
use crate::refusals::{Reason, Refusal};
use crate::stamp;
use crate::target::Target;
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{ACCEPT_ENCODING, HeaderValue};
use hyper::http::request::Parts;
use serde_json::json;
use std::fmt::Display;
use std::time::Instant;
use tokio::time::{Instant as Moment, timeout_at};
use wrote::Log;

/// The maximum number of line numbers that an answer lists.
const NAMED_LINES_MAX: usize = 100;

/// Answers a request to append.
pub(super) async fn append(
    parts: &Parts,
    token: &[u8],
    body: &mut Upload,
    exchange: &Exchange,
) -> Answer {
    let reject = |reason, because: &dyn Display| {
        exchange.port.reject(exchange.client(), reason, because);
    };
    if query::is_transformed(parts) {
        reject(Reason::Malformed, &"an unknown Transfer-Encoding");
        let because = "the only Transfer-Encoding is chunked: send Content-Encoding: gzip";
        return wrong(StatusCode::NOT_IMPLEMENTED, because);
    }
    match query::coding(parts) {
        Coding::None => {}
        Coding::Gzip => body.is_gzip = true,
        Coding::Other => {
            reject(Reason::Malformed, &"an unknown Content-Encoding");
            let because = "the only Content-Encoding is gzip";
            let mut answer = wrong(StatusCode::UNSUPPORTED_MEDIA_TYPE, because);
            answer.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
            return answer;
        }
    }
    let by = match query::by(parts) {
        Ok(by) => by,
        Err(because) => {
            reject(Reason::Malformed, &because);
            return wrong(StatusCode::BAD_REQUEST, &because);
        }
    };
    let mut appended = 0;
    match take(by, token, body, exchange, &mut appended).await {
        Ok(Taken { first, next, refused }) => {
            let value = json!({ "first": first, "next": next, "appended": appended });
            match refused.because {
                None => json_answer(StatusCode::OK, &value),
                Some(refusal) => partly(&refusal, value, refused.count, &refused.lines),
            }
        }
        Err(refusal) => {
            reject(refusal.reason(), &refusal);
            refused(&refusal, appended)
        }
    }
}

/// The records of a body that are in the log and safe.
struct Taken {
    /// The first sequence, and the sequence after the last one.
    first: u64,
    next: u64,
    refused: RefusedLines,
}

/// The lines of a body that were refused.
#[derive(Default)]
struct RefusedLines {
    count: u64,
    /// The numbers of the first refused lines, counted from 1.
    lines: Vec<u64>,
    /// Why the first of them was refused.
    because: Option<Refusal>,
}

/// Appends the records of a body as they arrive, and waits until the last one is safe.
async fn take(
    by: By,
    token: &[u8],
    body: &mut Upload,
    exchange: &Exchange,
    appended: &mut u64,
) -> Result<Taken, Refusal> {
    let port = &exchange.port;
    let limits = exchange.limits();
    if !port.channel.takes_messages() {
        return Err(Refusal::Closed);
    }
    let log = port.channel.log().ok_or(Refusal::Closed)?;
    // A long body is refused early, so that a client that sent `Expect: 100-continue` need not send
    // the body.
    if by == By::Body && body.bytes_min() > limits.message_bytes as u64 {
        return Err(Refusal::TooLong);
    }
    let mut pieces = Pieces::new(by, limits.message_bytes);
    let mut batch = Batch::new(log, exchange);
    exchange.hold(0)?;
    let mut due = Moment::now() + limits.message_time;
    while let Some(chunk) = timeout_at(due, body.chunk()).await.map_err(|_| Refusal::Slow)?? {
        if !exchange.lets_in(token) {
            return Err(Refusal::Revoked);
        }
        let before = batch.records;
        let outcome = batch.take(by, &chunk, &mut pieces, body.held_bytes()).await;
        *appended = batch.records;
        outcome?;
        exchange.hold(pieces.kept_bytes() + body.held_bytes())?;
        if batch.records > before {
            due = Moment::now() + exchange.limits().message_time;
        }
    }
    batch.take_piece(by, pieces.rest(), 0).await?;
    batch.turn = None;
    batch.count();
    *appended = batch.records;
    let (first, next) = batch.acknowledge().await?;
    Ok(Taken { first, next, refused: std::mem::take(&mut batch.refused) })
}

/// The records of one request.
struct Batch<'a> {
    log: Log,
    exchange: &'a Exchange,
    records: u64,
    bytes: u64,
    /// The number of records and bytes that have been counted in the metrics.
    counted: (u64, u64),
    first: Option<(u64, Instant)>,
    last: u64,
    is_acknowledged: bool,
    /// The number of lines so far.
    lines: u64,
    refused: RefusedLines,
    /// The right to append before all waiting senders, for the rest of a chunk.
    turn: Option<Turn>,
}

impl<'a> Batch<'a> {
    fn new(log: Log, exchange: &'a Exchange) -> Batch<'a> {
        Batch {
            log,
            exchange,
            records: 0,
            bytes: 0,
            counted: (0, 0),
            first: None,
            last: 0,
            is_acknowledged: false,
            lines: 0,
            refused: RefusedLines::default(),
            turn: None,
        }
    }

    /// Appends the records that are completed by `chunk`.
    async fn take(
        &mut self,
        by: By,
        chunk: &Bytes,
        pieces: &mut Pieces,
        body_bytes: usize,
    ) -> Result<(), Refusal> {
        let held_bytes = chunk.len() + body_bytes;
        let mut rest = &chunk[..];
        let outcome = loop {
            match pieces.next(&mut rest) {
                Ok(Some(piece)) => {
                    if let Err(refusal) = self.take_piece(by, piece, held_bytes).await {
                        break Err(refusal);
                    }
                }
                Ok(None) => break Ok(()),
                Err(refusal) => break Err(refusal),
            }
        };
        self.turn = None;
        self.count();
        outcome
    }

    /// Appends a record. A line that the log can never hold is skipped, so that it does not block
    /// later lines.
    async fn take_piece(
        &mut self,
        by: By,
        piece: Piece<'_>,
        held_bytes: usize,
    ) -> Result<(), Refusal> {
        self.lines += 1;
        let outcome = match piece {
            Piece::Record(record) => self.append(record, held_bytes).await,
            Piece::TooLong => Err(Refusal::TooLong),
        };
        match outcome {
            Err(refusal @ (Refusal::TooLong | Refusal::Unfit(_))) if by == By::Lines => {
                let exchange = self.exchange;
                exchange.port.reject(exchange.client(), refusal.reason(), &refusal);
                self.refused.add(self.lines, refusal);
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Appends a record once there is room. `held_bytes` are accounted for during the wait.
    async fn append(&mut self, record: &[u8], held_bytes: usize) -> Result<(), Refusal> {
        if record.is_empty() {
            return Ok(());
        }
        let port = &self.exchange.port;
        let stamped = stamp::record(self.exchange.stamper.as_deref(), record);
        loop {
            if port.channel.turns.lets(self.turn.as_ref())
                && let Some(ticket) =
                    self.log.try_append(&[&stamped]).map_err(|error| self.refusal(error))?
            {
                self.last = ticket.sequence();
                break;
            }
            self.exchange.hold(held_bytes + record.len())?;
            let _paused = Paused::of(&port.metrics);
            self.exchange.account().set_paused(true);
            let log = Target::Log(self.log.clone());
            let waited = port.channel.turns.wait(&mut self.turn, &log).await;
            self.exchange.account().set_paused(false);
            waited.map_err(Refusal::Log)?;
        }
        self.first.get_or_insert_with(|| (self.last, Instant::now()));
        self.records += 1;
        self.bytes += record.len() as u64;
        Ok(())
    }

    fn refusal(&self, error: wrote::Error) -> Refusal {
        let is_well = self.log.check().is_ok() && self.exchange.port.channel.takes_messages();
        Refusal::by_log(error, is_well)
    }

    /// Updates the metrics with the records appended since the last call.
    fn count(&mut self) {
        let port = &self.exchange.port;
        let (records, bytes) = (self.records - self.counted.0, self.bytes - self.counted.1);
        if records > 0 {
            port.metrics.take(Some(port.listen.ack), records, bytes);
            self.counted = (self.records, self.bytes);
        }
    }

    /// Waits until every record has reached the listener's level (W1). Once a record is durable,
    /// all records before it are too (W9).
    async fn acknowledge(&mut self) -> Result<(u64, u64), Refusal> {
        let port = &self.exchange.port;
        let level = port.listen.ack;
        let Some((first, since)) = self.first else {
            let next = self.log.stats().next_sequence;
            return Ok((next, next));
        };
        if level.reached(&self.log) <= self.last {
            Target::Log(self.log.clone()).ticket(level, self.last).await.map_err(Refusal::Log)?;
        }
        port.metrics.ack_durations.observe(since.elapsed());
        port.metrics.acknowledge(level, self.records);
        self.is_acknowledged = true;
        Ok((first, self.last + 1))
    }
}

impl RefusedLines {
    fn add(&mut self, line: u64, refusal: Refusal) {
        self.count += 1;
        if self.lines.len() < NAMED_LINES_MAX {
            self.lines.push(line);
        }
        self.because.get_or_insert(refusal);
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.count();
        if !self.is_acknowledged {
            self.exchange.port.metrics.forget(self.records);
        }
        self.exchange.release();
    }
}
