//! Idempotency keys: a message that a client resends is appended once.
//!
//! A key is stored in the message's record, so that both become durable together. The record is the
//! byte 0x1D; a JSON array of the producer, the key, the message's number within the key, and the
//! CRC-32 of these and the key's messages so far; a space; and the message. A message that itself
//! begins with 0x1D gets an empty array in front, so that clients cannot forge keys. The index in
//! memory is rebuilt from the end of the log on open.

use crate::limits::Refusal;
use flate2::Crc;
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wrote::log::LogSummary;
use wrote::{Error, Format, Log};

/// The first byte of a record with a key.
const BEGIN: u8 = 0x1d;
/// The prefix of a message without a key that begins with [`BEGIN`].
const NO_KEY: &[u8] = b"\x1d[] ";
const WORD_BYTES_MAX: usize = 128;
/// The limit of all keys, as a multiple of that per producer.
const ALL_FACTOR: usize = 10;
/// The most producers remembered.
const PRODUCERS_MAX: usize = 1024;
/// How much of the log's end is read for keys on open.
const READ_BYTES: u64 = 256 << 20;
pub(crate) const NONE: &str = "this log takes no idempotency keys";

/// Identifies a message: a producer and its key.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    producer: Box<str>,
    key: Box<str>,
}

impl Key {
    /// Validates a client's key.
    pub(crate) fn new(producer: &[u8], key: &[u8]) -> Result<Key, &'static str> {
        let word = |word: &[u8]| -> Option<Box<str>> {
            let is_plain = word.iter().all(|byte| (b' '..=b'~').contains(byte));
            (is_plain && word.len() <= WORD_BYTES_MAX).then(|| String::from_utf8_lossy(word).into())
        };
        match (word(producer), word(key)) {
            (Some(producer), Some(key)) if !key.is_empty() => Ok(Key { producer, key }),
            _ => Err("a key has 1 to 128 printable ASCII characters, a producer 128 at most"),
        }
    }
}

/// The number of messages of a key so far, and their CRC-32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    count: u64,
    crc: u32,
}

impl Progress {
    fn with(self, message: &[u8]) -> Progress {
        let mut crc = Crc::new();
        crc.update(&self.crc.to_le_bytes());
        crc.update(message);
        Progress { count: self.count + 1, crc: crc.sum() }
    }
}

/// The messages of a key that are in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    first: u64,
    last: u64,
    progress: Progress,
}

/// A message that is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Once {
    /// The sequences of the key's first and last messages so far.
    pub first: u64,
    pub last: u64,
    /// The message was not in the log before.
    pub is_new: bool,
}

/// The keys of an open log.
pub(crate) struct Keys {
    log: Log,
    window: Mutex<Window>,
}

/// The most recent keys of each producer.
#[derive(Debug, Default)]
struct Window {
    each_max: usize,
    producers: HashMap<Box<str>, Producer>,
    count: usize,
    /// Counts keys as they arrive.
    clock: u64,
}

#[derive(Debug, Default)]
struct Producer {
    entries: HashMap<Arc<str>, Entry>,
    /// Keys in order of arrival.
    order: VecDeque<Arc<str>>,
    /// [`Window::clock`] at the producer's last key.
    used: u64,
}

impl Keys {
    /// Reads the keys at the end of a log that was just opened in `folder`, at most `each_max` per
    /// producer. `None` if no record of the log can have a key. With `each_max` 0 the log accepts
    /// no keys, but may contain some.
    pub(crate) fn of(log: &Log, folder: &Path, each_max: usize) -> Option<Arc<Keys>> {
        if log.format() == Format::Lines {
            return None;
        }
        let mut window = Window { each_max, ..Window::default() };
        // A simulated log has no folder and starts without keys.
        if each_max > 0
            && let Ok(summary) = wrote::log::summary(folder)
            && let Err(error) = window.read(log, begin(&summary))
        {
            // The log itself is usable.
            log::warn!("{}: keys were read only up to an error: {error}", folder.display());
        }
        Some(Arc::new(Keys { log: log.clone(), window: Mutex::new(window) }))
    }

