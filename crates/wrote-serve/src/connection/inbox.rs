//! The input of a connection, as far as its door has not taken it.

use crate::stream::Stream;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::ReadBuf;

/// The maximum number of bytes read at once.
pub(super) const READ_BYTES: usize = 128 << 10;
/// A kept message longer than this is not copied on each read.
const COPIED_BYTES_MAX: usize = 16 << 10;

/// The input of a connection: its state, and an unfinished message or messages that found no room.
pub(super) struct Inbox {
    kept: Vec<u8>,
    pub state: Input,
    /// The stream ended abnormally; an unfinished message is dropped.
    pub is_cut: bool,
    /// The kept bytes still hold input to take: commands after an answer that just completed.
    pub has_rest: bool,
}

/// The state of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    Open,
    /// Bytes that have arrived are still read; then the connection ends.
    Draining,
    /// The stream has ended; kept bytes are still to be taken.
    Ended,
    /// All input was taken and the goodbye queued.
    Done,
}

impl Inbox {
    pub(super) fn new() -> Inbox {
        let (kept, state) = (Vec::new(), Input::Open);
        Inbox { kept, state, is_cut: false, has_rest: false }
    }

    pub(super) fn len(&self) -> usize {
        self.kept.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Reads up to `most` bytes behind the copied ones in `scratch`. Returns how many, which is 0
    /// where the input ends.
    pub(super) fn read(
        &mut self,
        stream: &mut impl Stream,
        scratch: &mut Vec<u8>,
        most: usize,
        context: &mut Context<'_>,
    ) -> Poll<usize> {
        let copied = self.copied();
        if scratch.len() < copied + most {
            scratch.resize(copied + most, 0);
        }
        if self.state == Input::Ended {
            return Poll::Ready(0);
        }
        let mut buffer = ReadBuf::new(&mut scratch[copied..copied + most]);
        match Pin::new(&mut *stream).poll_read(context, &mut buffer) {
            Poll::Ready(Ok(())) if buffer.filled().is_empty() => self.state = Input::Ended,
            Poll::Ready(Ok(())) => return Poll::Ready(buffer.filled().len()),
            // The client is gone or aborted.
            Poll::Ready(Err(_)) => (self.state, self.is_cut) = (Input::Ended, true),
            // Everything that had arrived when draining began has been read.
            Poll::Pending if self.state == Input::Draining && !stream.has_unread() => {
                (self.state, self.is_cut) = (Input::Ended, true);
            }
            Poll::Pending => return Poll::Pending,
        }
        Poll::Ready(0)
    }

    /// Keeps the newly read bytes, without taking any.
    pub(super) fn keep(&mut self, scratch: &[u8], read: usize) {
        let copied = self.copied();
        self.kept.extend_from_slice(&scratch[copied..copied + read]);
    }

    /// Returns how many kept bytes are copied to the start of the thread's buffer: all, or none of
    /// many, to which the read bytes are added instead.
    fn copied(&self) -> usize {
        if self.kept.len() > COPIED_BYTES_MAX { 0 } else { self.kept.len() }
    }

    /// Returns whether the kept bytes are too many to copy to the thread's buffer.
    pub(super) fn is_long(&self) -> bool {
        self.copied() < self.kept.len()
    }

    /// Moves all input out: the kept bytes and those just read.
    pub(super) fn move_out(&mut self, read: &[u8]) -> Vec<u8> {
        let mut input = std::mem::take(&mut self.kept);
        if input.capacity() - input.len() < read.len() {
            input.reserve_exact(read.len().max(input.len() / 4));
        }
        input.extend_from_slice(read);
        input
    }

    /// Moves the input back, without the first `taken` bytes.
    pub(super) fn move_back(&mut self, mut input: Vec<u8>, taken: usize) {
        input.drain(..taken);
        if taken > 0 && input.capacity() > 2 * input.len() {
            input.shrink_to_fit();
        }
        self.kept = input;
    }

    /// Copies the kept bytes before those just read, and returns the length of all.
    pub(super) fn copy_out(&self, scratch: &mut Vec<u8>, read: usize) -> usize {
        let filled = self.kept.len() + read;
        if scratch.len() < filled {
            scratch.resize(filled, 0);
        }
        scratch[..self.kept.len()].copy_from_slice(&self.kept);
        filled
    }

    /// Keeps a copy of the rest, and no memory for an empty one.
    pub(super) fn copy_back(&mut self, rest: &[u8]) {
        self.kept.clear();
        self.kept.extend_from_slice(rest);
        if self.kept.is_empty() {
            self.kept = Vec::new();
        }
    }
}
