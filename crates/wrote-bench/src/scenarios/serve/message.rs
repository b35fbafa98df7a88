//! The messages: a text stamp, then random bytes. Checks that the log has them all.

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use wrote_result::document::Records;

/// `RUN CONNECTION NUMBER `, in 8, 5 and 10 hexadecimal digits.
const STAMP_BYTES: usize = 26;
/// The shortest message: a stamp and a few bytes to detect damage.
pub(crate) const BYTES_MIN: u32 = 32;
/// The message limit of our server and most others.
pub(crate) const BYTES_MAX: u32 = 64 << 10;
/// Random bytes from which messages are taken: more than the window of compressors.
const TEXT_BYTES: usize = 4 << 20;
/// The distance between two connections' parts.
const CONNECTION_STRIDE: usize = 65_537;

/// The messages of a run. Connection and number determine every byte.
pub(super) struct Messages {
    run: u32,
    bytes: Vec<u8>,
    message_bytes: usize,
}

/// A parsed stamp.
struct Stamp {
    run: u32,
    connection: usize,
    number: u64,
}

impl Messages {
    /// Creates messages that no earlier run had.
    pub(super) fn new(message_bytes: usize) -> Messages {
        let mut random =
            Xoshiro256PlusPlus::seed_from_u64(RandomState::new().build_hasher().finish());
        let mut bytes = vec![0; TEXT_BYTES + message_bytes];
        random.fill_bytes(&mut bytes);
        // Control characters end frames, and syslog receivers rewrite them.
        bytes.iter_mut().filter(|byte| byte.is_ascii_control()).for_each(|byte| *byte |= 0xC0);
        Messages { run: random.random(), bytes, message_bytes }
    }

    pub(super) fn message_bytes(&self) -> usize {
        self.message_bytes
    }

    /// Replaces `into` with message `number` of a connection.
    pub(super) fn write(&self, connection: usize, number: u64, into: &mut Vec<u8>) {
        into.clear();
        put_hex(self.run.into(), 8, into);
        put_hex(connection as u64, 5, into);
        put_hex(number, 10, into);
        into.extend_from_slice(self.body(connection, number));
    }

    /// Returns the bytes after the stamp. A connection's consecutive messages are adjacent in the
    /// text.
    fn body(&self, connection: usize, number: u64) -> &[u8] {
        let body_bytes = self.message_bytes - STAMP_BYTES;
        let place = number.wrapping_mul(body_bytes as u64);
        let place = place.wrapping_add((connection * CONNECTION_STRIDE) as u64);
        let begin = (place % TEXT_BYTES as u64) as usize;
        &self.bytes[begin..begin + body_bytes]
    }
}

impl Stamp {
    fn read(message: &[u8]) -> Option<Stamp> {
        let text = str::from_utf8(message.get(..STAMP_BYTES)?).ok()?;
        let mut groups = text.split(' ').map(|digits| u64::from_str_radix(digits, 16));
        let mut next = || groups.next()?.ok();
        Some(Stamp { run: next()? as u32, connection: next()? as usize, number: next()? })
    }
}

fn put_hex(value: u64, digits: u32, into: &mut Vec<u8>) {
    let digit = |place: u32| b"0123456789abcdef"[(value >> (4 * place)) as usize & 0xF];
    into.extend((0..digits).rev().map(digit));
    into.push(b' ');
}

/// Checks that a log has each connection's messages, intact and in order.
pub(super) struct Check<'a> {
    messages: &'a Messages,
    /// The next expected number of each connection.
    next: Vec<u64>,
    whole: Vec<u8>,
    records: Records,
    /// Records of other runs and senders, and records without a stamp.
    pub(super) strangers: u64,
}

