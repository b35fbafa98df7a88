//! RESP2 and RESP3, as clients of Redis speak them: a stream of Redis is the log, or a list is.
//!
//! The protocol is <https://redis.io/docs/latest/develop/reference/protocol-spec/>. The record with
//! the sequence N has the ID `N-1`, so `0-0` stands before the first.

mod greeting;
mod read;
mod request;

use super::Protocol;
use crate::access::Access;
use crate::channel::Channel;
use crate::intake::Intake;
use crate::limits::{Reason, Refusal};
use request::Request;
use std::io::Write;
use std::sync::Arc;

/// The name that reading gives to the only field of an entry.
const FIELD: &str = "message";
/// The version that clients take this server for: streams came with 5.0, HELLO with 6.0.
const REDIS_VERSION: &str = "7.0.0";
/// Bytes of a request of a client that has given no token, at most.
const GREETING_BYTES_MAX: usize = 16 << 10;
/// The longest answer to an XADD: `$22`, and an ID of 22 digits at most.
const ID_BYTES_MAX: usize = 40;

/// The parser, and what it knows of its client.
#[derive(Debug)]
pub(crate) struct Resp {
    /// `None` where a test has no log to read.
    channel: Option<Arc<Channel>>,
    request: Request,
    /// The values of the request at the beginning of the input that are in the log already, and the
    /// sequence of the last: the log had no room for the others.
    pushed: Option<(usize, u64)>,
    /// RESP3 was agreed on.
    is_three: bool,
    access: Arc<Access>,
    /// The client gave a token.
    is_authorized: bool,
}

/// The outcome of a request.
enum Obeyed {
    Done,
    /// The log had no room: the same request is given again.
    Again,
}

impl Resp {
    pub(crate) fn new(channel: Option<Arc<Channel>>, access: Arc<Access>) -> Resp {
        let (request, pushed) = (Request::default(), None);
        Resp { channel, request, pushed, is_three: false, access, is_authorized: false }
    }
}

impl Protocol for Resp {
    #[cfg(any(test, feature = "fuzzing"))]
    const FRAME_BYTES_MAX: usize = request::REQUEST_BYTES_MAX;

    fn take(&mut self, input: &[u8], intake: &mut Intake<'_>) -> Result<usize, Refusal> {
        let mut done = 0;
        while !intake.is_over && intake.later.is_none() {
            let rest = &input[done..];
            let bytes = match self.request.read(rest) {
                Ok(Some(bytes)) => bytes,
                Ok(None) if rest.len() > GREETING_BYTES_MAX && !self.may_come(b"") => {
                    return Err(Refusal::TooLong);
                }
                Ok(None) => break,
                Err(refusal) => {
                    intake.answer(b"-ERR Protocol error\r\n");
                    return Err(refusal);
                }
            };
            if let Obeyed::Again = self.obey(rest, intake)? {
                break;
            }
            done += bytes;
        }
        Ok(done)
    }
}

impl Resp {
    fn obey(&mut self, input: &[u8], intake: &mut Intake<'_>) -> Result<Obeyed, Refusal> {
        let Some(command) = self.request.word(input, 0) else { return Ok(Obeyed::Done) };
        let mut upper = [0; 16];
        let name = match upper.get_mut(..command.len()) {
            Some(upper) => {
                upper.copy_from_slice(command);
                upper.make_ascii_uppercase();
                &*upper
            }
            None => &b""[..],
        };
        let words = self.request.len();
        if !self.may_come(name) {
            error(intake, "NOAUTH Authentication required.");
            intake.reject(Reason::Unauthorized);
            return Ok(Obeyed::Done);
        }
        match (name, words) {
            (b"XADD", 5..) => return self.xadd(input, intake),
            (b"RPUSH" | b"LPUSH", 3..) => return self.push(input, intake),
            // A web page can make a browser send these to loopback (redis/redis#12024).
            (b"POST" | b"HOST:", _) => {
                return Err(Refusal::Malformed("HTTP came to a listener of RESP"));
            }
            (b"PING", 1) => intake.answer(b"+PONG\r\n"),
            (b"PING" | b"ECHO", 2) => bulk(intake, self.request.word(input, 1).unwrap_or_default()),
            (b"HELLO", _) => self.hello(input, intake),
            (b"SELECT", 2) => intake.answer(b"+OK\r\n"),
            (b"CLIENT", 2..) => self.client(input, intake),
            (b"COMMAND", _) => intake.answer(b"*0\r\n"),
            (b"CONFIG", 3..) => intake.answer(b"*0\r\n"),
            (b"INFO", _) => self.info(intake),
            (b"RESET", 1) => {
                (self.is_three, self.is_authorized) = (false, false);
                intake.answer(b"+RESET\r\n");
            }
            (b"QUIT", 1) => {
                intake.answer(b"+OK\r\n");
                intake.end();
            }
            (b"AUTH", 2 | 3) => self.auth(input, intake),
            (b"XLEN" | b"LLEN", 2) => self.len(intake),
            (b"XRANGE", 4 | 6) => self.range(input, intake),
            (b"XREAD", 4..) => self.read(input, intake),
            (
                b"XADD" | b"RPUSH" | b"LPUSH" | b"ECHO" | b"PING" | b"XLEN" | b"XRANGE" | b"XREAD"
                | b"SELECT" | b"CLIENT" | b"CONFIG" | b"AUTH",
                _,
            ) => {
                error(intake, "ERR wrong number of arguments for the command");
            }
            _ => {
                let command = String::from_utf8_lossy(&command[..command.len().min(64)]);
                let command = command.escape_default();
                error(intake, &format!("ERR unknown command '{command}': this is a log of wrote"));
            }
        }
        Ok(Obeyed::Done)
    }

