//! Reading by RESP: how many records there are, a range of them, and what comes.

use super::{FIELD, Resp, error};
use crate::channel::Channel;
use crate::intake::{Intake, Later};
use std::fmt::Write;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Instant, timeout_at};
use wrote::{Error, Log, LogReader};

/// Bytes of one answer's records at most: an answer is made whole before it leaves.
const ANSWER_BYTES_MAX: usize = 8 << 20;
/// Answers that are read from logs at a time: each takes a reader's buffers and its own bytes (W8).
/// The others wait. An answer that waits for its client is counted among the bytes in flight.
static READS: Semaphore = Semaphore::const_new(READS_MAX);
pub(crate) const READS_MAX: usize = 4;
/// Records of an XREAD that asks for no number.
const READ_COUNT: usize = 1000;

/// The entries of an answer.
struct Wanted {
    /// The first sequence, and the one behind the last.
    sequences: Range<u64>,
    count: Option<usize>,
    /// Fewer may be given: the client asks again behind the last.
    is_partial: bool,
}

/// The records of an answer, in RESP.
#[derive(Default)]
struct Entries {
    count: usize,
    text: Vec<u8>,
}

impl Resp {
    /// XLEN: the records that are there, those of this connection before it included.
    pub(super) fn len(&self, intake: &mut Intake<'_>) {
        let stats = self.channel.as_ref().and_then(|channel| channel.log()).map(|log| log.stats());
        let len = stats.map_or(0, |stats| stats.next_sequence - stats.first_sequence);
        intake.answer(format!(":{len}\r\n").as_bytes());
    }

    /// `XRANGE key start end [COUNT n]`.
    pub(super) fn range(&self, input: &[u8], intake: &mut Intake<'_>) {
        let word = |at| self.request.word(input, at).unwrap_or_default();
        let count = match self.request.len() {
            6 if word(4).eq_ignore_ascii_case(b"COUNT") => match number(word(5)) {
                Some(count) => Some(usize::try_from(count).unwrap_or(usize::MAX)),
                None => return error(intake, "ERR value is not an integer or out of range"),
            },
            6 => return error(intake, "ERR syntax error"),
            _ => None,
        };
        let (Some(start), Some(end)) = (first(word(2)), behind(word(3))) else {
            return error(intake, INVALID_ID);
        };
        let wanted = Wanted { sequences: start..end, count, is_partial: false };
        self.answer_later(intake, move |log, channel| async move {
            written(&log).await;
            match entries(channel, wanted).await {
                Ok(entries) => entries.array(),
                Err(error) => failed(&error),
            }
        });
    }

    /// `XREAD [COUNT n] [BLOCK ms] STREAMS key id`.
    pub(super) fn read(&self, input: &[u8], intake: &mut Intake<'_>) {
        let word = |at| self.request.word(input, at).unwrap_or_default();
        let (mut at, mut count, mut block) = (1, READ_COUNT, None);
        while !word(at).eq_ignore_ascii_case(b"STREAMS") {
            match (word(at).to_ascii_uppercase().as_slice(), number(word(at + 1))) {
                (b"COUNT", Some(n)) => count = usize::try_from(n).unwrap_or(usize::MAX),
                (b"BLOCK", Some(ms)) => block = Some(ms),
                _ => return error(intake, "ERR syntax error"),
            }
            at += 2;
        }
        if self.request.len() != at + 3 {
            return error(intake, "ERR XREAD reads one stream: the log");
        }
        let key = word(at + 1).to_vec();
        let next = self.channel.as_ref().and_then(|channel| channel.log());
        let next = next.map_or(0, |log| log.stats().next_sequence);
        let from = match word(at + 2) {
            b"$" => next,
            id => match after(id) {
                Some(from) => from,
                None => return error(intake, INVALID_ID),
            },
        };
        let is_three = self.is_three;
        self.answer_later(intake, move |log, channel| async move {
            written(&log).await;
            // 0 is for ever.
            let end =
                block.filter(|&ms| ms > 0).map(|ms| Instant::now() + Duration::from_millis(ms));
            loop {
                let sequences = from..u64::MAX;
                let wanted = Wanted { sequences, count: Some(count), is_partial: true };
                match entries(channel.clone(), wanted).await {
                    Err(error) => return failed(&error),
                    Ok(entries) if entries.count > 0 => return entries.stream(&key, is_three),
                    Ok(_) => {}
                }
                let comes = async {
                    // A full disk, or a failure, is no end of waiting: there may be room again.
                    if log.written(log.written_sequence().max(from)).await.is_err() {
                        tokio::time::sleep(Duration::from_secs(1)).await;
                    }
                };
                let has_come = match (block, end) {
                    (None, _) => false,
                    (Some(_), None) => {
                        comes.await;
                        true
                    }
                    (Some(_), Some(end)) => timeout_at(end, comes).await.is_ok(),
                };
                if !has_come {
                    return if is_three { b"_\r\n".to_vec() } else { b"*-1\r\n".to_vec() };
                }
            }
        });
    }

