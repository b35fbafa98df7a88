//! Messages on a stream, one behind the other: by lines, octet counts, NUL, or lengths.

use super::Protocol;
use super::oversize::{Oversize, PASSED_BYTES_MAX, Passing};
use crate::intake::Intake;
use crate::limits::{Reason, Refusal};
use memchr::memchr;
use std::str::FromStr;

/// Digits of a count at most: more than any message may have.
pub(super) const DIGITS_MAX: usize = 9;
/// The first bytes of TLS: a record with a handshake, of version 3.
const TLS_HANDSHAKE: [u8; 2] = [0x16, 3];
/// The beginnings of HTTP's requests.
const METHODS: [&[u8]; 9] = [
    b"GET ",
    b"HEAD ",
    b"POST ",
    b"PUT ",
    b"DELETE ",
    b"CONNECT ",
    b"OPTIONS ",
    b"TRACE ",
    b"PATCH ",
];
/// Bytes of a request line at most: what servers take.
const REQUEST_LINE_BYTES_MAX: usize = 8192;

/// How a stream is cut into messages. None has an answer: the sender never knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Frame {
    /// A line feed, or CR and line feed, ends a message.
    #[default]
    Lines,
    /// Digits and a space, then so many octets (RFC 6587, RFC 5425). One LF, CRLF or NUL at the end
    /// of a message is taken off, which some senders count in.
    Octets,
    /// A NUL ends a message, as `SysLogHandler` of Python does.
    Nul,
    /// Four bytes of length, the highest first, then so many bytes.
    U32,
}

impl Frame {
    /// The word in URLs.
    pub fn as_str(self) -> &'static str {
        match self {
            Frame::Lines => "lines",
            Frame::Octets => "octets",
            Frame::Nul => "nul",
            Frame::U32 => "u32",
        }
    }
}

impl FromStr for Frame {
    type Err = String;

    fn from_str(word: &str) -> Result<Frame, String> {
        let frames = [Frame::Lines, Frame::Octets, Frame::Nul, Frame::U32];
        let found = frames.into_iter().find(|frame| frame.as_str() == word);
        found.ok_or_else(|| format!("frame={word} is none of lines, octets, nul, u32"))
    }
}

/// The parser.
#[derive(Debug)]
pub(crate) struct Frames {
    frame: Frame,
    oversize: Oversize,
    /// The rest of a message over the limit.
    passing: Option<Passing>,
    /// The first bytes of the stream were looked at.
    has_begun: bool,
}

/// The messages that are appended at once, at most.
const RUN_MAX: usize = 64;

/// Messages one behind the other, without the empty ones.
struct Run<'a> {
    messages: [&'a [u8]; RUN_MAX],
    /// The bytes of the input up to the end of each.
    ends: [usize; RUN_MAX],
    count: usize,
    /// The bytes of the input that were cut into messages.
    bytes: usize,
    /// Whether more may follow, or why not.
    has_more: Result<bool, Refusal>,
}

/// A message at the beginning of some bytes, and the bytes that it takes with its frame.
type Framed<'a> = Option<(&'a [u8], usize)>;

impl Frames {
    pub(crate) fn new(frame: Frame, oversize: Oversize) -> Frames {
        Frames { frame, oversize, passing: None, has_begun: false }
    }

