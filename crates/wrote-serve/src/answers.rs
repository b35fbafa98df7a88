//! Queues a connection's answers in order, and holds each back until its message is safe.

use std::collections::VecDeque;

/// The capacity kept between batches, to avoid an allocation for each. Idle connections keep none.
const KEPT_BYTES: usize = 4096;

/// Answers in message order.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    bytes: VecDeque<u8>,
    /// The number of bytes at the front that may be sent.
    released: usize,
    /// The answers that are held back. A later answer is never sent before an earlier one.
    held: VecDeque<Held>,
    /// The number of messages after the last held answer; the next answer covers them.
    messages: u64,
}

#[derive(Debug)]
struct Held {
    /// The sequence before which all records must be safe.
    end: u64,
    /// The length of the answer in bytes.
    bytes: usize,
    /// The number of messages that this answer covers.
    messages: u64,
}

impl Answers {
    /// Counts a message that the next held answer covers.
    pub(crate) fn take_message(&mut self) {
        self.messages += 1;
    }

    /// Adds an answer that may be sent once every record before `end` is safe.
    pub(crate) fn push(&mut self, end: u64, answer: &[u8]) {
        self.bytes.extend(answer);
        match self.held.back_mut() {
            // The previous answer's wait covers this answer, too.
            Some(last) if last.end >= end => {
                last.bytes += answer.len();
                if end > 0 {
                    last.messages += std::mem::take(&mut self.messages);
                }
            }
            None if end == 0 => self.released += answer.len(),
            _ => {
                let messages = std::mem::take(&mut self.messages);
                self.held.push_back(Held { end, bytes: answer.len(), messages });
            }
        }
    }

    /// Releases the answers to records before `safe`. Returns the number of messages that they
    /// cover.
    pub(crate) fn release(&mut self, safe: u64) -> u64 {
        let mut count = 0;
        while let Some(held) = self.held.front()
            && held.end <= safe
        {
            self.released += held.bytes;
            count += held.messages;
            self.held.pop_front();
        }
        count
    }

    /// Returns the sequence that the next held answer waits for; `None` if no answer is held.
    pub(crate) fn awaited(&self) -> Option<u64> {
        self.held.front().map(|held| held.end)
    }

    /// Returns the sequence that the last held answer waits for; `None` if no answer is held.
    pub(crate) fn last_awaited(&self) -> Option<u64> {
        self.held.back().map(|held| held.end)
    }

    /// Returns bytes that may be sent now, though not always all of them.
    pub(crate) fn sendable(&self) -> &[u8] {
        let (front, _) = self.bytes.as_slices();
        &front[..front.len().min(self.released)]
    }

    /// Removes the first `bytes` bytes, which have been sent.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.bytes.drain(..bytes);
        self.released -= bytes;
        if self.bytes.is_empty() && self.capacity_bytes() > KEPT_BYTES {
            let messages = self.messages;
            *self = Answers { messages, ..Answers::default() };
        }
    }

    /// Returns the memory used in bytes; 0 if there are no answers.
    pub(crate) fn held_bytes(&self) -> usize {
        if self.is_empty() { 0 } else { self.capacity_bytes() }
    }

    fn capacity_bytes(&self) -> usize {
        self.bytes.capacity() + self.held.capacity() * size_of::<Held>()
    }

    /// Returns the length of all answers in bytes, both sendable and held.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(answers: &mut Answers) -> Vec<u8> {
        let mut sent = Vec::new();
        while !answers.sendable().is_empty() {
            let part = answers.sendable().to_vec();
            answers.sent(part.len());
            sent.extend(part);
        }
        sent
    }

    #[test]
    fn an_answer_leaves_once_its_record_is_safe_and_all_before_it_have_left() {
        let mut answers = Answers::default();
        answers.push(0, b"at once ");
        answers.take_message();
        answers.push(5, b"five ");
        answers.push(0, b"with it ");
        answers.take_message();
        answers.take_message();
        answers.push(7, b"seven");
        assert_eq!(send(&mut answers), b"at once ");
        assert_eq!(answers.awaited(), Some(5));
        assert_eq!(answers.release(4), 0);
        assert_eq!(send(&mut answers), b"");
        assert_eq!(answers.release(6), 1);
        assert_eq!(send(&mut answers), b"five with it ");
        assert_eq!(answers.release(7), 2);
        assert_eq!((send(&mut answers), answers.awaited()), (b"seven".to_vec(), None));
        assert!(answers.is_empty());
    }
}
