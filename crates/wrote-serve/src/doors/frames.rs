//! Messages framed on a stream by line endings, octet counts or NUL.

use super::{PASSED_BYTES_MAX, Protocol};
use crate::config::{Frame, Oversize};
use crate::doors::Intake;
use crate::refusals::Refusal;
use memchr::{memchr, memchr2};
use std::ops::Range;

/// The maximum number of digits in an octet count. No valid message length has more.
pub(super) const DIGITS_MAX: usize = 9;
/// The first bytes of TLS: a handshake record of version 3.
const TLS_HANDSHAKE: [u8; 2] = [0x16, 3];
/// The refusal of a client that sends TLS to a listener without it.
pub(super) const TLS: Refusal = Refusal::Malformed("a TLS handshake on a plain listener");
/// The position of a pickle's first bytes in a message from Python's `SocketHandler`, after the
/// length.
const PICKLE: Range<usize> = 4..6;
const PICKLED: Refusal = Refusal::Malformed(
    "a pickle of Python's logging.handlers.SocketHandler; SysLogHandler sends lines",
);
/// The first bytes of a zlib stream (RFC 1950) at each level except `x^`, which could also start a
/// text.
const COMPRESSED: [[u8; 2]; 3] = [[b'x', 0x01], [b'x', 0x9c], [b'x', 0xda]];
/// The methods at the beginning of HTTP requests.
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
/// The longest trailer that some senders include in the count.
const TRAILER_BYTES_MAX: usize = 2;
/// The longest request line that HTTP servers accept.
const REQUEST_LINE_BYTES_MAX: usize = 8192;

#[derive(Debug)]
pub(crate) struct Frames {
    frame: Frame,
    oversize: Oversize,
    /// The rest of an oversized message, which is to be skipped.
    rest: Option<Rest>,
    /// The number of bytes at the start of the input that are known to contain no end of a message.
    searched: usize,
    /// Whether the first bytes of the stream have been checked.
    has_begun: bool,
}

/// The bytes that end a message, and for each of them the byte that is also removed if it precedes
/// the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ends {
    ends: [u8; 2],
    before: [u8; 2],
}

const LINE_ENDS: Ends = Ends { ends: [b'\n'; 2], before: [b'\r'; 2] };
const NUL_ENDS: Ends = Ends { ends: [0; 2], before: [b'\n'; 2] };
const ANY_ENDS: Ends = Ends { ends: [b'\n', 0], before: [b'\r', b'\n'] };

#[derive(Clone, Copy, Debug)]
enum Framing {
    Until(Ends),
    Octets,
}

#[derive(Clone, Copy, Debug)]
enum Rest {
    Bytes(usize),
    /// Up to and including the next end.
    Until(Ends),
}

/// The maximum number of messages appended at once.
const RUN_MAX: usize = 64;

/// Consecutive messages, not counting empty ones.
struct Run<'a> {
    messages: [&'a [u8]; RUN_MAX],
    /// The offset in the input at which each message ends.
    ends: [usize; RUN_MAX],
    count: usize,
    /// The number of input bytes that the run covers.
    bytes: usize,
    then: Then,
}

/// The input after a run.
enum Then {
    /// Possibly another run.
    Run,
    /// An incomplete message.
    Part,
    Refused(Refusal),
}

/// The message at the start of the input, and its length with its framing; `None` if the message
/// is not complete.
type Framed<'a> = Option<(&'a [u8], usize)>;

impl Frames {
    pub(crate) fn new(frame: Frame, oversize: Oversize) -> Frames {
        Frames { frame, oversize, rest: None, searched: 0, has_begun: false }
    }

    /// Returns the framing of the message at the start of `input`; `None` if more bytes are needed.
    /// A number larger than any message length is not treated as a count, because it would swallow
    /// the lines after it.
    fn framing(&self, input: &[u8], message_bytes_max: usize) -> Option<Framing> {
        match self.frame {
            Frame::Octets => Some(Framing::Octets),
            Frame::Lines => Some(Framing::Until(LINE_ENDS)),
            Frame::Nul => Some(Framing::Until(NUL_ENDS)),
            Frame::Auto => {
                let digits = digits(input);
                let is_count = digits > 0
                    && digits <= DIGITS_MAX
                    && input[0] != b'0'
                    && number(&input[..digits]) <= message_bytes_max + TRAILER_BYTES_MAX;
                match &input[digits..] {
                    [b' ', b'<', ..] if is_count => Some(Framing::Octets),
                    [] | [b' '] if is_count => None,
                    _ => Some(Framing::Until(ANY_ENDS)),
                }
            }
        }
    }

