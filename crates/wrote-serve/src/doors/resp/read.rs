//! Reading over RESP: the number of records, ranges, and new records.

use super::request::fields;
use super::{Resp, error};
use crate::channel::Channel;
use crate::doors::{Intake, Later};
use crate::target::Level;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, timeout_at};
use wrote::{Error, Log, LogReader};

/// The maximum size of the records in one answer, which is built completely before it is sent.
const ANSWER_BYTES_MAX: usize = 8 << 20;
/// The limit on concurrent reads: each needs a reader's buffers and memory for its answer (W8). An
/// answer that waits for its client is accounted for as unsent bytes.
static READS: Semaphore = Semaphore::const_new(READS_MAX);
pub(crate) const READS_MAX: usize = 4;
/// The default COUNT of XREAD.
const READ_COUNT: usize = 1000;

/// The entries that an answer should contain.
struct Wanted {
    sequences: Range<u64>,
    count: Option<usize>,
    /// Whether fewer entries may be returned, because the client continues after the last one.
    is_partial: bool,
}

/// Records encoded in RESP.
#[derive(Default)]
struct Entries {
    count: usize,
    text: Vec<u8>,
}

/// Handles XLEN: answers with the number of records, including records that this connection has
/// just added.
pub(super) fn xlen(resp: &Resp, intake: &mut Intake<'_>) {
    let stats = resp.log.as_ref().and_then(|(channel, _)| channel.log()).map(|log| log.stats());
    let len = stats.map_or(0, |stats| stats.next_sequence - stats.first_sequence);
    intake.answer(format!(":{len}\r\n").as_bytes());
}

/// Handles `XRANGE key start end [COUNT n]`.
pub(super) fn xrange(resp: &Resp, input: &[u8], intake: &mut Intake<'_>) {
    let word = |at| resp.request.word(input, at).unwrap_or_default();
    let count = match resp.request.len() {
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
    answer_later(resp, intake, move |log, channel, level| async move {
        let sequences = start..end.min(level.present(&log).await);
        let entries = entries(channel, Wanted { sequences, count, is_partial: false }).await;
        entries.map_or_else(|error| failed(&error), Entries::array)
    });
}

/// Handles `XREAD [COUNT n] [BLOCK ms] STREAMS key id`.
pub(super) fn xread(resp: &Resp, input: &[u8], intake: &mut Intake<'_>) {
    let word = |at| resp.request.word(input, at).unwrap_or_default();
    let (mut at, mut count, mut block) = (1, READ_COUNT, None);
    while !word(at).eq_ignore_ascii_case(b"STREAMS") {
        match (word(at).to_ascii_uppercase().as_slice(), number(word(at + 1))) {
            (b"COUNT", Some(n)) => count = usize::try_from(n).unwrap_or(usize::MAX),
            (b"BLOCK", Some(ms)) => block = Some(ms),
            _ => return error(intake, "ERR syntax error"),
        }
        at += 2;
    }
    if resp.request.len() != at + 3 {
        return error(intake, "ERR only one stream can be read: the log");
    }
    let key = word(at + 1).to_vec();
    let log = resp.log.as_ref().and_then(|(channel, _)| channel.log());
    let from = match word(at + 2) {
        b"$" => Some(log.map_or(0, |log| log.stats().next_sequence)),
        id => after(id),
    };
    let Some(mut from) = from else { return error(intake, INVALID_ID) };
    let is_three = resp.is_three;
    answer_later(resp, intake, move |mut log, channel, level| async move {
        // A value of 0 means to wait forever.
        let end = block.filter(|&ms| ms > 0).map(|ms| Instant::now() + Duration::from_millis(ms));
        loop {
            // A failed log may have been reopened.
            log = channel.log().unwrap_or(log);
            let known = level.present(&log).await;
            let sequences = from..known;
            let wanted = Wanted { sequences, count: Some(count), is_partial: true };
            match entries(channel.clone(), wanted).await {
                Err(error) => return failed(&error),
                Ok(entries) if entries.count == 0 => {}
                Ok(entries) => return entries.stream(&key, is_three),
            }
            // These sequences have no records.
            from = from.max(known);
            let comes = async {
                // A full disk or a failed log does not end the wait, because both can recover.
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

/// Builds an answer in a task that stops when the connection closes.
fn answer_later<F>(
    resp: &Resp,
    intake: &mut Intake<'_>,
    make: impl FnOnce(Log, Arc<Channel>, Level) -> F + Send + 'static,
) where
    F: Future<Output = Vec<u8>> + Send,
{
    let found = resp.log.clone();
    let Some((log, channel, level)) =
        found.and_then(|(channel, level)| Some((channel.log()?, channel, level)))
    else {
        return error(intake, "MISCONF the log has failed");
    };
    let (mut sender, later): (_, Later) = oneshot::channel();
    tokio::spawn(async move {
        tokio::select! {
            answer = make(log, channel, level) => {
                // The client may have disconnected.
                let _ = sender.send(answer);
            }
            () = sender.closed() => {}
        }
    });
    intake.later = Some(later);
}

const INVALID_ID: &str = "ERR Invalid stream ID specified as stream command argument";

fn number(word: &[u8]) -> Option<u64> {
    str::from_utf8(word).ok()?.parse().ok()
}

/// Parses the two numbers of an ID; `None` if the ID is invalid. The second number is optional.
fn id(word: &[u8]) -> Option<(u64, Option<u64>)> {
    match memchr::memchr(b'-', word) {
        None => Some((number(word)?, None)),
        Some(at) => Some((number(&word[..at])?, Some(number(&word[at + 1..])?))),
    }
}

/// Parses the start of a range: `-`, `5`, `5-1`, or exclusive `(5-1`. Without its second part, an
/// ID means the first entry with that number.
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

/// Returns the sequence of the first record after an ID such as `5` or `5-1`; `None` if the ID is
/// invalid.
fn after(word: &[u8]) -> Option<u64> {
    match id(word)? {
        (sequence, None | Some(0)) => Some(sequence),
        (sequence, Some(_)) => sequence.checked_add(1),
    }
}

/// Returns the sequence after the end of a range: `+`, `5`, `5-1`, or exclusive `(5-1`. Without its
/// second part, an ID means the last entry with that number.
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

async fn entries(channel: Arc<Channel>, wanted: Wanted) -> Result<Entries, Failure> {
    let permit = READS.acquire().await.expect("it is never closed");
    let read = move || {
        // The permit is held even if the client has disconnected.
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
            format!("the range has over {ANSWER_BYTES_MAX} bytes: read it in parts, with COUNT")
        }
        Failure::Log(error) => error.to_string(),
    };
    format!("-ERR {text}\r\n").into_bytes()
}

/// Reads the records of an answer. Blocks while it reads from the disk.
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
        let (id, fields) = (format!("{sequence}-1"), fields(bytes));
        self.put(format_args!("*2\r\n${}\r\n{id}\r\n*{}\r\n", id.len(), fields.len()));
        for word in fields {
            self.put(format_args!("${}\r\n", word.len()));
            self.text.extend_from_slice(&word);
            self.text.extend(b"\r\n");
        }
        self.count += 1;
    }

    fn put(&mut self, arguments: std::fmt::Arguments<'_>) {
        self.text.write_fmt(arguments).expect("a Vec takes all");
    }

    fn array(self) -> Vec<u8> {
        let mut array = format!("*{}\r\n", self.count).into_bytes();
        array.extend(self.text);
        array
    }

    /// Encodes the answer to XREAD, which contains streams by key.
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