    fn next<'a>(&self, input: &'a [u8], message_bytes_max: usize) -> Result<Framed<'a>, Refusal> {
        match self.ends() {
            Some((end, before)) => until(input, end, before, message_bytes_max),
            None if self.frame == Frame::Octets => octets(input, message_bytes_max),
            None => lengths(input, message_bytes_max),
        }
    }

    /// Cuts the messages from the beginning of `input`, as many as a run has.
    fn run<'a>(&self, input: &'a [u8], message_bytes_max: usize) -> Run<'a> {
        let (messages, ends) = ([&[][..]; RUN_MAX], [0; RUN_MAX]);
        let mut run = Run { messages, ends, count: 0, bytes: 0, has_more: Ok(true) };
        while run.count < RUN_MAX {
            match self.next(&input[run.bytes..], message_bytes_max) {
                Ok(Some((message, bytes))) => {
                    run.bytes += bytes;
                    // An empty line has nothing to keep.
                    if !message.is_empty() {
                        (run.messages[run.count], run.ends[run.count]) = (message, run.bytes);
                        run.count += 1;
                    }
                }
                Ok(None) => {
                    run.has_more = Ok(false);
                    break;
                }
                Err(refusal) => {
                    run.has_more = Err(refusal);
                    break;
                }
            }
        }
        run
    }

    /// Takes what is kept of the message over the limit at the beginning of `input`, and passes
    /// over its rest. Returns the bytes done with; `None` where more must come, or the log has no
    /// room.
    fn cut(&mut self, input: &[u8], intake: &mut Intake<'_>) -> Result<Option<usize>, Refusal> {
        let max = intake.message_bytes_max();
        let (head, passing) = match self.ends() {
            Some((end, _)) => (0, Passing::Until(end)),
            None => {
                let (head, len) = self.counted(input);
                if len > PASSED_BYTES_MAX {
                    return Err(Refusal::TooLong);
                }
                (head, Passing::Bytes(len - max))
            }
        };
        let Some(message) = input.get(head..head + max) else { return Ok(None) };
        let kept = self.kept(message, intake);
        if !kept.is_empty() && intake.append(kept)?.is_none() {
            return Ok(None);
        }
        intake.reject(Reason::TooLong);
        self.passing = Some(passing);
        Ok(Some(head + max))
    }

    /// Returns what is kept of a message over the limit.
    fn kept<'a>(&self, message: &'a [u8], intake: &Intake<'_>) -> &'a [u8] {
        if self.oversize == Oversize::Skip { &[] } else { &message[..intake.message_bytes_max()] }
    }

    /// Returns the bytes of a count at the beginning of `input`, and the count.
    fn counted(&self, input: &[u8]) -> (usize, usize) {
        if self.frame == Frame::U32 {
            let head = input.first_chunk::<4>().expect("it was read");
            return (head.len(), u32::from_be_bytes(*head) as usize);
        }
        match digits(input) {
            digits if digits > DIGITS_MAX => (digits, usize::MAX),
            digits => (digits + 1, number(&input[..digits])),
        }
    }

    /// The byte that ends a message, and the one in front of it that is taken off; `None` where
    /// messages are counted.
    fn ends(&self) -> Option<(u8, u8)> {
        match self.frame {
            Frame::Lines => Some((b'\n', b'\r')),
            Frame::Nul => Some((0, b'\n')),
            Frame::Octets | Frame::U32 => None,
        }
    }

    /// Refuses TLS and HTTP on a plain listener. Of TLS a line feed may be among its random bytes,
    /// and what stands in front of it is no message; HTTP may come from a web page that the browser
    /// of this machine shows. Returns whether enough of the stream's beginning was there to tell.
    fn begin(&mut self, input: &[u8]) -> Result<bool, Refusal> {
        if !self.has_begun && self.ends().is_some() {
            match input.get(..TLS_HANDSHAKE.len()) {
                Some(begin) if begin == TLS_HANDSHAKE => {
                    return Err(Refusal::Malformed("a TLS handshake on a plain listener"));
                }
                None if TLS_HANDSHAKE.starts_with(input) => return Ok(false),
                _ => {}
            }
            match is_http(input) {
                Some(true) => return Err(Refusal::Malformed("HTTP came to a listener of frames")),
                Some(false) => {}
                None => return Ok(false),
            }
        }
        self.has_begun = true;
        Ok(true)
    }
}

/// Whether a stream begins with the request line of HTTP (RFC 9112, section 3); `None` where more
/// of it is needed.
fn is_http(input: &[u8]) -> Option<bool> {
    let mut methods = METHODS.iter().filter(|method| {
        let len = method.len().min(input.len());
        input[..len] == method[..len]
    });
    let method = methods.next();
    if method.is_none_or(|method| input.len() < method.len()) {
        return method.is_none().then_some(false);
    }
    let within = &input[..input.len().min(REQUEST_LINE_BYTES_MAX)];
    let Some(end) = memchr(b'\n', within) else {
        return (within.len() == REQUEST_LINE_BYTES_MAX).then_some(false);
    };
    let line = within[..end].trim_ascii_end();
    let version = line.rsplit(|&byte| byte == b' ').next().unwrap_or_default();
    Some(version.starts_with(b"HTTP/"))
}