    /// Returns the message at the start of `input`. The first `searched` bytes are known to contain
    /// no end.
    fn next<'a>(
        &self,
        input: &'a [u8],
        searched: usize,
        max: usize,
    ) -> Result<Framed<'a>, Refusal> {
        match self.framing(input, max) {
            None => Ok(None),
            Some(Framing::Until(ends)) => until(input, ends, searched, max),
            Some(Framing::Octets) => octets(input, max),
        }
    }

    /// Returns a run of messages from the start of `input`.
    fn run<'a>(&self, input: &'a [u8], message_bytes_max: usize) -> Run<'a> {
        let (messages, ends) = ([&[][..]; RUN_MAX], [0; RUN_MAX]);
        let mut run = Run { messages, ends, count: 0, bytes: 0, then: Then::Run };
        let mut searched = self.searched;
        while run.count < RUN_MAX {
            let next = self.next(&input[run.bytes..], searched, message_bytes_max);
            searched = 0;
            run.then = match next {
                Ok(Some((message, bytes))) => {
                    run.bytes += bytes;
                    // Empty messages are skipped.
                    if !message.is_empty() {
                        (run.messages[run.count], run.ends[run.count]) = (message, run.bytes);
                        run.count += 1;
                    }
                    continue;
                }
                Ok(None) => Then::Part,
                Err(refusal) => Then::Refused(refusal),
            };
            break;
        }
        run
    }

    /// Appends the beginning of the oversized message at the start of `input`; the rest is skipped.
    /// Returns the number of bytes consumed; `None` if more bytes are needed or the log has no
    /// room.
    fn cut(&mut self, input: &[u8], intake: &mut Intake<'_>) -> Result<Option<usize>, Refusal> {
        let max = intake.message_bytes_max;
        let (head, rest) = match self.framing(input, max) {
            Some(Framing::Until(ends)) => (0, Rest::Until(ends)),
            _ => {
                let digits = digits(input);
                let len = if digits > DIGITS_MAX { usize::MAX } else { number(&input[..digits]) };
                if len > PASSED_BYTES_MAX {
                    return Err(Refusal::TooLong);
                }
                (digits + 1, Rest::Bytes(len - max))
            }
        };
        let Some(message) = input.get(head..head + max) else { return Ok(None) };
        if !take_cut(message, intake)? {
            return Ok(None);
        }
        self.rest = Some(rest);
        Ok(Some(head + max))
    }

    /// Skips the rest of an oversized message. Returns the number of bytes consumed.
    fn pass(&mut self, input: &[u8]) -> usize {
        let (bytes, rest) = match self.rest {
            None => (0, None),
            Some(Rest::Bytes(left)) if left > input.len() => {
                (input.len(), Some(Rest::Bytes(left - input.len())))
            }
            Some(Rest::Bytes(left)) => (left, None),
            Some(Rest::Until(ends)) => match find(ends, input) {
                Some(at) => (at + 1, None),
                None => (input.len(), self.rest),
            },
        };
        self.rest = rest;
        bytes
    }

    /// Refuses TLS, HTTP and other foreign streams on a plain listener. The random bytes of TLS may
    /// contain a line feed, and a web page may make a local browser send HTTP. Returns whether the
    /// stream is long enough to decide.
    fn begin(&mut self, input: &[u8]) -> Result<bool, Refusal> {
        if !self.has_begun && self.frame != Frame::Octets {
            match input.first_chunk() {
                Some(&TLS_HANDSHAKE) => {
                    return Err(TLS);
                }
                // The message begins with a length of four bytes, followed by a dictionary in
                // pickle protocol 1.
                Some([0, 0]) if input.len() < PICKLE.end => return Ok(false),
                Some([0, 0]) if input[PICKLE] == *b"}q" => return Err(PICKLED),
                Some(begin) if COMPRESSED.contains(begin) => {
                    return Err(Refusal::Malformed("a stream that is compressed as a whole"));
                }
                None if input.first().is_none_or(|first| b"\x16x\0".contains(first)) => {
                    return Ok(false);
                }
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

/// Appends the beginning of an oversized message. Returns whether there was room.
fn take_cut(message: &[u8], intake: &mut Intake<'_>) -> Result<bool, Refusal> {
    let has_room = intake.take(&message[..intake.message_bytes_max])?;
    intake.cut += u64::from(has_room);
    Ok(has_room)
}

/// Returns whether a stream starts with an HTTP request line (RFC 9112, section 3); `None` if more
/// bytes are needed.
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
        let mut done = self.pass(input);
        while self.rest.is_none() {
            let run = self.run(&input[done..], intake.message_bytes_max);
            self.searched = 0;
            let taken = intake.append_run(&run.messages[..run.count])?;
            if taken < run.count {
                return Ok(done + run.ends[..taken].last().copied().unwrap_or(0));
            }
            done += run.bytes;
            match run.then {
                Then::Run => {}
                Then::Part => {
                    self.searched = input.len() - done;
                    break;
                }
                Then::Refused(Refusal::TooLong) if self.oversize == Oversize::Truncate => {
                    let Some(bytes) = self.cut(&input[done..], intake)? else { break };
                    done += bytes;
                    done += self.pass(&input[done..]);
                }
                Then::Refused(refusal) => return Err(refusal),
            }
        }
        Ok(done)
    }

    /// Processes bytes without a final delimiter as a message. After a count, they are only a part
    /// of a message, and are refused.
    fn take_rest(&mut self, rest: &[u8], intake: &mut Intake<'_>) -> Result<usize, Refusal> {
        if rest.is_empty() {
            return Ok(0);
        }
        let max = intake.message_bytes_max;
        let ends = match self.framing(rest, max) {
            Some(Framing::Until(ends)) => ends,
            None => ANY_ENDS,
            Some(Framing::Octets) => {
                return Err(Refusal::Malformed("the stream ended inside a message"));
            }
        };
        let message = rest.strip_suffix(&ends.before[..1]).unwrap_or(rest);
        let is_taken = match message.len() > max && self.oversize == Oversize::Truncate {
            true => take_cut(message, intake)?,
            false => message.is_empty() || intake.take(message)?,
        };
        Ok(if is_taken { rest.len() } else { 0 })
    }
}

/// Returns the position of the first end of a message; `None` if there is none.
fn find(ends: Ends, bytes: &[u8]) -> Option<usize> {
    match ends.ends {
        [end, other] if end == other => memchr(end, bytes),
        [end, other] => memchr2(end, other, bytes),
    }
}

/// Returns the message before the first end, without the byte that is also removed, and its framed
/// length.
fn until(input: &[u8], ends: Ends, searched: usize, max: usize) -> Result<Framed<'_>, Refusal> {
    // The end may be preceded by a byte that is also removed.
    let within = &input[..input.len().min(max + 2)];
    let searched = searched.min(within.len());
    match find(ends, &within[searched..]).map(|at| searched + at) {
        Some(at) => {
            let message = &input[..at];
            let before = if input[at] == ends.ends[0] { ends.before[0] } else { ends.before[1] };
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
    if is_tls(input) {
        return Err(TLS);
    }
    if digits == 0 || separator != b' ' {
        return Err(Refusal::Malformed("a message begins with its count of octets and a space"));
    }
    let count = number(&input[..digits]);
    if count > max + TRAILER_BYTES_MAX {
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

/// Returns whether the input begins with the first byte of TLS, which begins no supported protocol.
pub(super) fn is_tls(input: &[u8]) -> bool {
    input.first() == Some(&TLS_HANDSHAKE[0])
}

/// Returns the number of leading digits of `input`, but at most one more than a count may have.
pub(super) fn digits(input: &[u8]) -> usize {
    let within = input.iter().take(DIGITS_MAX + 1);
    within.take_while(|byte| byte.is_ascii_digit()).count()
}

/// Returns the value of up to [`DIGITS_MAX`] digits.
pub(super) fn number(digits: &[u8]) -> usize {
    digits.iter().fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
}

/// Removes one line ending, because some senders include it in the count.
pub(crate) fn without_trailer(message: &[u8]) -> &[u8] {
    let trailers: [&[u8]; 3] = [b"\r\n", b"\n", b"\0"];
    trailers.into_iter().find_map(|trailer| message.strip_suffix(trailer)).unwrap_or(message)
}

#[cfg(test)]
mod tests;
