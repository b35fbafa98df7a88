//! RESP2 and RESP3 as spoken by Redis clients. The log appears as a stream or a list.
//!
//! The protocol is specified at <https://redis.io/docs/latest/develop/reference/protocol-spec/>.
//! The record with sequence N has the ID `N-1`, so that `0-0` precedes the first record.

mod greeting;
mod read;
mod request;
mod transaction;

use super::{Protocol, text};
use crate::channel::Channel;
use crate::config::access::Access;
use crate::doors::Intake;
use crate::refusals::{Reason, Refusal};
use crate::target::Level;
pub(crate) use read::READS_MAX;
use request::Request;
use std::borrow::Cow;
use std::sync::Arc;
use transaction::Transaction;

/// The name of the only field in an entry when it is read.
const FIELD: &str = "message";
/// The Redis version reported to clients. Streams were added in 5.0, and HELLO in 6.0.
const REDIS_VERSION: &str = "7.0.0";
/// The maximum length of a request from a client that has not authenticated.
const GREETING_BYTES_MAX: usize = 16 << 10;
/// The maximum length of an answer to XADD: `$22` and an ID of up to 22 digits.
const ID_BYTES_MAX: usize = 40;

/// The parser, and the state of its client.
#[derive(Debug)]
pub(crate) struct Resp {
    /// The log, and the level at which records may be read; `None` in tests without a log.
    log: Option<(Arc<Channel>, Level)>,
    request: Request,
    /// For the request at the start of the input, if the log had no room for all of it: the number
    /// of its values that are already in the log, and the sequence of the last one.
    pushed: Option<(usize, u64)>,
    transaction: Option<Transaction>,
    /// Whether the client uses RESP3.
    is_three: bool,
    access: Arc<Access>,
    /// The valid token that the client has given.
    token: Option<Box<[u8]>>,
}

const NO_GROUPS: &str =
    "ERR consumer groups are not supported: keep the last ID, and continue with XREAD";

enum Obeyed {
    Done,
    /// The log had no room. The same request is passed again later.
    Again,
}

impl Resp {
    pub(crate) fn new(log: Option<(Arc<Channel>, Level)>, access: Arc<Access>) -> Resp {
        let (request, pushed, transaction) = (Request::default(), None, None);
        Resp { log, request, pushed, transaction, is_three: false, access, token: None }
    }
}

impl Protocol for Resp {
    #[cfg(any(test, feature = "fuzzing"))]
    const FRAME_BYTES_MAX: usize = request::REQUEST_BYTES_MAX;

    fn renew(&mut self, access: &Arc<Access>) -> Result<(), Refusal> {
        let was_let_in = !self.is_stranger();
        self.access = access.clone();
        self.token = self.token.take().filter(|token| access.accepts(token));
        if was_let_in && self.is_stranger() { Err(Refusal::Revoked) } else { Ok(()) }
    }

    fn is_stranger(&self) -> bool {
        !greeting::may_come(self, b"")
    }

    fn take(&mut self, input: &[u8], intake: &mut Intake<'_>) -> Result<usize, Refusal> {
        let done = self.take_requests(input, intake);
        self.request.shrink();
        done
    }

    fn held_bytes(&self) -> usize {
        self.request.held_bytes()
    }
}

impl Resp {
    fn take_requests(&mut self, input: &[u8], intake: &mut Intake<'_>) -> Result<usize, Refusal> {
        let mut done = 0;
        while !intake.is_over && intake.later.is_none() {
            // The commands of a transaction remain at the front of the input until EXEC.
            let begun = self.transaction.as_ref().map_or(0, |transaction| transaction.bytes);
            let rest = &input[done + begun..];
            let read = self.request.read(rest);
            let whole = read.as_ref().ok().copied().flatten();
            if whole.unwrap_or(rest.len()) > GREETING_BYTES_MAX && self.is_stranger() {
                return Err(Refusal::TooLong);
            }
            let bytes = match read {
                Ok(Some(bytes)) => bytes,
                _ if begun + rest.len() > request::REQUEST_BYTES_MAX && begun > 0 => {
                    error(intake, "ERR the transaction has too many bytes");
                    return Err(Refusal::TooLong);
                }
                Ok(None) => break,
                Err(refusal) => {
                    intake.answer(b"-ERR Protocol error\r\n");
                    return Err(refusal);
                }
            };
            if let Obeyed::Again = self.obey(&input[done..], begun, intake)? {
                break;
            }
            match &mut self.transaction {
                Some(transaction) => transaction.bytes = begun + bytes,
                None => done += begun + bytes,
            }
        }
        Ok(done)
    }

