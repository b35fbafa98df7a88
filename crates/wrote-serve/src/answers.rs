//! The answers of one connection, in order, each held back until its message is safe.

use std::collections::VecDeque;

/// Answers that were sent or released keep their place in memory up to this, so that each batch
/// does not allocate anew. An idle connection keeps nothing.
const KEPT_BYTES: usize = 4096;

/// Answers in the order of their messages.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    bytes: VecDeque<u8>,
    /// The bytes at the front that may leave.
    released: usize,
    /// The answers that are held back: the sequence before which every record must be safe, and the
    /// bytes that leave then. A later answer never leaves before an earlier one.
    held: VecDeque<(u64, usize)>,
}

impl Answers {
    /// Adds an answer that may leave once every record before `end` is safe.
    pub(crate) fn push(&mut self, end: u64, answer: &[u8]) {
        self.bytes.extend(answer);
        match self.held.back_mut() {
            // A shorter wait ends no earlier than the one before it.
            Some((last, len)) if *last >= end => *len += answer.len(),
            None if end == 0 => self.released += answer.len(),
            _ => self.held.push_back((end, answer.len())),
        }
    }

    /// Releases the answers to records before `safe`, and returns their number.
    pub(crate) fn release(&mut self, safe: u64) -> u64 {
        let mut count = 0;
        while let Some(&(end, len)) = self.held.front()
            && end <= safe
        {
            self.held.pop_front();
            self.released += len;
            count += 1;
        }
        count
    }

    /// The sequence before which every record must be safe for the next answer to leave.
    pub(crate) fn awaited(&self) -> Option<u64> {
        self.held.front().map(|&(end, _)| end)
    }

    /// The next bytes to send; empty if none may leave.
    pub(crate) fn sendable(&self) -> &[u8] {
        let (front, _) = self.bytes.as_slices();
        &front[..front.len().min(self.released)]
    }

    /// Takes off the first `bytes`, which were sent.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.bytes.drain(..bytes);
        self.released -= bytes;
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT_BYTES {
            *self = Answers::default();
        }
    }

    /// The bytes of all answers, sendable or not.
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
        answers.push(5, b"five ");
        answers.push(0, b"with it ");
        answers.push(7, b"seven");
        assert_eq!(send(&mut answers), b"at once ");
        assert_eq!(answers.awaited(), Some(5));
        assert_eq!(answers.release(4), 0);
        assert_eq!(send(&mut answers), b"");
        assert_eq!(answers.release(6), 1);
        assert_eq!(send(&mut answers), b"five with it ");
        assert_eq!(answers.release(7), 1);
        assert_eq!((send(&mut answers), answers.awaited()), (b"seven".to_vec(), None));
        assert!(answers.is_empty());
    }
}