    /// `XADD key * field value`: the value is the record. Limits of a stream's length are passed
    /// over: the log's own retention removes.
    fn xadd(&mut self, input: &[u8], intake: &mut Intake<'_>) -> Result<Obeyed, Refusal> {
        let id = (2..self.request.len()).find(|&at| self.request.word(input, at) == Some(b"*"));
        let Some(id) = id else {
            error(intake, "ERR the ID must be *: the log gives the next sequence");
            return Ok(Obeyed::Done);
        };
        if self.request.len() != id + 3 {
            error(intake, "ERR a record has one value: XADD key * field value");
            return Ok(Obeyed::Done);
        }
        let value = self.request.word(input, id + 2).unwrap_or_default();
        let Some(outcome) = appended(value, intake) else { return Ok(Obeyed::Again) };
        if let Ok(sequence) = outcome {
            let (mut id, mut answer) = ([0; ID_BYTES_MAX], [0; ID_BYTES_MAX]);
            let id = text(&mut id, format_args!("{sequence}-1"));
            let len = id.len();
            let head = text(&mut answer, format_args!("${len}\r\n")).len();
            answer[head..head + len].copy_from_slice(id);
            answer[head + len..head + len + 2].copy_from_slice(b"\r\n");
            intake.answer_to(sequence, &answer[..head + len + 2]);
        }
        Ok(Obeyed::Done)
    }

    /// `RPUSH key value..`: each value is a record; the answer is the list's length behind them.
    fn push(&mut self, input: &[u8], intake: &mut Intake<'_>) -> Result<Obeyed, Refusal> {
        let (before, mut last) = self.pushed.take().unwrap_or((0, 0));
        for at in 2 + before..self.request.len() {
            let value = self.request.word(input, at).unwrap_or_default();
            match appended(value, intake) {
                None => {
                    self.pushed = Some((at - 2, last));
                    return Ok(Obeyed::Again);
                }
                Some(Ok(sequence)) => last = sequence,
                // The values before it are in the log: the client, which sends all again, makes
                // them twice, and loses none.
                Some(Err(())) => return Ok(Obeyed::Done),
            }
        }
        let mut answer = [0; ID_BYTES_MAX];
        intake.answer_to(last, text(&mut answer, format_args!(":{}\r\n", last + 1)));
        Ok(Obeyed::Done)
    }

    fn client(&self, input: &[u8], intake: &mut Intake<'_>) {
        let word = self.request.word(input, 1).unwrap_or_default().to_ascii_uppercase();
        match word.as_slice() {
            b"ID" => intake.answer(b":1\r\n"),
            b"GETNAME" => self.nothing(intake),
            _ => intake.answer(b"+OK\r\n"),
        }
    }

    fn info(&self, intake: &mut Intake<'_>) {
        let own = env!("CARGO_PKG_VERSION");
        let text = format!(
            "# Server\r\nredis_version:{REDIS_VERSION}\r\nredis_mode:standalone\r\n\
             wrote_version:{own}\r\n"
        );
        bulk(intake, text.as_bytes());
    }

    /// Answers that there is nothing.
    fn nothing(&self, intake: &mut Intake<'_>) {
        intake.answer(if self.is_three { b"_\r\n" } else { b"$-1\r\n" });
    }
}

/// Appends a message: `None` without room. Where the log takes none the client is told so, keeps
/// the message, and the connection goes on.
fn appended(value: &[u8], intake: &mut Intake<'_>) -> Option<Result<u64, ()>> {
    match intake.append(value) {
        Ok(None) => None,
        Ok(Some(sequence)) => Some(Ok(sequence)),
        Err(refusal) => {
            match refusal {
                Refusal::TooLong => {
                    let max = intake.message_bytes_max();
                    error(intake, &format!("ERR a message of more than {max} bytes"));
                }
                Refusal::Log(ref cause) => {
                    let cause = cause.to_string();
                    error(intake, &format!("MISCONF the log takes no messages: {cause}"));
                }
                _ => error(intake, "MISCONF the log takes no messages now"),
            }
            intake.reject(refusal.reason());
            Some(Err(()))
        }
    }
}

fn bulk(intake: &mut Intake<'_>, bytes: &[u8]) {
    intake.answer(format!("${}\r\n", bytes.len()).as_bytes());
    intake.answer(bytes);
    intake.answer(b"\r\n");
}

fn error(intake: &mut Intake<'_>, text: &str) {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    intake.answer(format!("-{line}\r\n").as_bytes());
}

/// Writes into `to`, and returns what was written.
fn text<'a>(to: &'a mut [u8; ID_BYTES_MAX], arguments: std::fmt::Arguments<'_>) -> &'a [u8] {
    let mut rest = &mut to[..];
    rest.write_fmt(arguments).expect("it fits");
    let left = rest.len();
    &to[..ID_BYTES_MAX - left]
}

#[cfg(test)]
mod tests;