    /// Appends the next message of a key, unless it is in the log already. `record` is stored for
    /// it. Returns `None` while there is no room. The key is refused if the messages before it in
    /// the log differ from those in `progress`.
    pub(crate) fn append(
        &self,
        key: &Key,
        progress: &mut Progress,
        message: &[u8],
        record: &[u8],
    ) -> Result<Option<Once>, Refusal> {
        let next = progress.with(message);
        let mut window = self.window();
        match window.entry(key) {
            Some(entry) if next.count <= entry.progress.count => {
                if next.count == entry.progress.count && next != entry.progress {
                    return Err(Refusal::Reused);
                }
                *progress = next;
                return Ok(Some(Once { first: entry.first, last: entry.last, is_new: false }));
            }
            Some(entry) if entry.progress != *progress => return Err(Refusal::Reused),
            _ => {}
        }
        let once = self.put(&mut window, key, next, record)?;
        if once.is_some() {
            *progress = next;
        }
        Ok(once)
    }

    /// Appends the only message of a key, unless the log has this key already. Like in Redis, the
    /// message is not compared. Returns `None` while there is no room.
    pub(crate) fn append_one(
        &self,
        key: &Key,
        message: &[u8],
        record: &[u8],
    ) -> Result<Option<Once>, Refusal> {
        let mut window = self.window();
        if let Some(Entry { first, last, .. }) = window.entry(key) {
            return Ok(Some(Once { first, last, is_new: false }));
        }
        self.put(&mut window, key, Progress::default().with(message), record)
    }

    /// Appends under the lock, so that concurrent connections do not append the same message.
    fn put(
        &self,
        window: &mut Window,
        key: &Key,
        next: Progress,
        record: &[u8],
    ) -> Result<Option<Once>, Refusal> {
        if window.each_max == 0 {
            return Err(Refusal::Malformed(NONE));
        }
        let head = (&key.producer, &key.key, next.count, next.crc);
        let mut whole = vec![BEGIN];
        serde_json::to_writer(&mut whole, &head).expect("text is written into memory");
        whole.push(b' ');
        whole.extend_from_slice(record);
        let Some(ticket) = self.log.try_append(&[&whole]).map_err(|error| self.refusal(error))?
        else {
            return Ok(None);
        };
        let last = ticket.sequence();
        let entry = window.put(&key.producer, &key.key, next, last);
        Ok(Some(Once { first: entry.first, last, is_new: true }))
    }

    /// Refuses a key that has more messages in the log than the client sent.
    pub(crate) fn end(&self, key: &Key, progress: &Progress) -> Result<(), Refusal> {
        match self.window().entry(key) {
            Some(entry) if entry.progress != *progress => Err(Refusal::Reused),
            _ => Ok(()),
        }
    }

    fn refusal(&self, error: Error) -> Refusal {
        Refusal::by_log(error, self.log.check().is_ok())
    }

    fn window(&self) -> MutexGuard<'_, Window> {
        self.window.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

impl Window {
    /// Reads the keys of records from sequence `from` on.
    fn read(&mut self, log: &Log, from: u64) -> Result<(), Error> {
        let mut reader = log.reader(from)?;
        while let Some(record) = reader.next_lent()? {
            if let Some(((producer, key, count, crc), _)) = split(record.bytes) {
                self.put(&producer, &key, Progress { count, crc }, record.sequence);
            }
        }
        Ok(())
    }

    fn entry(&self, key: &Key) -> Option<Entry> {
        self.producers.get(&key.producer)?.entries.get(&*key.key).copied()
    }

