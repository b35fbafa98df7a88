//! MULTI, EXEC and DISCARD: commands whose records are appended atomically.

use super::request::Request;
use super::{Obeyed, Resp, answer_id, answer_len, error, refuse};
use crate::doors::Intake;
use crate::refusals::Refusal;
use std::borrow::Cow;

/// An open transaction. Its commands remain in the connection's input until EXEC, and are accounted
/// for as bytes in flight.
#[derive(Debug, Default)]
pub(super) struct Transaction {
    /// The number of input bytes from MULTI to the end of the last answered command.
    pub bytes: usize,
    commands: usize,
    /// Whether a command was refused, so that EXEC will be refused, too.
    pub is_refused: bool,
}

pub(super) fn multi(resp: &mut Resp, intake: &mut Intake<'_>) {
    if let Some(transaction) = &mut resp.transaction {
        transaction.is_refused = true;
        return error(intake, "ERR MULTI calls can not be nested");
    }
    resp.transaction = Some(Transaction::default());
    intake.answer(b"+OK\r\n");
}

pub(super) fn discard(resp: &mut Resp, intake: &mut Intake<'_>) {
    match resp.transaction.take() {
        Some(_) => intake.answer(b"+OK\r\n"),
        None => error(intake, "ERR DISCARD without MULTI"),
    }
}

/// Queues a command. If the command is refused, the transaction is, too.
pub(super) fn enqueue(resp: &mut Resp, name: &[u8], input: &[u8], intake: &mut Intake<'_>) {
    let problem = match (name, resp.request.len()) {
        (b"XADD", 5..) => resp.entry(input).err().map(str::to_owned),
        (b"XTRIM", words @ 4..) if resp.trimming(input, 3) == Some(words) => None,
        (b"RPUSH" | b"LPUSH", 3..) | (b"PING", 1 | 2) | (b"ECHO" | b"XLEN" | b"LLEN", 2) => None,
        _ => {
            let name = name.escape_ascii();
            Some(format!("ERR '{name}' with these arguments is not supported in a transaction"))
        }
    };
    let transaction = resp.transaction.as_mut().expect("it has begun");
    transaction.commands += 1;
    transaction.is_refused |= problem.is_some();
    match problem {
        Some(problem) => error(intake, &problem),
        None => intake.answer(b"+QUEUED\r\n"),
    }
}

/// Appends the records of all commands, and answers each command. `input` consists of MULTI and the
/// commands.
pub(super) fn exec(
    resp: &mut Resp,
    input: &[u8],
    intake: &mut Intake<'_>,
) -> Result<Obeyed, Refusal> {
    let Some(transaction) = resp.transaction.take() else {
        error(intake, "ERR EXEC without MULTI");
        return Ok(Obeyed::Done);
    };
    if transaction.is_refused {
        error(intake, "EXECABORT Transaction discarded because of previous errors.");
        return Ok(Obeyed::Done);
    }
    let records: Vec<_> = commands(input).flat_map(|command| records_of(resp, command)).collect();
    let records: Vec<&[u8]> = records.iter().map(|record| &**record).collect();
    let mut next = 0;
    if !records.is_empty() {
        match intake.append_all(&records) {
            Ok(Some(first)) => next = first,
            Ok(None) => {
                resp.transaction = Some(transaction);
                return Ok(Obeyed::Again);
            }
            Err(refusal) => {
                refuse(refusal, intake);
                return Ok(Obeyed::Done);
            }
        }
    }
    intake.answer(format!("*{}\r\n", transaction.commands).as_bytes());
    for command in commands(input) {
        let count = records_of(resp, command).len() as u64;
        next += count;
        match resp.request.word(command, 0) {
            _ if count == 0 => _ = resp.obey(command, 0, intake)?,
            Some(name) if name.eq_ignore_ascii_case(b"XADD") => answer_id(next - 1, intake),
            _ => answer_len(next - 1, intake),
        }
    }
    Ok(Obeyed::Done)
}

/// Parses a command and returns its records.
fn records_of<'a>(resp: &mut Resp, command: &'a [u8]) -> Vec<Cow<'a, [u8]>> {
    // The command was parsed successfully before.
    let _ = resp.request.read(command);
    let word = |at| resp.request.word(command, at).unwrap_or_default();
    match word(0).to_ascii_uppercase().as_slice() {
        b"XADD" => resp.entry(command).into_iter().collect(),
        b"RPUSH" | b"LPUSH" => (2..resp.request.len()).map(word).map(Cow::Borrowed).collect(),
        _ => Vec::new(),
    }
}

/// Returns each command after MULTI, with the input that follows it.
fn commands(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut request = Request::default();
    let mut rest = input;
    std::iter::from_fn(move || {
        loop {
            let bytes = request.read(rest).ok().flatten()?;
            let command = rest;
            rest = &rest[bytes..];
            // MULTI itself and empty lines between commands are skipped.
            let is_first = std::ptr::eq(command, input);
            if !is_first && request.len() > 0 {
                return Some(command);
            }
        }
    })
}
