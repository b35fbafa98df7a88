//! `GET /records`: returns records that begin at a sequence or a time, and follows new ones.
//!
//! A client gets only records that have reached the listener's level. A record that a client has
//! read therefore keeps its sequence, so that the client can resume after any crash.

use super::body::{Answer, Body, Broken, Pieces, json_answer, not_now, wrong};
use super::exchange::Exchange;
use super::query::{self, Begin, Layout, Wanted};
use crate::port::Port;
use crate::refusals::Reason;
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Response, StatusCode};
use serde_json::json;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use wrote::{Error, Log, LogReader};

/// The number of bytes of records that are read at a time, unless a single record is longer.
const PIECE_BYTES: usize = 64 << 10;
/// The time limit for finding a record that is known to be in the log.
const RECORD_PATIENCE: Duration = Duration::from_secs(10);
/// The time limit for waiting for a reader slot.
const PLACE_PATIENCE: Duration = Duration::from_secs(10);
/// The time after which a reader gives up its slot if it has to wait, for records or for its
/// client. A busy reader gives it up after this time if no other slot is free.
const PLACE_TIME: Duration = Duration::from_millis(100);
/// The pause after a failure of the log.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
const FIRST_SEQUENCE: HeaderName = HeaderName::from_static("wrote-first-sequence");
/// The header with the sequence at which a client continues after an answer.
const NEXT_SEQUENCE: HeaderName = HeaderName::from_static("wrote-next-sequence");

/// Answers a request to read records.
pub(super) async fn records(parts: &Parts, token: &[u8], exchange: &Arc<Exchange>) -> Answer {
    let port = &exchange.port;
    let refuse = |reason, answer| {
        port.refuse(exchange.client(), reason, "GET /records was refused");
        answer
    };
    let wanted = match query::wanted(parts) {
        Ok(wanted) => wanted,
        Err(because) => {
            return refuse(Reason::Malformed, wrong(StatusCode::BAD_REQUEST, &because));
        }
    };
    let Some(log) = port.channel.log() else {
        return refuse(Reason::Log, not_now("the log has failed"));
    };
    let Ok(place) = timeout(PLACE_PATIENCE, Place::next(port)).await else {
        return refuse(Reason::Memory, not_now("too many clients are reading"));
    };
    match begin(wanted, &log, token, exchange, place).await {
        Ok(answer) => answer,
        Err(Failure::Removed { first }) => {
            let because = format!("the first record that still exists is {first}");
            json_answer(StatusCode::GONE, &json!({ "error": because, "first": first }))
        }
        Err(Failure::HasNoTimes(because)) => {
            refuse(Reason::Malformed, wrong(StatusCode::BAD_REQUEST, &because))
        }
        Err(Failure::Log(error)) => refuse(Reason::Log, not_now(&error.to_string())),
        Err(Failure::Memory) => refuse(Reason::Memory, not_now("too many answers are unread")),
    }
}

enum Failure {
    /// Retention has removed the requested record.
    Removed {
        first: u64,
    },
    /// The request contains a time, but the log has no times.
    HasNoTimes(String),
    Log(Error),
    /// The memory for unsent answers is exhausted, and this client holds the largest part of it.
    Memory,
}

/// Begins an answer after reading its first records, because only then is it known that they exist.
async fn begin(
    wanted: Wanted,
    log: &Log,
    token: &[u8],
    exchange: &Arc<Exchange>,
    place: Place,
) -> Result<Answer, Failure> {
    let port = &exchange.port;
    let stats = log.stats();
    if matches!(wanted.begin, Begin::At(from) if from < stats.first_sequence) {
        return Err(Failure::Removed { first: stats.first_sequence });
    }
    let present = port.listen.ack.present(log).await;
    let (from, reader) = match wanted.begin {
        Begin::At(from) => (from, None),
        Begin::Since(time) => since(log, time, wanted.follows).await?,
    };
    let layout = wanted.layout;
    let end = from.saturating_add(wanted.limit);
    let mut reading = Reading {
        reader,
        layout,
        follows: wanted.follows,
        next: from,
        known: from.max(present).min(end),
        end,
        exchange: exchange.clone(),
        token: token.into(),
        place: Some(place),
    };
    let known = reading.known;
    let piece = reading.piece().await?;
    if reading.follows {
        exchange.follow();
    }
    let body = if reading.next == reading.end || reading.next == known && !reading.follows {
        Body::whole(exchange.hold_answer(piece).map_err(|_| Failure::Memory)?)
    } else {
        Body::pieces(reading.go_on(piece))
    };
    let mut answer = Response::new(body);
    let kind = match layout {
        Layout::Lines => "text/plain",
        Layout::U32 => "application/octet-stream",
    };
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(FIRST_SEQUENCE, HeaderValue::from(from));
    if !wanted.follows {
        headers.insert(NEXT_SEQUENCE, HeaderValue::from(known));
    }
    Ok(answer)
}