    /// Makes an answer in a task of its own, which ends with the connection.
    fn answer_later<F>(
        &self,
        intake: &mut Intake<'_>,
        make: impl FnOnce(Log, Arc<Channel>) -> F + Send + 'static,
    ) where
        F: Future<Output = Vec<u8>> + Send,
    {
        let channel = self.channel.clone();
        let Some((log, channel)) = channel.and_then(|channel| Some((channel.log()?, channel)))
        else {
            return error(intake, "MISCONF the log has failed");
        };
        let (sender, later): (_, Later) = mpsc::channel(1);
        tokio::spawn(async move {
            tokio::select! {
                answer = make(log, channel) => {
                    // The client may be gone.
                    let _ = sender.send(answer).await;
                }
                () = sender.closed() => {}
            }
        });
        intake.answer_later(later);
    }
}

const INVALID_ID: &str = "ERR Invalid stream ID specified as stream command argument";

fn number(word: &[u8]) -> Option<u64> {
    str::from_utf8(word).ok()?.parse().ok()
}

/// The two numbers of an ID; the second may be left out.
fn id(word: &[u8]) -> Option<(u64, Option<u64>)> {
    match memchr::memchr(b'-', word) {
        None => Some((number(word)?, None)),
        Some(at) => Some((number(&word[..at])?, Some(number(&word[at + 1..])?))),
    }
}

/// The first sequence of a range that begins at this ID: `-`, `5`, `5-1`, or behind it with `(5-1`.
/// An ID without its second part means the first of its entries.
fn first(word: &[u8]) -> Option<u64> {
    match word {
        b"-" => Some(0),
        [b'(', exclusive @ ..] => after(exclusive),
        _ => match id(word)? {
            (sequence, None | Some(0 | 1)) => Some(sequence),
            (sequence, Some(_)) => sequence.checked_add(1),
        },
    }
}

/// The sequence of the first record after this ID: `5` or `5-1`.
fn after(word: &[u8]) -> Option<u64> {
    match id(word)? {
        (sequence, None | Some(0)) => Some(sequence),
        (sequence, Some(_)) => sequence.checked_add(1),
    }
}

/// The sequence behind a range that ends with this ID: `+`, `5`, `5-1`, or before it with `(5-1`.
/// An ID without its second part means the last of its entries.
fn behind(word: &[u8]) -> Option<u64> {
    let (word, is_exclusive) = match word {
        b"+" => return Some(u64::MAX),
        [b'(', exclusive @ ..] => (exclusive, true),
        _ => (word, false),
    };
    match id(word)? {
        (sequence, Some(0)) => Some(sequence),
        (sequence, Some(1)) if is_exclusive => Some(sequence),
        (sequence, _) => sequence.checked_add(1),
    }
}

/// Waits until what was appended before is written, so that it is read. An error is found again by
/// the reading.
async fn written(log: &Log) {
    if let Some(last) = log.stats().next_sequence.checked_sub(1) {
        let _ = log.ticket(last).until_written().into_owned().await;
    }
}

