//! Doors: protocol parsers without I/O. Bytes come in, messages go to the log, answers come out.

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod driven;
mod frames;
pub(crate) mod http;
mod oversize;
mod relp;
mod resp;

pub use frames::Frame;
pub(crate) use frames::{Frames, without_trailer};
pub use oversize::Oversize;
pub(crate) use relp::Relp;
pub(crate) use resp::{READS_MAX, Resp};

use crate::access::Access;
use crate::intake::Intake;
use crate::limits::Refusal;
use std::sync::Arc;

/// The protocol of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Door {
    /// Messages on a stream, framed one after another, without answers.
    Frames(Frame),
    /// One message per datagram, without answers.
    Datagrams,
    /// RELP as spoken by rsyslog's `omrelp`.
    Relp,
    /// RESP2 and RESP3 as spoken by Redis clients.
    Resp,
    /// HTTP/1.1.
    Http,
}

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