/// Finds the first record written at or after `time`, or else the end of the log. Returns the
/// sequence, and a reader positioned there.
async fn since(
    log: &Log,
    time: SystemTime,
    follows: bool,
) -> Result<(u64, Option<LogReader>), Failure> {
    let log = log.clone();
    let find = move || {
        let mut reader = log.reader(0)?;
        if follows {
            reader = reader.following()?;
        }
        reader.seek_time(time).map_err(|error| match error {
            Error::Refused { .. } => Failure::HasNoTimes(error.to_string()),
            error => Failure::Log(error),
        })?;
        // Sequences without a record may precede the first record.
        let first = reader.next_within(Duration::ZERO)?.map(|record| record.sequence);
        let from = first.unwrap_or(reader.next_sequence());
        reader.seek(from)?;
        Ok((from, Some(reader)))
    };
    // The search blocks, because it reads from the disk.
    spawn_blocking(find).await.unwrap_or(Err(Failure::Log(Error::Interrupted)))
}

struct Reading {
    reader: Option<LogReader>,
    layout: Layout,
    follows: bool,
    next: u64,
    /// The sequence before which records may be read.
    known: u64,
    /// The sequence after the last requested one.
    end: u64,
    exchange: Arc<Exchange>,
    /// The request's token, which may be revoked during the read.
    token: Box<[u8]>,
    /// The reader slot; `None` while no reader is open.
    place: Option<Place>,
}

/// A reader slot. Each reader has its own buffers (W8).
struct Place {
    _permit: OwnedSemaphorePermit,
    since: Instant,
}

impl Place {
    /// Waits for a reader slot, in order of arrival.
    async fn next(port: &Port) -> Place {
        let permit = port.readers.clone().acquire_owned().await.expect("it is never closed");
        Place { _permit: permit, since: Instant::now() }
    }
}

impl Reading {
    /// Reads the next records; returns nothing if none are available.
    async fn piece(&mut self) -> Result<Vec<u8>, Failure> {
        if self.next >= self.known {
            return Ok(Vec::new());
        }
        let port = &self.exchange.port;
        if self.place.is_none() {
            self.place = Some(Place::next(port).await);
        }
        let (next, known) = (self.next, self.known);
        let reader = self.reader.take();
        let (log, follows) = (port.channel.log(), self.follows);
        let folder = port.channel.config.folder.clone();
        let layout = self.layout;
        let read = move || {
            let mut reader = match (reader, log, follows) {
                (Some(reader), ..) => reader,
                (None, Some(log), true) => log.reader(next)?.following()?,
                (None, Some(log), false) => log.reader(next)?,
                (None, None, true) => LogReader::open(folder, next)?.following()?,
                (None, None, false) => LogReader::open(folder, next)?,
            };
            let (bytes, next) = fill(&mut reader, next, known, layout)?;
            Ok((reader, bytes, next))
        };
        let interrupted = |_| Err(Failure::Log(Error::Interrupted));
        // Reading blocks, because it uses the disk.
        let (reader, bytes, next) = spawn_blocking(read).await.unwrap_or_else(interrupted)?;
        (self.reader, self.next) = (Some(reader), next);
        Ok(bytes)
    }

