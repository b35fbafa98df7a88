//! The messages: random bytes of random lengths, generated before the clock starts. It is a
//! separate file because every method of appending uses it.

use super::Work;
use crate::Result;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The fixed seed, so that every method appends the same sequence of messages.
const SEED: u64 = 0x0061_7070_656e_6400;
/// The number of bytes from which the messages are taken as slices. They fit into a processor's
/// cache, where a message that has just arrived would also be, and are too many for a drive to find
/// repetitions.
const CONTENT_BYTES: usize = 8 << 20;
/// The number of random lengths. After that, the lengths repeat.
const LENGTHS: usize = 1 << 16;

/// The messages of all producers.
#[derive(Clone, Debug)]
pub struct Messages {
    content: Vec<u8>,
    lengths: Vec<u32>,
    /// The number of messages and of producers, and the range of lengths.
    pub work: Work,
}

impl Messages {
    /// Generates the messages of `work`.
    pub fn new(work: &Work) -> Result<Messages> {
        let Work { shortest, longest, .. } = *work;
        let span =
            longest.checked_sub(shortest).ok_or("the longest is shorter than the shortest")?;
        let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
        let mut content = vec![0; CONTENT_BYTES];
        random.fill_bytes(&mut content);
        // The high half of the product is uniform in 0..=span.
        let draw =
            || shortest + ((u64::from(random.next_u32()) * (u64::from(span) + 1)) >> 32) as u32;
        let lengths = std::iter::repeat_with(draw).take(LENGTHS).collect();
        Ok(Messages { content, lengths, work: *work })
    }

    /// Returns messages of the same lengths that are valid lines, without a line feed or a NUL.
    pub fn lines(&self) -> Messages {
        let content = self.content.iter().map(|byte| b' ' + byte % 64).collect();
        Messages { content, ..self.clone() }
    }

    /// Returns one producer's messages, in order.
    pub fn share(&self, producer: u32) -> impl Iterator<Item = &[u8]> {
        let part = self.content.len() / self.work.producers as usize;
        let mut offset = producer as usize * part;
        let numbers = u64::from(producer)..self.work.messages;
        numbers.step_by(self.work.producers as usize).map(move |number| {
            let length = self.length(number);
            if offset + length > self.content.len() {
                offset = 0;
            }
            offset += length;
            &self.content[offset - length..offset]
        })
    }

    /// Returns the total length of all messages, in bytes.
    pub fn total_bytes(&self) -> u64 {
        (0..self.work.messages).map(|number| self.length(number) as u64).sum()
    }

    fn length(&self, number: u64) -> usize {
        self.lengths[number as usize % self.lengths.len()] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(messages: u64, producers: u32) -> Work {
        Work { messages, producers, shortest: 300, longest: 2000 }
    }

    #[test]
    fn producers_share_all_messages() {
        let messages = Messages::new(&work(1001, 4)).expect("a range");
        let shares: Vec<Vec<&[u8]>> = (0..4).map(|of| messages.share(of).collect()).collect();
        assert_eq!(shares.iter().map(Vec::len).collect::<Vec<_>>(), [251, 250, 250, 250]);
        let bytes: usize = shares.iter().flatten().map(|message| message.len()).sum();
        assert_eq!(bytes as u64, messages.total_bytes());
    }

    #[test]
    fn lengths_reach_both_ends_and_lie_evenly_between() {
        let messages = Messages::new(&work(LENGTHS as u64, 1)).expect("a range");
        let lengths: Vec<usize> = messages.share(0).map(<[u8]>::len).collect();
        assert_eq!(lengths.iter().min(), Some(&300));
        assert_eq!(lengths.iter().max(), Some(&2000));
        let mean = lengths.iter().sum::<usize>() / lengths.len();
        assert!((1140..1160).contains(&mean), "{mean}");
    }

    #[test]
    fn a_message_after_the_end_of_the_content_begins_at_its_start() {
        let work = Work { messages: 400, producers: 1, shortest: 65_536, longest: 65_536 };
        let messages = Messages::new(&work).expect("a range");
        let all: Vec<&[u8]> = messages.share(0).collect();
        assert_eq!(all[CONTENT_BYTES / 65_536], all[0]);
        assert_ne!(all[1], all[0]);
    }

    #[test]
    fn a_range_that_ends_before_it_begins_is_refused() {
        let work = Work { shortest: 10, longest: 9, ..work(1, 1) };
        let message = Messages::new(&work).expect_err("no range").to_string();
        assert_eq!(message, "the longest is shorter than the shortest");
    }
}
