//! Messages on a stream, one behind the other: by lines, octet counts, NUL, or lengths.

use super::Protocol;
use crate::intake::Intake;
use crate::limits::Refusal;
use memchr::memchr;
use std::str::FromStr;

/// Digits of an octet count at most: more than any message may have.
const DIGITS_MAX: usize = 9;

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
pub(crate) struct Frames(pub Frame);

/// A message at the beginning of some bytes, and the bytes that it takes with its frame.
type Framed<'a> = Option<(&'a [u8], usize)>;

impl Frames {
    fn next<'a>(&self, input: &'a [u8], message_bytes_max: usize) -> Result<Framed<'a>, Refusal> {
        match self.0 {
            Frame::Lines => until(input, b'\n', b'\r', message_bytes_max),
            Frame::Nul => until(input, 0, b'\n', message_bytes_max),
            Frame::Octets => octets(input, message_bytes_max),
            Frame::U32 => lengths(input, message_bytes_max),
        }
    }
}

impl Protocol for Frames {
    fn take(&mut self, input: &[u8], intake: &mut Intake<'_>) -> Result<usize, Refusal> {
        let mut done = 0;
        while let Some((message, bytes)) = self.next(&input[done..], intake.message_bytes_max())? {
            // An empty line has nothing to keep.
            if !message.is_empty() && intake.append(message)?.is_none() {
                break;
            }
            done += bytes;
        }
        Ok(done)
    }

    /// What has no end yet is a message of lines; of a counted message, it is only a part.
    fn take_rest(&mut self, rest: &[u8], intake: &mut Intake<'_>) -> Result<usize, Refusal> {
        let is_counted = matches!(self.0, Frame::Octets | Frame::U32);
        if rest.is_empty() || (!is_counted && intake.append(rest)?.is_some()) {
            return Ok(rest.len());
        }
        if is_counted {
            Err(Refusal::Malformed("the stream ended inside a message"))
        } else {
            Ok(0)
        }
    }
}

/// Cuts at `end`, and takes one `before` off in front of it.
fn until(input: &[u8], end: u8, before: u8, max: usize) -> Result<Framed<'_>, Refusal> {
    // One byte more may be taken off.
    let within = &input[..input.len().min(max + 2)];
    match memchr(end, within) {
        Some(at) => {
            let message = &input[..at];
            Ok(Some((message.strip_suffix(&[before]).unwrap_or(message), at + 1)))
        }
        None if within.len() > max + 1 => Err(Refusal::TooLong),
        None => Ok(None),
    }
}

fn octets(input: &[u8], max: usize) -> Result<Framed<'_>, Refusal> {
    let digits = input.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits > DIGITS_MAX {
        return Err(Refusal::TooLong);
    }
    let Some(&separator) = input.get(digits) else { return Ok(None) };
    if digits == 0 || separator != b' ' {
        return Err(Refusal::Malformed("a message begins with its count of octets and a space"));
    }
    let count =
        input[..digits].iter().fold(0, |count, digit| count * 10 + usize::from(digit - b'0'));
    if count == 0 {
        return Err(Refusal::Malformed("a message has at least one octet"));
    }
    // Two octets of a trailer may be counted in.
    if count > max + 2 {
        return Err(Refusal::TooLong);
    }
    let Some(message) = input.get(digits + 1..digits + 1 + count) else { return Ok(None) };
    Ok(Some((without_trailer(message), digits + 1 + count)))
}

fn without_trailer(message: &[u8]) -> &[u8] {
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