    /// Sends the first piece, and continues reading in a task that stops when the connection
    /// closes.
    fn go_on(mut self, first: Vec<u8>) -> Pieces {
        let (sender, pieces) = mpsc::channel(1);
        tokio::spawn(async move {
            tokio::select! {
                () = self.send(first, &sender) => {}
                () = sender.closed() => {}
            }
        });
        pieces
    }

    async fn send(&mut self, first: Vec<u8>, sender: &mpsc::Sender<Result<Bytes, Broken>>) {
        let mut piece = Ok(first);
        loop {
            let is_broken = piece.is_err();
            let piece_held = match piece {
                Ok(piece) if piece.is_empty() => None,
                Ok(piece) => match self.exchange.hold_answer(piece) {
                    Ok(held) => Some(Ok(held)),
                    // The answer must not seem complete. Once this task stops sending, the session
                    // notices the failure and cuts the connection.
                    Err(_) => return sender.closed().await,
                },
                Err(broken) => Some(Err(broken)),
            };
            if let Some(piece) = piece_held
                && self.unless_long(sender.send(piece)).await.is_err()
            {
                return;
            }
            if is_broken {
                return;
            }
            if self.next >= self.known && !self.more_is_known().await {
                return;
            }
            piece = match self.exchange.lets_in(&self.token) {
                true => self.piece().await.map_err(|_| Broken),
                false => Err(Broken),
            };
        }
    }

    /// Waits until more records may be read. Returns `false` if no more are requested or the server
    /// drains.
    async fn more_is_known(&mut self) -> bool {
        if !self.follows || self.next >= self.end {
            return false;
        }
        let (exchange, next, before) = (self.exchange.clone(), self.next, self.known);
        let port = &exchange.port;
        let known = self.unless_long(async {
            tokio::select! {
                known = safe_behind(next, port) => known,
                // The answer still includes every record that is safe by now.
                () = port.drains() => {
                    port.channel.log().map_or(before, |log| port.listen.ack.readable(&log))
                }
            }
        });
        self.known = known.await.min(self.end);
        self.next < self.known
    }

    /// Waits for a future, and gives up the reader slot if that takes long.
    async fn unless_long<T>(&mut self, wait: impl Future<Output = T>) -> T {
        let mut wait = pin!(wait);
        let outcome = timeout(PLACE_TIME, &mut wait).await;
        let others_wait = self.exchange.port.readers.available_permits() == 0;
        let is_over = self.place.as_ref().is_some_and(|place| place.since.elapsed() > PLACE_TIME);
        if outcome.is_err() || others_wait && is_over {
            (self.reader, self.place) = (None, None);
        }
        match outcome {
            Ok(outcome) => outcome,
            Err(_) => wait.await,
        }
    }
}

/// Waits until record `sequence` may be read. Returns the sequence before which all records may be.
async fn safe_behind(sequence: u64, port: &Port) -> u64 {
    let level = port.listen.ack;
    loop {
        if let Some(log) = port.channel.log() {
            let written = log.written(sequence).await.is_ok();
            let readable = if written { level.present(&log).await } else { level.readable(&log) };
            if readable > sequence {
                return readable;
            }
        }
        // A full disk or a failed log does not end the wait, because both can recover.
        sleep(RETRY_PAUSE).await;
    }
}

/// Reads at most one piece of records from `next` up to `known`. Returns the piece and the sequence
/// at which the next piece begins.
fn fill(
    reader: &mut LogReader,
    mut next: u64,
    known: u64,
    layout: Layout,
) -> Result<(Vec<u8>, u64), Failure> {
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    while next < known && piece.len() < PIECE_BYTES {
        let Some(record) = reader.next_within(RECORD_PATIENCE)? else {
            return Err(Failure::Removed { first: known });
        };
        if record.sequence != next {
            return Err(Failure::Removed { first: record.sequence });
        }
        if layout == Layout::U32 {
            let len = u32::try_from(record.bytes.len()).expect("a record fits into a buffer");
            piece.extend(len.to_be_bytes());
        }
        piece.extend_from_slice(&record.bytes);
        if layout == Layout::Lines {
            piece.push(b'\n');
        }
        next += 1;
    }
    Ok((piece, next))
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Log(error)
    }
}
