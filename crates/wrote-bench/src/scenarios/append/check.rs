//! Checks that a file contains every message intact, once, and in its producer's order.

use super::message::{MAGIC, Messages, Stamp};
use std::io;
use std::io::Read;
use wrote_result::Stop;
use wrote_result::document::Records;

#[derive(Debug)]
pub(super) struct Check {
    producers: Vec<Producer>,
    records: Records,
}

/// The messages of one producer that have been found.
#[derive(Clone, Debug)]
struct Producer {
    count: u64,
    /// One bit per message.
    seen: Vec<u64>,
    /// One more than the highest message number seen.
    next: u64,
}

impl Check {
    pub(super) fn new(sent: &[Messages]) -> Check {
        let producer = |messages: &Messages| Producer {
            count: messages.count(),
            seen: vec![0; messages.count().div_ceil(64) as usize],
            next: 0,
        };
        let producers = sent.iter().map(producer).collect();
        Check { producers, records: Records::default() }
    }

    /// Checks a record of a file that delimits its records.
    pub(super) fn record(&mut self, bytes: &[u8]) {
        match Stamp::read(bytes).filter(|stamp| stamp.len == bytes.len()) {
            Some(stamp) => self.whole(stamp),
            None => self.torn(),
        }
    }

    pub(super) fn whole(&mut self, stamp: Stamp) {
        let known = self.producers.get_mut(stamp.producer as usize);
        let Some(producer) = known.filter(|producer| stamp.number < producer.count) else {
            // No producer sent this message.
            return self.torn();
        };
        let (word, bit) = ((stamp.number / 64) as usize, 1 << (stamp.number % 64));
        if producer.seen[word] & bit != 0 {
            self.records.doubled += 1;
            return;
        }
        producer.seen[word] |= bit;
        self.records.whole += 1;
        if stamp.number < producer.next {
            self.records.out_of_order += 1;
        }
        producer.next = producer.next.max(stamp.number + 1);
    }

    /// Counts a stretch of damaged bytes between two intact messages.
    pub(super) fn torn(&mut self) {
        self.records.torn += 1;
    }

    /// Returns the totals over all producers, which sent `sent` messages.
    pub(super) fn finish(self, sent: u64) -> Records {
        Records { sent, lost: sent.saturating_sub(self.records.whole), ..self.records }
    }
}

const PIECE_BYTES: usize = 4 << 20;

struct Window<'a> {
    file: &'a mut dyn Read,
    bytes: Vec<u8>,
    begin: usize,
    is_at_end: bool,
}

impl Window<'_> {
    /// Returns the remaining bytes: at least `least`, unless the file ends earlier.
    fn at_least(&mut self, least: usize) -> io::Result<&[u8]> {
        while self.bytes.len() - self.begin < least && !self.is_at_end {
            self.bytes.drain(..self.begin);
            self.begin = 0;
            let wanted = (least + PIECE_BYTES - self.bytes.len()) as u64;
            let read = (&mut *self.file).take(wanted).read_to_end(&mut self.bytes)?;
            self.is_at_end = read == 0;
        }
        Ok(&self.bytes[self.begin..])
    }
}

/// Counts the messages in `file`, each of which is at most `max_bytes` long. Invalid bytes before
/// the next message are counted as one torn message.
pub(super) fn walk(
    file: &mut dyn Read,
    max_bytes: usize,
    check: &mut Check,
    stop: &Stop,
) -> io::Result<()> {
    let mut window = Window { file, bytes: Vec::new(), begin: 0, is_at_end: false };
    let mut is_torn = false;
    loop {
        let rest = window.at_least(max_bytes)?;
        if rest.is_empty() || stop.is_requested() {
            return Ok(());
        }
        match Stamp::read(rest) {
            Some(stamp) => {
                check.whole(stamp);
                is_torn = false;
                window.begin += stamp.len;
            }
            None => {
                if !std::mem::replace(&mut is_torn, true) {
                    check.torn();
                }
                window.begin += to_next(rest);
            }
        }
    }
}

