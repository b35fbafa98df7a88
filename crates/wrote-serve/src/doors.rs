//! The doors: protocols as parsers without I/O. Bytes come in, messages go to the log, answers out.

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
    /// Messages on a stream, one behind the other, without answers.
    Frames(Frame),
    /// A message a datagram, without answers.
    Datagrams,
    /// RELP, as rsyslog's `omrelp` speaks it.
    Relp,
    /// RESP2 and RESP3, as clients of Redis speak it.
    Resp,
    /// HTTP/1.1.
    Http,
}

/// A protocol on a stream of bytes.
pub(crate) trait Protocol: Send + Unpin + 'static {
    /// Bytes beside one message that the door leaves unread at most.
    #[cfg(any(test, feature = "fuzzing"))]
    const FRAME_BYTES_MAX: usize = 1024 + 64;

    /// Takes whole messages and commands from the beginning of `input`, and returns how many of its
    /// bytes are done with. The rest is given again, with more behind it. It stops where the intake
    /// is full, and after much work, which it leaves for its next turn.
    fn take(&mut self, input: &[u8], intake: &mut Intake<'_>) -> Result<usize, Refusal>;

    /// Takes what the client left unfinished when it ended the stream, or the server drains.
    /// Returns as [`Protocol::take`] does.
    fn take_rest(&mut self, rest: &[u8], intake: &mut Intake<'_>) -> Result<usize, Refusal> {
        let _ = intake;
        Ok(rest.len())
    }

    /// Takes the tokens that are in force from now on. Fails if that of the client is none of them.
    fn renew(&mut self, access: &Arc<Access>) -> Result<(), Refusal> {
        let _ = access;
        Ok(())
    }

    /// Tells whether the client has not given the token that is asked for.
    fn is_stranger(&self) -> bool {
        false
    }

    /// Returns the bytes that the parser keeps beside the input, if they are more than a few.
    fn held_bytes(&self) -> usize {
        0
    }

    /// Says goodbye, behind the last answer, before the server ends the connection.
    fn goodbye(&mut self, intake: &mut Intake<'_>) {
        let _ = intake;
    }
}
