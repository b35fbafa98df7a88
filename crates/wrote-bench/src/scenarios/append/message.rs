//! The messages: random bytes with a stamp that identifies each message and detects damage.

use crate::settings::positive;
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::ops::Range;
use std::time::Instant;
use wrote_result::Error;
#[cfg(feature = "cli")]
use wrote_result::units;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The first bytes of a stamp.
pub(super) const MAGIC: [u8; 2] = [0xF7, 0xA3];
/// The length of a stamp: the magic number, followed in little-endian order by the producer (2
/// bytes), the length (4), the message number (8), and a checksum of these fields and of the body
/// (8).
const STAMP_BYTES: usize = 24;
const CHECKSUM_AT: usize = 16;
/// The minimum length of a message that can be identified.
pub(crate) const BYTES_MIN: u32 = 32;
pub(crate) const BYTES_MAX: u32 = 512 << 10;
/// The maximum number of producers. A stamp can encode it, and no machine has more threads.
pub(crate) const PRODUCERS_MAX: u32 = 1024;
/// The message lengths of the load test that this scenario reproduces.
const SIZES_USUAL: Sizes = Sizes { min_bytes: 300, max_bytes: 2000 };
/// The numbers of producers of a log: few, and many.
const PRODUCERS: [u32; 2] = [4, 64];
pub(crate) const MESSAGES_MAX: u64 = 1_000_000_000;
/// The number of bytes prepared for all producers. When they are used up, messages repeat except
/// for their stamps.
const READY_BYTES: usize = 32 << 20;
/// The seed of the messages, which are the same in every run.
const SEED: u64 = 0x6170_7065_6e64;

/// The lengths of messages, uniformly distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The minimum length, in bytes.
    pub min_bytes: u32,
    /// The maximum length, in bytes.
    pub max_bytes: u32,
}

/// The sequence of one producer's messages.
#[derive(Clone, Debug)]
pub(super) struct Messages {
    bytes: Vec<u8>,
    ready: Vec<Ready>,
    producer: u32,
    next: u64,
    count: u64,
}

/// A message without its stamp.
#[derive(Clone, Debug)]
struct Ready {
    range: Range<usize>,
    /// The checksum of the bytes after the stamp.
    checksum: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub len: usize,
    pub producer: u32,
    pub number: u64,
}

impl Messages {
    /// Divides `count` messages among the producers.
    pub(super) fn of_all(producers: u32, sizes: Sizes, count: u64) -> Vec<Messages> {
        let ready_bytes = READY_BYTES / producers as usize;
        let share = |producer: u32| {
            count / u64::from(producers)
                + u64::from(u64::from(producer) < count % u64::from(producers))
        };
        (0..producers)
            .map(|producer| Messages::new(producer, sizes, share(producer), ready_bytes))
            .collect()
    }

    fn new(producer: u32, sizes: Sizes, count: u64, ready_bytes: usize) -> Messages {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED + u64::from(producer));
        let (mut ranges, mut end) = (Vec::new(), 0);
        while (ranges.len() as u64) < count && (end < ready_bytes || ranges.is_empty()) {
            let begin = end;
            end += random.random_range(sizes.min_bytes..=sizes.max_bytes) as usize;
            ranges.push(begin..end);
        }
        let mut bytes = vec![0; end];
        random.fill_bytes(&mut bytes);
        let ready = |range: Range<usize>| Ready {
            checksum: xxh3_64(&bytes[range.start + STAMP_BYTES..range.end]),
            range,
        };
        let ready = ranges.into_iter().map(ready).collect();
        Messages { bytes, ready, producer, next: 0, count }
    }

    /// Returns the next message, with its stamp; `None` after the last message.
    pub(super) fn next(&mut self) -> Option<&[u8]> {
        if self.next == self.count {
            return None;
        }
        let ready = &self.ready[(self.next % self.ready.len() as u64) as usize];
        let message = &mut self.bytes[ready.range.clone()];
        let stamp = Stamp { len: message.len(), producer: self.producer, number: self.next };
        stamp.write(ready.checksum, message);
        self.next += 1;
        Some(message)
    }

    /// Like [`Messages::next`], but returns `None` once `now` has reached `until`.
    pub(super) fn next_before(&mut self, until: Option<Instant>, now: Instant) -> Option<&[u8]> {
        if until.is_some_and(|until| now >= until) { None } else { self.next() }
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the number of messages sent so far.
    pub(super) fn sent(&self) -> u64 {
        self.next
    }

    /// Returns the number of bytes in the first `count` messages.
    pub(super) fn bytes_of(&self, count: u64) -> u64 {
        if count == 0 {
            return 0;
        }
        let bytes =
            |ready: &[Ready]| ready.iter().map(|ready| ready.range.len() as u64).sum::<u64>();
        let (times, rest) = (count / self.ready.len() as u64, count % self.ready.len() as u64);
        times * bytes(&self.ready) + bytes(&self.ready[..rest as usize])
    }
}