    /// Remembers the last message of a key, and evicts old keys.
    fn put(&mut self, producer: &str, key: &str, progress: Progress, last: u64) -> Entry {
        let count = progress.count;
        self.clock += 1;
        if !self.producers.contains_key(producer) {
            self.producers.insert(producer.into(), Producer::default());
        }
        let own = self.producers.get_mut(producer).expect("it was inserted");
        own.used = self.clock;
        let known = own.entries.get(key).filter(|_| count > 1).map(|entry| entry.first);
        let first = known.unwrap_or_else(|| last.saturating_sub(count.saturating_sub(1)));
        let entry = Entry { first, last, progress };
        match own.entries.get_mut(key) {
            Some(known) => *known = entry,
            None => {
                let key: Arc<str> = key.into();
                own.entries.insert(key.clone(), entry);
                own.order.push_back(key);
                self.count += 1;
            }
        }
        let all_max = ALL_FACTOR.saturating_mul(self.each_max);
        while own.order.len() > self.each_max {
            let oldest = own.order.pop_front().expect("it has some");
            own.entries.remove(&oldest);
            self.count -= 1;
        }
        while self.count > all_max || self.producers.len() > PRODUCERS_MAX {
            let oldest = self.producers.iter().min_by_key(|(_, producer)| producer.used);
            let name = oldest.map(|(name, _)| name.clone()).expect("it has some");
            self.count -= self.producers.remove(&name).map_or(0, |own| own.entries.len());
        }
        entry
    }
}

/// Returns the sequence at which to start reading a log for keys.
fn begin(summary: &LogSummary) -> u64 {
    let (mut left, mut from) = (READ_BYTES, summary.next_sequence);
    for segment in summary.segments.iter().rev() {
        if segment.used_bytes > left {
            // Assumes that all records of a segment have the same length.
            let share = u128::from(segment.records) * u128::from(left);
            let records = (share / u128::from(segment.used_bytes)) as u64;
            return segment.first_sequence + (segment.records - records);
        }
        (left, from) = (left - segment.used_bytes, segment.first_sequence);
    }
    from
}

/// Producer, key, number of the message, and CRC-32 so far.
type Head = (String, String, u64, u32);

/// Splits a record into its key and the rest.
fn split(record: &[u8]) -> Option<(Head, &[u8])> {
    let rest = record.strip_prefix(&[BEGIN])?;
    let mut heads = serde_json::Deserializer::from_slice(rest).into_iter::<Head>();
    let head = heads.next()?.ok()?;
    Some((head, rest[heads.byte_offset()..].strip_prefix(b" ")?))
}

/// Returns a record's message without the key.
pub(crate) fn message(record: &[u8]) -> &[u8] {
    match record.strip_prefix(NO_KEY) {
        Some(message) => message,
        None => split(record).map_or(record, |(_, message)| message),
    }
}

/// Returns the record of a message without a key, where the log `has_keys`.
pub(crate) fn plain(record: Cow<'_, [u8]>, has_keys: bool) -> Cow<'_, [u8]> {
    if has_keys && !is_plain(&record) { [NO_KEY, &*record].concat().into() } else { record }
}

/// Returns whether a message without a key is stored unchanged.
pub(crate) fn is_plain(message: &[u8]) -> bool {
    message.first() != Some(&BEGIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Progress = Progress { count: 1, crc: 0 };

    #[test]
    fn the_keys_of_all_producers_and_the_producers_are_bounded() {
        let mut window = Window { each_max: 2, ..Window::default() };
        for (at, producer) in (0..100).map(|producer| producer.to_string()).enumerate() {
            for key in ["a", "b", "c"] {
                window.put(&producer, key, ONE, at as u64);
            }
        }
        // The producers idle for longest are forgotten.
        let mut names: Vec<_> = window.producers.keys().map(|name| name.to_string()).collect();
        names.sort();
        assert_eq!(names, (90..100).map(|name| name.to_string()).collect::<Vec<_>>());
        let count = |window: &Window| -> usize {
            window.producers.values().map(|own| own.entries.len().max(own.order.len())).sum()
        };
        assert_eq!((window.count, count(&window)), (20, 20));
        let mut window = Window { each_max: 1000, ..Window::default() };
        for producer in 0..2 * PRODUCERS_MAX {
            window.put(&producer.to_string(), "a", ONE, 0);
        }
        assert_eq!((window.producers.len(), window.count), (PRODUCERS_MAX, PRODUCERS_MAX));
        assert!(window.producers.contains_key(&*(2 * PRODUCERS_MAX - 1).to_string()));
    }

    #[test]
    fn a_message_that_no_client_of_keys_sent_stays_as_it_is() {
        for message in [&b""[..], b"\x1d", b"\x1d[] x", b"\x1d[\"a\",\"b\",1,2] x", b"x\x1d[] "] {
            assert_eq!(super::message(&plain(message.into(), true)), message);
        }
        // Records from before the log had keys.
        for record in [&b"\x1d[1] x"[..], b"\x1d[\"a\",\"b\",1,2]x", b"\x1d[\"a\",\"b\",-1,2] x"] {
            assert_eq!(super::message(record), record);
        }
    }
}
