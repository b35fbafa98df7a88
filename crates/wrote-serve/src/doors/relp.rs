//! RELP as spoken by rsyslog's `omrelp`. Each message is acknowledged by its number once it is
//! safe.
//!
//! The specification is `doc/relp.md` of librelp. Where librelp deviates from it, comments name
//! librelp's source file. librelp forgets a message after any answer to it, even an error. A
//! refused message therefore gets no answer: the server closes the connection, and the client
//! reconnects and resends everything that was not answered.

use super::frames::{DIGITS_MAX, TLS, is_tls, number, without_trailer};
use super::{PASSED_BYTES_MAX, Protocol, text};
use crate::config::Oversize;
use crate::doors::Intake;
use crate::refusals::{Reason, Refusal};

const COMMAND_BYTES_MAX: usize = 32;
/// The maximum length of data in a command that carries no message; an `open` has about 100 bytes.
const OFFERS_BYTES_MAX: usize = 1024;
/// The highest supported version of the protocol. librelp offers 0, and ends the session if the
/// answer exceeds its offer (`src/relpsess.c`).
const VERSION_MAX: u32 = 1;
/// The largest transaction number; 1 follows it.
const TRANSACTION_MAX: usize = 999_999_999;
const NO_FRAME: Refusal = Refusal::Malformed("not a RELP frame");
/// The maximum length of an answer to a message.
const ANSWER_BYTES_MAX: usize = "999999999 rsp 6 200 OK\n".len();

/// The parser, and the state of the session.
#[derive(Debug)]
pub(crate) struct Relp {
    /// The next transaction number. librelp's server requires consecutive numbers, too
    /// (`src/relpframe.c`).
    next: usize,
    /// Whether the session is open.
    is_open: bool,
    oversize: Oversize,
    /// The number of bytes of an oversized message that are still to be skipped.
    passed: usize,
}

/// A frame: `TRANSACTION SP COMMAND SP LENGTH [SP DATA] LF`.
#[derive(Debug)]
struct RelpFrame<'a> {
    /// The transaction number; 0 in a hint, which is never answered.
    transaction: usize,
    command: &'a [u8],
    data: &'a [u8],
    /// The length of the whole frame.
    bytes: usize,
}

impl Protocol for Relp {
    fn take(&mut self, input: &[u8], intake: &mut Intake<'_>) -> Result<usize, Refusal> {
        let message_bytes_max = intake.message_bytes_max;
        let mut done = self.pass(input);
        while self.passed == 0 && !intake.is_over {
            let Some(head) = RelpHead::first(&input[done..])? else { break };
            let is_long = head.command == b"syslog" && head.length > message_bytes_max;
            let cut = is_long && self.oversize == Oversize::Truncate;
            let Some(frame) = head.frame(&input[done..], message_bytes_max, cut)? else { break };
            if !self.obey(&frame, intake)? {
                break;
            }
            done += frame.bytes;
            if cut {
                intake.cut += 1;
                // The rest includes the line feed at the end.
                self.passed = head.length - message_bytes_max + 1;
                done += self.pass(&input[done..]);
            }
        }
        Ok(done)
    }

    /// Queues the hint on which librelp reconnects immediately.
    fn goodbye(&mut self, intake: &mut Intake<'_>) {
        if self.is_open {
            intake.answer(b"0 serverclose 0\n");
        }
    }
}

impl Relp {
    pub(crate) fn new(oversize: Oversize) -> Relp {
        Relp { next: 1, is_open: false, oversize, passed: 0 }
    }

    /// Appends a message and returns its sequence; `None` if there is no room. A message that the
    /// log can never hold is treated like an oversized one: either it is truncated, or the
    /// connection is closed. A message without any line has no sequence, but is answered.
    fn taken(
        &self,
        message: &[u8],
        intake: &mut Intake<'_>,
    ) -> Result<Option<Option<u64>>, Refusal> {
        let message = without_trailer(message);
        match intake.append(message) {
            Err(Refusal::Unfit(_)) if self.oversize == Oversize::Truncate => {
                let mut lines = message.split(|&byte| matches!(byte, b'\n' | 0));
                let Some(beginning) = lines.find(|line| !line.is_empty()) else {
                    intake.reject(Reason::Malformed);
                    return Ok(Some(None));
                };
                let sequence = intake.append(beginning)?;
                intake.cut += u64::from(sequence.is_some());
                Ok(sequence.map(Some))
            }
            appended => appended.map(|sequence| sequence.map(Some)),
        }
    }

    /// Skips the rest of an oversized message. Returns the number of bytes consumed.
    fn pass(&mut self, input: &[u8]) -> usize {
        let bytes = self.passed.min(input.len());
        self.passed -= bytes;
        bytes
    }