    /// Executes the request that follows the first `begun` bytes, which belong to a transaction.
    fn obey(
        &mut self,
        input: &[u8],
        begun: usize,
        intake: &mut Intake<'_>,
    ) -> Result<Obeyed, Refusal> {
        let (block, input) = input.split_at(begun);
        if self.request.is_quoted {
            if let Some(transaction) = &mut self.transaction {
                transaction.is_refused = true;
            }
            error(intake, "ERR quotes are not supported in a typed line: send it as an array");
            return Ok(Obeyed::Done);
        }
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
        if !greeting::may_come(self, name) {
            error(intake, "NOAUTH Authentication required.");
            intake.reject(Reason::Unauthorized);
            return Ok(Obeyed::Done);
        }
        match (name, words) {
            (b"MULTI", 1) => transaction::multi(self, intake),
            (b"EXEC", 1) => return transaction::exec(self, block, intake),
            (b"DISCARD", 1) => transaction::discard(self, intake),
            (b"QUIT" | b"RESET", 1) if self.transaction.take().is_some() => {
                return self.obey(input, 0, intake);
            }
            _ if self.transaction.is_some() => transaction::enqueue(self, name, input, intake),
            (b"UNWATCH", 1) => intake.answer(b"+OK\r\n"),
            (b"XADD", 5..) => return self.xadd(input, intake),
            (b"RPUSH" | b"LPUSH", 3..) => return self.push(input, intake),
            // A web page can make a browser send these to a local listener (redis/redis#12024).
            (b"POST" | b"HOST:", _) => {
                return Err(Refusal::Malformed("HTTP came to a listener of RESP"));
            }
            (b"PING", 1) => intake.answer(b"+PONG\r\n"),
            (b"PING" | b"ECHO", 2) => bulk(intake, self.request.word(input, 1).unwrap_or_default()),
            (b"HELLO", _) => greeting::hello(self, input, intake),
            (b"SELECT", 2) if self.request.word(input, 1) == Some(b"0") => {
                intake.answer(b"+OK\r\n");
            }
            (b"SELECT", 2) => error(intake, "ERR DB index is out of range"),
            (b"CLIENT", 2..) => self.client(input, intake),
            (b"COMMAND", 1) => intake.answer(b"*0\r\n"),
            (b"COMMAND", _) if self.is(input, 1, b"DOCS") => intake.answer(b"*0\r\n"),
            (b"CONFIG", 3..) if self.is(input, 1, b"GET") => intake.answer(b"*0\r\n"),
            (b"COMMAND" | b"CONFIG", 2..) => self.unknown_subcommand(input, intake),
            (b"INFO", _) => self.info(intake),
            (b"RESET", 1) => {
                (self.is_three, self.token) = (false, None);
                intake.answer(b"+RESET\r\n");
            }
            (b"QUIT", 1) => {
                intake.answer(b"+OK\r\n");
                intake.is_over = true;
            }
            (b"AUTH", 2 | 3) => greeting::auth(self, input, intake),
            (b"XLEN" | b"LLEN", 2) => read::xlen(self, intake),
            (b"XRANGE", 4 | 6) => read::xrange(self, input, intake),
            (b"XGROUP" | b"XREADGROUP" | b"XACK" | b"XPENDING" | b"XCLAIM" | b"XAUTOCLAIM", _) => {
                error(intake, NO_GROUPS);
            }
            // All keys refer to the log.
            (b"EXISTS", 2..) => intake.answer(format!(":{}\r\n", words - 1).as_bytes()),
            (b"TYPE", 2) => intake.answer(b"+stream\r\n"),
            // The log has its own retention, so nothing is removed.
            (b"XTRIM", 4..) if self.trimming(input, 3) == Some(words) => intake.answer(b":0\r\n"),
            (b"XREAD", 4..) => read::xread(self, input, intake),
            (
                b"XADD" | b"RPUSH" | b"LPUSH" | b"ECHO" | b"PING" | b"XLEN" | b"XRANGE" | b"XREAD"
                | b"EXISTS" | b"TYPE" | b"SELECT" | b"CLIENT" | b"CONFIG" | b"AUTH" | b"MULTI"
                | b"EXEC" | b"DISCARD",
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

    /// Handles `XADD key * field value`. The value is the record; several fields are combined into
    /// one record. Trimming options are ignored, because the log has its own retention.
    fn xadd(&mut self, input: &[u8], intake: &mut Intake<'_>) -> Result<Obeyed, Refusal> {
        let record = match self.entry(input) {
            Ok(record) => record,
            Err(problem) => {
                error(intake, problem);
                return Ok(Obeyed::Done);
            }
        };
        match appended(intake.append(&record), intake) {
            Ok(sequence) => answer_id(sequence, intake),
            Err(obeyed) => return Ok(obeyed),
        }
        Ok(Obeyed::Done)
    }

    /// Returns the record of an XADD, or an error for the client.
    fn entry<'a>(&self, input: &'a [u8]) -> Result<Cow<'a, [u8]>, &'static str> {
        let is = |at, option| self.is(input, at, option);
        let mut at = 2;
        loop {
            let begin = at;
            at += usize::from(is(at, b"NOMKSTREAM"));
            // This option concerns references to removed entries, and there are none.
            at += usize::from(is(at, b"KEEPREF"));
            if is(at, b"MAXLEN") || is(at, b"MINID") {
                at = self.trimming(input, at + 1).ok_or("ERR syntax error")?;
            }
            if at == begin {
                break;
            }
        }
        if !is(at, b"*") {
            return Err("ERR the ID must be *: the log assigns the next sequence");
        }
        let words = at + 1..self.request.len();
        if words.len() < 2 || !words.len().is_multiple_of(2) {
            return Err("ERR wrong number of arguments for the command");
        }
        let words: Vec<_> = words.filter_map(|at| self.request.word(input, at)).collect();
        request::record(&words)
    }

    /// Returns the position after the trimming options; `None` if they are invalid.
    fn trimming(&self, input: &[u8], mut at: usize) -> Option<usize> {
        let is = |at, option: &[u8]| self.is(input, at, option);
        let is_number = |at| {
            let word = self.request.word(input, at).unwrap_or_default();
            !word.is_empty() && word.iter().all(|byte| byte.is_ascii_digit() || *byte == b'-')
        };
        let is_about = is(at, b"~");
        at += usize::from(is_about || is(at, b"="));
        if !is_number(at) {
            return None;
        }
        match is(at + 1, b"LIMIT") {
            true if is_about && is_number(at + 2) => Some(at + 3),
            true => None,
            false => Some(at + 1),
        }
    }

    /// Returns whether the word at a position equals `word`, ignoring case.
    fn is(&self, input: &[u8], at: usize, word: &[u8]) -> bool {
        self.request.word(input, at).is_some_and(|found| found.eq_ignore_ascii_case(word))
    }

    /// Handles `RPUSH key value..`. Each value is a record, and the answer is the resulting length
    /// of the list.
    fn push(&mut self, input: &[u8], intake: &mut Intake<'_>) -> Result<Obeyed, Refusal> {
        let (before, mut last) = self.pushed.take().unwrap_or((0, 0));
        for at in 2 + before..self.request.len() {
            let value = self.request.word(input, at).unwrap_or_default();
            let outcome = intake.append(value);
            match appended(outcome, intake) {
                Ok(sequence) => last = sequence,
                Err(Obeyed::Again) => {
                    self.pushed = Some((at - 2, last));
                    return Ok(Obeyed::Again);
                }
                // Earlier values are already in the log. The client resends all of them, which
                // duplicates some but loses none.
                Err(Obeyed::Done) => return Ok(Obeyed::Done),
            }
        }
        answer_len(last, intake);
        Ok(Obeyed::Done)
    }

    /// Accepts the properties that clients report about themselves, but does not use them.
    fn client(&self, input: &[u8], intake: &mut Intake<'_>) {
        match self.request.len() {
            3 if self.is(input, 1, b"SETNAME") => intake.answer(b"+OK\r\n"),
            4 if self.is(input, 1, b"SETINFO") => intake.answer(b"+OK\r\n"),
            _ => self.unknown_subcommand(input, intake),
        }
    }

    fn unknown_subcommand(&self, input: &[u8], intake: &mut Intake<'_>) {
        let word = |at| self.request.word(input, at).unwrap_or_default();
        let [name, sub] = [word(0), word(1)].map(|word| word[..word.len().min(64)].escape_ascii());
        error(intake, &format!("ERR unknown subcommand or arguments: '{name} {sub}'"));
    }

    fn info(&self, intake: &mut Intake<'_>) {
        let own = env!("CARGO_PKG_VERSION");
        let text = format!(
            "# Server\r\nredis_version:{REDIS_VERSION}\r\nredis_mode:standalone\r\n\
             wrote_version:{own}\r\n"
        );
        bulk(intake, text.as_bytes());
    }
}

/// Returns the sequence of an appended record. Otherwise, returns how to continue: repeat the
/// request once the log has room, or proceed with the next request after an error has been
/// answered.
fn appended(outcome: Result<Option<u64>, Refusal>, intake: &mut Intake<'_>) -> Result<u64, Obeyed> {
    match outcome {
        Ok(sequence) => sequence.ok_or(Obeyed::Again),
        Err(refusal) => {
            refuse(refusal, intake);
            Err(Obeyed::Done)
        }
    }
}

/// Queues the reason for refusing a message as the answer, and counts the refusal.
fn refuse(refusal: Refusal, intake: &mut Intake<'_>) {
    match refusal {
        Refusal::TooLong => {
            let max = intake.message_bytes_max;
            error(intake, &format!("ERR the message has more than {max} bytes"));
        }
        Refusal::Unfit(ref because) => error(intake, &format!("ERR {because}")),
        Refusal::Malformed(because) => error(intake, &format!("ERR {because}")),
        Refusal::Log(ref cause) => {
            let cause = cause.to_string();
            error(intake, &format!("MISCONF the log accepts no messages: {cause}"));
        }
        _ => error(intake, "MISCONF the log accepts no messages now"),
    }
    intake.reject(refusal.reason());
}

/// Queues the answer to XADD: the record's ID.
fn answer_id(sequence: u64, intake: &mut Intake<'_>) {
    let (mut id, mut answer) = ([0; ID_BYTES_MAX], [0; ID_BYTES_MAX]);
    let id = text(&mut id, format_args!("{sequence}-1"));
    let len = id.len();
    let head = text(&mut answer, format_args!("${len}\r\n")).len();
    answer[head..head + len].copy_from_slice(id);
    answer[head + len..head + len + 2].copy_from_slice(b"\r\n");
    intake.answer_to(sequence, &answer[..head + len + 2]);
}

/// Queues the answer to a push: the length of the list that ends with record `last`.
fn answer_len(last: u64, intake: &mut Intake<'_>) {
    let mut answer = [0; ID_BYTES_MAX];
    intake.answer_to(last, text(&mut answer, format_args!(":{}\r\n", last + 1)));
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

#[cfg(test)]
mod tests;