impl Stamp {
    /// Parses the stamp at the start of `bytes`; `None` if they don't start with an intact message.
    pub(super) fn read(bytes: &[u8]) -> Option<Stamp> {
        let (said, checksum) = bytes.get(..STAMP_BYTES)?.split_at(CHECKSUM_AT);
        let rest = said.strip_prefix(&MAGIC)?;
        let (producer, rest) = rest.split_first_chunk()?;
        let (len, number) = rest.split_first_chunk()?;
        let stamp = Stamp {
            len: u32::from_le_bytes(*len) as usize,
            producer: u16::from_le_bytes(*producer).into(),
            number: u64::from_le_bytes(number.try_into().ok()?),
        };
        let body = bytes.get(STAMP_BYTES..stamp.len)?;
        let expected = xxh3_64_with_seed(said, xxh3_64(body)).to_le_bytes();
        (checksum == expected).then_some(stamp)
    }

    fn write(self, body_checksum: u64, message: &mut [u8]) {
        message[..2].copy_from_slice(&MAGIC);
        message[2..4].copy_from_slice(&(self.producer as u16).to_le_bytes());
        message[4..8].copy_from_slice(&(self.len as u32).to_le_bytes());
        message[8..CHECKSUM_AT].copy_from_slice(&self.number.to_le_bytes());
        let checksum = xxh3_64_with_seed(&message[..CHECKSUM_AT], body_checksum);
        message[CHECKSUM_AT..STAMP_BYTES].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// The settings of the scenario `append`.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Append {
    /// Messages of one run of append, from 1 to 1000000000; by default as many as fit in 0.3 s
    #[cfg_attr(feature = "cli", arg(long, value_name = "N",
        value_parser = units::parse_count::<{ MESSAGES_MAX as u32 }>, allow_hyphen_values = true))]
    pub messages: Option<u32>,

    /// Lengths of the messages of append: 300..2000, 64, 1K..4K [default: 300..2000]
    #[cfg_attr(feature = "cli", arg(long, value_name = "MIN..MAX", value_parser = sizes,
        allow_hyphen_values = true))]
    pub message_size: Option<Sizes>,

    /// Producers that append to a log at once, each number in its own rows [default: 4,64]
    #[cfg_attr(feature = "cli", arg(long, value_name = "N,..",
        value_delimiter = ',', value_parser = units::parse_count::<PRODUCERS_MAX>,
        allow_hyphen_values = true))]
    pub producers: Vec<u32>,
}

impl Append {
    /// Returns the numbers of producers for the rows with a log, in ascending order.
    pub(super) fn checked_producers(&self) -> Result<Vec<u32>, Error> {
        let mut producers = self.producers.clone();
        if producers.is_empty() {
            producers = PRODUCERS.to_vec();
        }
        producers.sort_unstable();
        producers.dedup();
        for number in &producers {
            positive("producers", (*number).into(), PRODUCERS_MAX.into())?;
        }
        Ok(producers)
    }

    pub(super) fn checked_messages(&self) -> Result<Option<u64>, Error> {
        let messages = self.messages.map(u64::from);
        messages.map_or(Ok(()), |number| positive("messages", number, MESSAGES_MAX))?;
        Ok(messages)
    }