    /// Executes a frame. Returns `false` if there is no room for its message.
    fn obey(&mut self, frame: &RelpFrame<'_>, intake: &mut Intake<'_>) -> Result<bool, Refusal> {
        let is_hint = frame.transaction == 0;
        if !is_hint && frame.transaction != self.next {
            return Err(Refusal::Malformed("the transaction number is not the next"));
        }
        match frame.command {
            b"syslog" if self.is_open => {
                let Some(sequence) = self.taken(frame.data, intake)? else { return Ok(false) };
                acknowledge(frame.transaction, sequence, intake);
            }
            // Unknown hints may be ignored.
            _ if is_hint => return Ok(true),
            b"open" if !self.is_open => {
                self.is_open = true;
                answer(frame, &offers(frame.data)?, intake);
            }
            // The answer must contain a code, because librelp's client expects it (`src/scrsp.c`),
            // although librelp's server omits it (`src/cclose.c`).
            b"close" if self.is_open => {
                answer(frame, "200 OK", intake);
                intake.is_over = true;
            }
            // An unknown command may carry a message, and an error as the answer would lose it.
            // librelp ends the connection, too (`src/relp.c`).
            b"open" => return Err(Refusal::Malformed("the session is open already")),
            b"syslog" | b"close" => return Err(Refusal::Malformed("the session was not opened")),
            _ => return Err(Refusal::Malformed("the command is unknown")),
        }
        if !is_hint {
            self.next = if self.next == TRANSACTION_MAX { 1 } else { self.next + 1 };
        }
        Ok(true)
    }
}

/// Queues the answer to a message, to be sent once the message is safe. A hint gets none.
fn acknowledge(transaction: usize, sequence: Option<u64>, intake: &mut Intake<'_>) {
    if transaction == 0 {
        return;
    }
    let mut answer = [0; ANSWER_BYTES_MAX];
    let answer = text(&mut answer, format_args!("{transaction} rsp 6 200 OK\n"));
    match sequence {
        Some(sequence) => intake.answer_to(sequence, answer),
        None => intake.answer(answer),
    }
}

fn answer(to: &RelpFrame<'_>, data: &str, intake: &mut Intake<'_>) {
    let answer = format!("{} rsp {} {data}\n", to.transaction, data.len());
    intake.answer(answer.as_bytes());
}

/// Returns the answer to a client's offers: the version that both support, and the only command.
fn offers(offered: &[u8]) -> Result<String, Refusal> {
    let version = offered
        .split(|&byte| byte == b'\n')
        .find_map(|offer| offer.strip_prefix(b"relp_version="))
        .and_then(|version| str::from_utf8(version).ok()?.parse::<u32>().ok())
        .ok_or(Refusal::Malformed("an open without its relp_version"))?
        .min(VERSION_MAX);
    let own = env!("CARGO_PKG_VERSION");
    Ok(format!("200 OK\nrelp_version={version}\nrelp_software=wrote,{own}\ncommands=syslog"))
}

struct RelpHead<'a> {
    transaction: usize,
    command: &'a [u8],
    /// The length of the data in bytes.
    length: usize,
    /// The length of the head in bytes, without the space before the data.
    bytes: usize,
}

impl<'a> RelpHead<'a> {
    /// Returns the head at the start of `input`; `None` if it is incomplete.
    fn first(input: &'a [u8]) -> Result<Option<RelpHead<'a>>, Refusal> {
        let is_digit = u8::is_ascii_digit;
        let Some((transaction, rest)) = field(input, DIGITS_MAX, is_digit)? else {
            return Ok(None);
        };
        let rest = behind(rest, b' ')?;
        let Some((command, rest)) = field(rest, COMMAND_BYTES_MAX, u8::is_ascii_alphabetic)? else {
            return Ok(None);
        };
        let rest = behind(rest, b' ')?;
        let Some((length, rest)) = field(rest, DIGITS_MAX, is_digit)? else { return Ok(None) };
        let (transaction, length) = (number(transaction), number(length));
        Ok(Some(RelpHead { transaction, command, length, bytes: input.len() - rest.len() }))
    }

    /// Returns the frame; `None` if it is incomplete. If `cut` is set, the message is truncated,
    /// and the frame is complete once the maximum length of a message has arrived.
    fn frame(
        &self,
        input: &'a [u8],
        message_bytes_max: usize,
        cut: bool,
    ) -> Result<Option<RelpFrame<'a>>, Refusal> {
        let &RelpHead { transaction, command, length, bytes } = self;
        let bytes_max = match command {
            b"syslog" if cut => PASSED_BYTES_MAX,
            b"syslog" => message_bytes_max,
            _ => OFFERS_BYTES_MAX,
        };
        if length > bytes_max {
            return Err(Refusal::TooLong);
        }
        let rest = &input[bytes..];
        let rest = if length > 0 { behind(rest, b' ')? } else { rest };
        if cut {
            let data = rest.get(..message_bytes_max);
            let bytes = bytes + 1 + message_bytes_max;
            return Ok(data.map(|data| RelpFrame { transaction, command, data, bytes }));
        }
        let Some((data, rest)) = rest.split_at_checked(length).filter(|(_, rest)| !rest.is_empty())
        else {
            return Ok(None);
        };
        let bytes = input.len() - behind(rest, b'\n')?.len();
        Ok(Some(RelpFrame { transaction, command, data, bytes }))
    }
}

/// Splits `input` after a field; `None` until the byte after the field has arrived.
fn field(input: &[u8], bytes_max: usize, has: fn(&u8) -> bool) -> Result<Split<'_>, Refusal> {
    let bytes = input.iter().take(bytes_max + 1).take_while(|byte| has(byte)).count();
    if bytes > bytes_max || (bytes == 0 && !input.is_empty()) {
        return Err(if is_tls(input) { TLS } else { NO_FRAME });
    }
    Ok((bytes < input.len()).then(|| input.split_at(bytes)))
}

/// A field, and the bytes that follow it.
type Split<'a> = Option<(&'a [u8], &'a [u8])>;

fn behind(input: &[u8], separator: u8) -> Result<&[u8], Refusal> {
    input.strip_prefix(&[separator]).ok_or(NO_FRAME)
}

#[cfg(test)]
mod tests;