/// Returns the distance to the next possible message.
fn to_next(bytes: &[u8]) -> usize {
    let next = bytes.windows(MAGIC.len()).skip(1).position(|pair| pair == MAGIC);
    // The last byte may be the first byte of a magic number.
    next.map_or(bytes.len().saturating_sub(MAGIC.len() - 1).max(1), |before| before + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios::append::message::Sizes;
    use wrote_result::Stop;

    const SIZES: Sizes = Sizes { min_bytes: 32, max_bytes: 900 };

    fn all(producers: u32, count: u64) -> (Vec<Messages>, Vec<Vec<u8>>) {
        let sent = Messages::of_all(producers, SIZES, count);
        let mut bytes = Vec::new();
        for messages in &mut sent.clone() {
            while let Some(message) = messages.next() {
                bytes.push(message.to_vec());
            }
        }
        (sent, bytes)
    }

    /// Checks the same records by both methods.
    fn checked(sent: &[Messages], records: &[Vec<u8>]) -> Records {
        let mut by_record = Check::new(sent);
        records.iter().for_each(|record| by_record.record(record));
        let mut by_walk = Check::new(sent);
        let file = records.concat();
        walk(&mut &file[..], SIZES.max_bytes as usize, &mut by_walk, &Stop::new()).unwrap();
        let count = sent.iter().map(Messages::count).sum();
        let (by_record, by_walk) = (by_record.finish(count), by_walk.finish(count));
        assert_eq!(by_record, by_walk);
        by_walk
    }

    #[test]
    fn all_in_order_are_whole() {
        let (sent, records) = all(3, 200);
        let right = Records { sent: 200, whole: 200, ..Records::default() };
        assert_eq!(checked(&sent, &records), right);
        // The messages of other producers may be in between.
        let turned = [&records[100..], &records[..100]].concat();
        let of_one = checked(&sent, &turned);
        assert_eq!((of_one.whole, of_one.lost, of_one.torn), (200, 0, 0));
    }

    #[test]
    fn a_lost_record_is_found() {
        let (sent, mut records) = all(2, 50);
        records.remove(17);
        let found = checked(&sent, &records);
        assert_eq!(found, Records { sent: 50, whole: 49, lost: 1, ..Records::default() });
        assert_eq!(checked(&sent, &[]).lost, 50);
    }

    #[test]
    fn a_torn_record_is_found_and_those_behind_it_are() {
        let (sent, mut records) = all(2, 50);
        let len = records[20].len();
        records[20].truncate(len / 2);
        let found = checked(&sent, &records);
        assert_eq!(found, Records { sent: 50, whole: 49, lost: 1, torn: 1, ..Records::default() });
        records[20] = vec![0; len];
        assert_eq!(checked(&sent, &records), found);
        records[49].pop();
        let found = checked(&sent, &records);
        assert_eq!((found.whole, found.lost, found.torn), (48, 2, 2));
    }

    #[test]
    fn a_record_within_another_is_torn_around_it() {
        let (sent, mut records) = all(1, 10);
        let (inner, outer) = (records[5].clone(), records[4].clone());
        records[4] = outer[..30].to_vec();
        records.insert(6, outer[30..].to_vec());
        let found = checked(&sent, &records);
        assert!(records.contains(&inner));
        assert_eq!(found, Records { sent: 10, whole: 9, lost: 1, torn: 2, ..Records::default() });
    }

    #[test]
    fn a_doubled_record_is_found() {
        let (sent, mut records) = all(2, 50);
        records.push(records[3].clone());
        let found = checked(&sent, &records);
        assert_eq!(found, Records { sent: 50, whole: 50, doubled: 1, ..Records::default() });
    }

    #[test]
    fn a_swapped_record_is_found() {
        let (sent, mut records) = all(2, 50);
        records.swap(7, 8);
        let found = checked(&sent, &records);
        assert_eq!(found, Records { sent: 50, whole: 50, out_of_order: 1, ..Records::default() });
    }

    #[test]
    fn bytes_that_nobody_sent_are_no_record() {
        let (sent, _) = all(1, 10);
        let (_, more) = all(2, 22);
        // Messages are recognized by their stamps. The first ten of the first producer are among
        // the messages sent.
        let found = checked(&sent, &more);
        assert_eq!((found.whole, found.lost), (10, 0));
        assert_eq!(found.torn, 12);
    }
}
