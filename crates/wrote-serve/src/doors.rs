//! Doors: protocol parsers without I/O. Bytes come in, messages go to the log, answers come out.

mod frames;
pub(crate) mod http;
mod relp;
mod resp;

pub(crate) use frames::{Frames, without_trailer};
pub(crate) use relp::Relp;
pub(crate) use resp::{READS_MAX, Resp};

use crate::config::access::Access;
use crate::intake::Intake;
use crate::refusals::Refusal;
use std::sync::Arc;

/// The most bytes that are skipped. A larger count is considered wrong.
const PASSED_BYTES_MAX: usize = 64 << 20;

/// A protocol on a byte stream.
pub(crate) trait Protocol: Send + Unpin + 'static {
    /// The most unread bytes that the door leaves beyond one message.
    #[cfg(any(test, feature = "fuzzing"))]
    const FRAME_BYTES_MAX: usize = 1024 + 64;

    /// Takes complete messages and commands from the start of `input`, and returns the bytes
    /// consumed. The rest is passed again with more bytes after it. Stops when the intake is full,
    /// and after much work, leaving the rest for its next turn.
    fn take(&mut self, input: &[u8], intake: &mut Intake<'_>) -> Result<usize, Refusal>;

    /// Takes unfinished input after the client ended the stream or the server drains. Returns like
    /// [`Protocol::take`].
    fn take_rest(&mut self, rest: &[u8], intake: &mut Intake<'_>) -> Result<usize, Refusal> {
        let _ = intake;
        Ok(rest.len())
    }

    /// Switches to the current tokens. Fails if the client's token is no longer valid.
    fn renew(&mut self, access: &Arc<Access>) -> Result<(), Refusal> {
        let _ = access;
        Ok(())
    }

    /// Returns whether the client still has to give a token.
    fn is_stranger(&self) -> bool {
        false
    }

    /// Returns the memory that the parser keeps besides the input, if considerable.
    fn held_bytes(&self) -> usize {
        0
    }

    /// Queues a goodbye after the last answer, before the server ends the connection.
    fn goodbye(&mut self, intake: &mut Intake<'_>) {
        let _ = intake;
    }
}

/// The rest of an oversized message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest<End> {
    /// Skip this many bytes.
    Passed(usize),
    /// Skip through the next delimiter.
    PassedUntil(End),
    /// Take this many bytes in parts.
    Taken(usize),
    /// Take everything up to the next delimiter in parts.
    TakenUntil(End),
}