async fn entries(channel: Arc<Channel>, wanted: Wanted) -> Result<Entries, Failure> {
    let permit = READS.acquire().await.expect("it is never closed");
    let read = move || {
        // Held also where the client has gone meanwhile.
        let _permit = permit;
        read(&channel, &wanted)
    };
    tokio::task::spawn_blocking(read).await.unwrap_or(Err(Failure::TooLarge))
}

enum Failure {
    TooLarge,
    Log(Error),
}

fn failed(failure: &Failure) -> Vec<u8> {
    let text = match failure {
        Failure::TooLarge => {
            format!("the range has more than {ANSWER_BYTES_MAX} bytes: read it in parts, by COUNT")
        }
        Failure::Log(error) => error.to_string(),
    };
    format!("-ERR {text}\r\n").into_bytes()
}

/// Reads the records of an answer. It waits for the disk.
fn read(channel: &Channel, wanted: &Wanted) -> Result<Entries, Failure> {
    let mut entries = Entries::default();
    let Range { start, end } = wanted.sequences;
    if start >= end || wanted.count == Some(0) {
        return Ok(entries);
    }
    let reader = match channel.log() {
        Some(log) => log.reader(start),
        None => LogReader::open(&channel.config.folder, start),
    };
    let reader = reader.map_err(Failure::Log)?;
    for record in reader {
        let record = record.map_err(Failure::Log)?;
        let is_whole = entries.text.len() < ANSWER_BYTES_MAX;
        if record.sequence >= end || (wanted.is_partial && !is_whole) {
            break;
        }
        if !is_whole {
            return Err(Failure::TooLarge);
        }
        entries.push(record.sequence, &record.bytes);
        if wanted.count == Some(entries.count) {
            break;
        }
    }
    Ok(entries)
}

impl Entries {
    fn push(&mut self, sequence: u64, bytes: &[u8]) {
        let id = format!("{sequence}-1");
        let field = FIELD.len();
        let len = bytes.len();
        let mut head = String::new();
        write!(head, "*2\r\n${}\r\n{id}\r\n*2\r\n${field}\r\n{FIELD}\r\n${len}\r\n", id.len())
            .expect("a String takes all");
        self.text.extend(head.as_bytes());
        self.text.extend(bytes);
        self.text.extend(b"\r\n");
        self.count += 1;
    }

    fn array(self) -> Vec<u8> {
        [format!("*{}\r\n", self.count).into_bytes(), self.text].concat()
    }

    /// The answer of XREAD: streams by their keys.
    fn stream(self, key: &[u8], is_three: bool) -> Vec<u8> {
        let head = if is_three { "%1\r\n" } else { "*1\r\n*2\r\n" };
        let len = key.len();
        let name = [format!("{head}${len}\r\n").as_bytes(), key, b"\r\n"].concat();
        [name, self.array()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_redis() {
        for (word, sequence) in [
            ("-", 0),
            ("0", 0),
            ("5", 5),
            ("5-0", 5),
            ("5-1", 5),
            ("5-2", 6),
            ("(5-0", 5),
            ("(5-1", 6),
            ("(5", 5),
        ] {
            assert_eq!(first(word.as_bytes()), Some(sequence), "{word}");
        }
        for (word, sequence) in [("0", 0), ("0-0", 0), ("5", 5), ("5-0", 5), ("5-1", 6), ("5-2", 6)]
        {
            assert_eq!(after(word.as_bytes()), Some(sequence), "{word}");
        }
        for (word, sequence) in [
            ("+", u64::MAX),
            ("5", 6),
            ("5-0", 5),
            ("5-1", 6),
            ("0-0", 0),
            ("(5-0", 5),
            ("(5-1", 5),
            ("(5-2", 6),
            ("(5", 6),
        ] {
            assert_eq!(behind(word.as_bytes()), Some(sequence), "{word}");
        }
        for word in ["", "x", "5-", "-1", "5-1-1", "99999999999999999999"] {
            let word = word.as_bytes();
            assert_eq!((first(word), after(word), behind(word)), (None, None, None));
        }
    }
}
