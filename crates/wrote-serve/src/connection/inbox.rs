//! The input of a connection that its door has not processed yet.

use crate::stream::Stream;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::ReadBuf;

/// The maximum number of bytes read at once.
pub(super) const READ_BYTES: usize = 128 << 10;
/// The maximum length of a kept message that is copied on each read.
const COPIED_BYTES_MAX: usize = 16 << 10;

/// The input of a connection: its state, and an unfinished message or messages that had no room.
pub(super) struct Inbox {
    kept: Vec<u8>,
    pub state: Input,
    /// Whether the stream ended abnormally, so that an unfinished message is dropped.
    pub is_cut: bool,
    /// Whether the kept bytes contain input that can be processed, such as commands that waited for
    /// an answer.
    pub has_rest: bool,
}

/// The state of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    Open,
    /// Bytes that have already arrived are still read, and then the connection is closed.
    Draining,
    /// The stream has ended; kept bytes may still have to be processed.
    Ended,
    /// All input has been processed, and the goodbye is queued.
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

    /// Reads up to `most` bytes into `scratch`, after the space for copied bytes. Returns the
    /// number of bytes, or 0 if the input has ended.
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
            // The client has disconnected or aborted the connection.
            Poll::Ready(Err(_)) => (self.state, self.is_cut) = (Input::Ended, true),
            // Everything that had arrived before draining began has been read.
            Poll::Pending if self.state == Input::Draining && !stream.has_unread() => {
                (self.state, self.is_cut) = (Input::Ended, true);
            }
            Poll::Pending => return Poll::Pending,
        }
        Poll::Ready(0)
    }

    /// Keeps the newly read bytes without processing any.
    pub(super) fn keep(&mut self, scratch: &[u8], read: usize) {
        let copied = self.copied();
        self.kept.extend_from_slice(&scratch[copied..copied + read]);
    }

    /// Returns the number of kept bytes that are copied to the start of the thread's buffer: all,
    /// or 0 if there are too many. In that case, the newly read bytes are appended to the kept
    /// bytes instead.
    fn copied(&self) -> usize {
        if self.kept.len() > COPIED_BYTES_MAX { 0 } else { self.kept.len() }
    }

    /// Returns whether there are too many kept bytes to copy to the thread's buffer.
    pub(super) fn is_long(&self) -> bool {
        self.copied() < self.kept.len()
    }

    /// Moves all input out: the kept bytes, followed by those just read.
    pub(super) fn move_out(&mut self, read: &[u8]) -> Vec<u8> {
        let mut input = std::mem::take(&mut self.kept);
        if input.capacity() - input.len() < read.len() {
            input.reserve_exact(read.len().max(input.len() / 4));
        }
        input.extend_from_slice(read);
        input
    }

    /// Moves the input back, except for the first `taken` bytes.
    pub(super) fn move_back(&mut self, mut input: Vec<u8>, taken: usize) {
        input.drain(..taken);
        if taken > 0 && input.capacity() > 2 * input.len() {
            input.shrink_to_fit();
        }
        self.kept = input;
    }

    /// Copies the kept bytes into the space before those just read. Returns the total length.
    pub(super) fn copy_out(&self, scratch: &mut Vec<u8>, read: usize) -> usize {
        let filled = self.kept.len() + read;
        if scratch.len() < filled {
            scratch.resize(filled, 0);
        }
        scratch[..self.kept.len()].copy_from_slice(&self.kept);
        filled
    }

    /// Keeps a copy of the rest. If the rest is empty, keeps no memory.
    pub(super) fn copy_back(&mut self, rest: &[u8]) {
        self.kept.clear();
        self.kept.extend_from_slice(rest);
        if self.kept.is_empty() {
            self.kept = Vec::new();
        }
    }
}