impl<'a> Check<'a> {
    pub(super) fn new(messages: &'a Messages, sent: &[u64]) -> Check<'a> {
        let records = Records { sent: sent.iter().sum(), ..Records::default() };
        Check { messages, next: vec![0; sent.len()], whole: Vec::new(), records, strangers: 0 }
    }

    /// Checks the log's next record.
    ///
    /// # Errors
    ///
    /// If the record is altered, or precedes one that was sent earlier.
    pub(super) fn record(&mut self, record: &[u8]) -> Result<(), String> {
        let stamp = Stamp::read(record).filter(|stamp| stamp.run == self.messages.run);
        let Some(Stamp { connection, number, .. }) = stamp else {
            self.strangers += 1;
            return Ok(());
        };
        let Some(next) = self.next.get_mut(connection) else {
            return Err(format!("a message of connection {connection}, which there was not"));
        };
        self.messages.write(connection, number, &mut self.whole);
        if self.whole != record {
            return Err(format!("message {number} of connection {connection} is altered"));
        }
        match number.cmp(next) {
            std::cmp::Ordering::Less => self.records.doubled += 1,
            std::cmp::Ordering::Equal => {
                *next += 1;
                self.records.whole += 1;
            }
            std::cmp::Ordering::Greater => {
                return Err(format!(
                    "message {number} of connection {connection} stands where {next} belongs"
                ));
            }
        }
        Ok(())
    }

    /// Returns whether every acknowledged message was found.
    pub(super) fn has(&self, acknowledged: &[u64]) -> bool {
        self.next.iter().zip(acknowledged).all(|(next, acknowledged)| next >= acknowledged)
    }

    /// Returns the totals over all connections.
    ///
    /// # Errors
    ///
    /// If an acknowledged message is missing.
    pub(super) fn finish(self, acknowledged: &[u64]) -> Result<Records, String> {
        let pairs = self.next.iter().zip(acknowledged).enumerate();
        for (connection, (next, acknowledged)) in pairs {
            if next < acknowledged {
                return Err(format!(
                    "message {next} of connection {connection} is missing, of {acknowledged} that \
                     were acknowledged"
                ));
            }
        }
        Ok(Records { lost: self.records.sent - self.records.whole, ..self.records })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: [u64; 2] = [3, 2];

    fn all(messages: &Messages) -> Vec<Vec<u8>> {
        let sent = [(0, 0), (1, 0), (0, 1), (0, 2), (1, 1)];
        sent.map(|(connection, number)| {
            let mut message = Vec::new();
            messages.write(connection, number, &mut message);
            message
        })
        .to_vec()
    }

    fn checked(messages: &Messages, records: &[Vec<u8>]) -> Result<Records, String> {
        let mut check = Check::new(messages, &SENT);
        records.iter().try_for_each(|record| check.record(record))?;
        assert_eq!(check.has(&SENT), check.next == SENT);
        check.finish(&SENT)
    }

    #[test]
    fn a_message_is_its_stamp_and_bytes_without_control_characters() {
        let messages = Messages::new(500);
        let mut message = Vec::new();
        messages.write(0xABC, 0x12_3456, &mut message);
        assert_eq!(message.len(), 500);
        assert_eq!(&message[8..STAMP_BYTES], b" 00abc 0000123456 ");
        assert!(message.iter().all(|byte| !byte.is_ascii_control()));
        // M2: no two share their bytes.
        let mut next = Vec::new();
        messages.write(0xABC, 0x12_3457, &mut next);
        assert!(message[STAMP_BYTES..] != next[STAMP_BYTES..]);
    }

    #[test]
    fn every_message_in_its_connections_order_is_whole() {
        let messages = Messages::new(100);
        let records = checked(&messages, &all(&messages)).unwrap();
        assert_eq!(records, Records { sent: 5, whole: 5, ..Records::default() });
    }

    #[test]
    fn a_message_that_is_missing_altered_or_before_another_is_an_error() {
        let messages = Messages::new(100);
        let whole = all(&messages);
        let with = |change: fn(&mut Vec<Vec<u8>>)| {
            let mut records = whole.clone();
            change(&mut records);
            checked(&messages, &records).unwrap_err()
        };
        assert!(with(|records| drop(records.pop())).contains("missing"));
        assert!(with(|records| drop(records.remove(0))).contains("where 0 belongs"));
        assert!(with(|records| records.swap(2, 3)).contains("where 1 belongs"));
        assert!(with(|records| records[1][99] ^= 1).contains("altered"));
        assert!(with(|records| records[4].truncate(99)).contains("altered"));
        // With a damaged stamp it is a different message or none.
        assert!(with(|records| records[3][25] = b'x').contains("missing"));
        assert!(with(|records| records[3][3] = b'x').contains("missing"));
    }

    #[test]
    fn a_message_that_is_there_twice_is_counted_and_others_are_too() {
        let messages = Messages::new(100);
        let mut records = all(&messages);
        records.push(records[2].clone());
        records.push(all(&Messages::new(100))[0].clone());
        records.push(b"of another sender".to_vec());
        let mut check = Check::new(&messages, &SENT);
        records.iter().for_each(|record| check.record(record).unwrap());
        assert_eq!(check.strangers, 2);
        let found = check.finish(&SENT).unwrap();
        assert_eq!((found.whole, found.doubled, found.lost), (5, 1, 0));
    }
}