    pub(super) fn checked_sizes(&self) -> Result<Sizes, Error> {
        let sizes = self.message_size.unwrap_or(SIZES_USUAL).checked();
        sizes.map_err(|problem| Error::Usage(format!("--message-size: {problem}")))
    }
}

impl Sizes {
    fn checked(self) -> Result<Sizes, String> {
        let Sizes { min_bytes, max_bytes } = self;
        if min_bytes < BYTES_MIN || max_bytes > BYTES_MAX || min_bytes > max_bytes {
            return Err(format!(
                "{min_bytes}..{max_bytes}: append needs messages of {BYTES_MIN} to {BYTES_MAX} \
                 bytes, the shortest first"
            ));
        }
        Ok(self)
    }
}

/// Parses `MIN..MAX`, or a single size for all messages.
#[cfg(feature = "cli")]
fn sizes(text: &str) -> Result<Sizes, String> {
    let (min, max) = text.split_once("..").unwrap_or((text, text));
    let bytes =
        |text| units::parse_block_size(text).map(|of| u32::try_from(of).unwrap_or(u32::MAX));
    Sizes { min_bytes: bytes(min)?, max_bytes: bytes(max)? }.checked()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    const SIZES: Sizes = Sizes { min_bytes: 32, max_bytes: 2000 };

    #[cfg(feature = "cli")]
    #[test]
    fn messages_have_one_size_or_a_range_of_sizes() {
        let of = |min_bytes, max_bytes| Ok(Sizes { min_bytes, max_bytes });
        assert_eq!(sizes("300..2000"), of(300, 2000));
        assert_eq!(sizes("64"), of(64, 64));
        assert_eq!(sizes("1K..4KiB"), of(1024, 4096));
        for bad in ["2000..300", "31", "32..1G", "", "..", "300..", "300...2000", "-1..5"] {
            let problem = sizes(bad).unwrap_err();
            assert_eq!(problem.lines().count(), 1, "{bad:?}: {problem}");
        }
    }

    #[test]
    fn a_message_says_which_it_is() {
        let mut all = Messages::of_all(3, SIZES, 100);
        let counts: Vec<u64> = all.iter().map(Messages::count).collect();
        assert_eq!(counts, [34, 33, 33]);
        for (producer, messages) in all.iter_mut().enumerate() {
            let (mut number, mut total_bytes) = (0, 0);
            while let Some(message) = messages.next() {
                let stamp = Stamp::read(message).unwrap();
                let len = message.len();
                assert_eq!(stamp, Stamp { len, producer: producer as u32, number });
                assert!((32..=2000).contains(&len));
                (number, total_bytes) = (number + 1, total_bytes + len as u64);
            }
            assert_eq!(
                (number, total_bytes),
                (messages.count(), messages.bytes_of(messages.count()))
            );
        }
    }

    #[test]
    fn a_message_with_any_bit_changed_is_not_whole() {
        let mut messages = Messages::of_all(1, SIZES, 1);
        let mut bytes = messages[0].next().unwrap().to_vec();
        assert!(Stamp::read(&bytes).is_some());
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(Stamp::read(&bytes).is_none(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(Stamp::read(&bytes[..bytes.len() - 1]).is_none());
    }

    #[test]
    fn ready_messages_are_bounded_and_come_again_with_another_stamp() {
        // M2, W8
        let mut messages = Messages::new(0, SIZES, 1000, 10_000);
        assert!(messages.bytes.len() < 12_000 && messages.ready.len() < 100);
        let mut all = HashSet::new();
        let mut total_bytes = 0;
        while let Some(message) = messages.next() {
            assert!(Stamp::read(message).is_some() && all.insert(message.to_vec()));
            total_bytes += message.len() as u64;
        }
        assert_eq!((all.len(), messages.bytes_of(messages.count())), (1000, total_bytes));
    }

    #[test]
    fn no_messages_are_no_bytes() {
        let mut none = Messages::of_all(2, SIZES, 1).pop().unwrap();
        assert!(none.next().is_none());
        assert_eq!(none.bytes_of(0), 0);
    }
}
