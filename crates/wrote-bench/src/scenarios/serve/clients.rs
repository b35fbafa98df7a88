//! Clients without I/O: turn messages into bytes for the server, and count its answers.

mod frames;
mod http;
mod relp;
mod resp;

pub(crate) use frames::Frame;

use frames::Frames;
use http::Http;
use relp::Relp;
use resp::Resp;

/// A row's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Protocol {
    /// Framed messages without answers.
    Frames(Frame),
    /// RELP as spoken by `omrelp`.
    Relp,
    /// Redis's protocol: one `XADD` per message.
    Resp,
    /// `POST /append` with one message per line, one request in flight.
    Http,
}

impl Protocol {
    /// Returns whether the server answers messages.
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

/// The client side of a protocol on one connection.
pub(super) trait Client {
    /// Appends the greeting, which the server answers before it accepts messages.
    fn open(&mut self, _out: &mut Vec<u8>) {}

    /// Returns whether messages may be sent.
    fn is_open(&self) -> bool {
        true
    }

    /// Appends the start of a request of `messages` messages of `message_bytes` bytes.
    fn begin(&mut self, _messages: usize, _message_bytes: usize, _out: &mut Vec<u8>) {}

    /// Appends a message of the request.
    fn put(&mut self, message: &[u8], out: &mut Vec<u8>);

    /// Parses complete answers at the start of `input`.
    ///
    /// # Errors
    ///
    /// An answer that is not an acknowledgement, described.
    fn answers(&mut self, input: &[u8]) -> Result<Answers, String>;
}

/// The outcome of [`Client::answers`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Answers {
    /// The length of the complete answers. The rest is passed again with more bytes after it.
    pub used_bytes: usize,
    /// The messages that they acknowledge, in sending order.
    pub acknowledged: usize,
}

/// Splits off the first line, without its CRLF or LF.
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
