//! Clients without I/O: messages in, bytes for the server out; bytes of answers in, counts out.

mod frames;
mod http;
mod relp;
mod resp;

pub(crate) use frames::Frame;

use frames::Frames;
use http::Http;
use relp::Relp;
use resp::Resp;

/// The protocol of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Protocol {
    /// Messages one behind the other, without answers.
    Frames(Frame),
    /// RELP, as `omrelp` speaks it.
    Relp,
    /// Redis's: one `XADD` a message.
    Resp,
    /// `POST /append` with messages by lines; one request in flight.
    Http,
}

impl Protocol {
    /// Whether the server answers messages.
    pub(crate) fn answers(self) -> bool {
        !matches!(self, Protocol::Frames(_))
    }

    pub(super) fn client(self) -> Box<dyn Client> {
        match self {
            Protocol::Frames(frame) => Box::new(Frames(frame)),
            Protocol::Relp => Box::<Relp>::default(),
            Protocol::Resp => Box::new(Resp),
            Protocol::Http => Box::<Http>::default(),
        }
    }
}

/// One connection's side of a protocol.
pub(super) trait Client {
    /// Appends the greeting that the server answers before it takes messages.
    fn open(&mut self, _out: &mut Vec<u8>) {}

    /// Whether messages may be sent.
    fn is_open(&self) -> bool {
        true
    }

    /// Appends the beginning of a request of `messages` messages of `message_bytes` bytes.
    fn begin(&mut self, _messages: usize, _message_bytes: usize, _out: &mut Vec<u8>) {}

    /// Appends a message of the request.
    fn put(&mut self, message: &[u8], out: &mut Vec<u8>);

    /// Reads the whole answers at the beginning of `input`.
    ///
    /// # Errors
    ///
    /// The answer that is no acknowledgement, in words.
    fn answers(&mut self, input: &[u8]) -> Result<Answers, String>;
}

/// The outcome of [`Client::answers`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Answers {
    /// Bytes of whole answers. The rest is given again, with more behind it.
    pub used_bytes: usize,
    /// Messages that they acknowledge, in the order of sending.
    pub acknowledged: usize,
}

/// The line that `bytes` begin with, without its CRLF or LF, and the bytes behind it.
fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let line = &bytes[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), &bytes[end + 1..]))
}

/// A part of an answer, for an error.
fn shown(answer: &[u8]) -> String {
    const SHOWN_BYTES_MAX: usize = 80;
    answer[..answer.len().min(SHOWN_BYTES_MAX)].escape_ascii().to_string()
}

/// Appends a number in decimal digits.
fn put_number(number: usize, out: &mut Vec<u8>) {
    use std::io::Write;
    write!(out, "{number}").expect("memory takes every byte");
}