impl Protocol for Frames {
    fn take(&mut self, input: &[u8], intake: &mut Intake<'_>) -> Result<usize, Refusal> {
        if !self.begin(input)? {
            return Ok(0);
        }
        let mut done = 0;
        loop {
            if let Some(passing) = self.passing {
                let (bytes, left) = passing.pass(&input[done..]);
                self.passing = left;
                done += bytes;
            }
            if self.passing.is_some() {
                return Ok(done);
            }
            let run = self.run(&input[done..], intake.message_bytes_max());
            let taken = intake.append_run(&run.messages[..run.count])?;
            if taken < run.count {
                return Ok(done + run.ends[..taken].last().copied().unwrap_or(0));
            }
            done += run.bytes;
            match run.has_more {
                Ok(true) => {}
                Ok(false) => return Ok(done),
                Err(Refusal::TooLong) if self.oversize != Oversize::Refuse => {
                    match self.cut(&input[done..], intake)? {
                        Some(bytes) => done += bytes,
                        None => return Ok(done),
                    }
                }
                Err(refusal) => return Err(refusal),
            }
        }
    }

    /// Takes bytes without an end as a message; of a counted message they are only a part.
    fn take_rest(&mut self, rest: &[u8], intake: &mut Intake<'_>) -> Result<usize, Refusal> {
        if rest.is_empty() {
            return Ok(0);
        }
        let Some((_, before)) = self.ends() else {
            return Err(Refusal::Malformed("the stream ended inside a message"));
        };
        let message = rest.strip_suffix(&[before]).unwrap_or(rest);
        let is_cut =
            message.len() > intake.message_bytes_max() && self.oversize != Oversize::Refuse;
        let message = if is_cut { self.kept(message, intake) } else { message };
        let is_taken = message.is_empty() || intake.append(message)?.is_some();
        if is_taken && is_cut {
            intake.reject(Reason::TooLong);
        }
        Ok(if is_taken { rest.len() } else { 0 })
    }
}

/// Cuts at `end`, and takes one `before` off in front of it.
fn until(input: &[u8], end: u8, before: u8, max: usize) -> Result<Framed<'_>, Refusal> {
    // One byte more may be taken off.
    let within = &input[..input.len().min(max + 2)];
    match memchr(end, within) {
        Some(at) => {
            let message = &input[..at];
            let message = message.strip_suffix(&[before]).unwrap_or(message);
            if message.len() > max { Err(Refusal::TooLong) } else { Ok(Some((message, at + 1))) }
        }
        None if within.len() > max + 1 => Err(Refusal::TooLong),
        None => Ok(None),
    }
}

fn octets(input: &[u8], max: usize) -> Result<Framed<'_>, Refusal> {
    if input.first() == Some(&b'0') {
        return Err(Refusal::Malformed("a message has at least one octet"));
    }
    let digits = digits(input);
    if digits > DIGITS_MAX {
        return Err(Refusal::TooLong);
    }
    let Some(&separator) = input.get(digits) else { return Ok(None) };
    if digits == 0 || separator != b' ' {
        return Err(Refusal::Malformed("a message begins with its count of octets and a space"));
    }
    let count = number(&input[..digits]);
    // Two octets of a trailer may be counted in.
    if count > max + 2 {
        return Err(Refusal::TooLong);
    }
    let Some(message) = input.get(digits + 1..digits + 1 + count) else { return Ok(None) };
    let message = without_trailer(message);
    if message.len() > max {
        Err(Refusal::TooLong)
    } else {
        Ok(Some((message, digits + 1 + count)))
    }
}

/// Returns how many digits `input` begins with, up to one more than a number may have.
fn digits(input: &[u8]) -> usize {
    let within = input.iter().take(DIGITS_MAX + 1);
    within.take_while(|byte| byte.is_ascii_digit()).count()
}

/// Returns the number of at most [`DIGITS_MAX`] digits.
pub(super) fn number(digits: &[u8]) -> usize {
    digits.iter().fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
}

/// Takes off one end of line, which some senders count in.
pub(crate) fn without_trailer(message: &[u8]) -> &[u8] {
    let trailers: [&[u8]; 3] = [b"\r\n", b"\n", b"\0"];
    trailers.into_iter().find_map(|trailer| message.strip_suffix(trailer)).unwrap_or(message)
}

fn lengths(input: &[u8], max: usize) -> Result<Framed<'_>, Refusal> {
    let Some((head, rest)) = input.split_first_chunk::<4>() else { return Ok(None) };
    let len = u32::from_be_bytes(*head) as usize;
    if len > max {
        return Err(Refusal::TooLong);
    }
    Ok(rest.get(..len).map(|message| (message, head.len() + len)))
}

#[cfg(test)]
mod tests;
