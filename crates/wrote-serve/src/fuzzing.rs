//! Drives a door without a connection, for tests of parsers and for the fuzzer.

use crate::answers::Answers;
use crate::config::{Frame, Oversize};
use crate::doors::{Frames, Intake, Protocol, Relp, Resp, Store};
use crate::refusals::{Reason, Refusal};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

const MESSAGE_BYTES_MAX: usize = 128;

/// Parses a stream with each framing, in one piece and split. Each element of `cuts` is the length
/// of a piece and the number of messages for which the log then has room.
///
/// # Panics
///
/// If the messages depend on the cuts, or the parser keeps more than one message.
pub fn frames(stream: &[u8], cuts: &[(usize, usize)]) {
    for frame in Frame::ALL {
        for oversize in Oversize::ALL {
            compare(|| Frames::new(frame, oversize), stream, cuts);
        }
    }
}

/// Parses a RELP session, in one piece and split as for [`frames`].
///
/// # Panics
///
/// If the messages or answers depend on the cuts, or the parser keeps more than one message.
pub fn relp(stream: &[u8], cuts: &[(usize, usize)]) {
    compare(|| Relp::new(Oversize::Truncate), stream, cuts);
}

/// Parses RESP requests, in one piece and split as for [`frames`]. There is no log to read.
///
/// # Panics
///
/// If the messages or answers depend on the cuts.
pub fn resp(stream: &[u8], cuts: &[(usize, usize)]) {
    compare(|| Resp::new(None, Arc::default()), stream, cuts);
}

fn compare<P: Protocol>(door: impl Fn() -> P, stream: &[u8], cuts: &[(usize, usize)]) {
    let whole = drive(door(), stream, &[], MESSAGE_BYTES_MAX);
    assert!(whole.records.iter().all(|record| record.len() <= MESSAGE_BYTES_MAX));
    assert_eq!(drive(door(), stream, cuts, MESSAGE_BYTES_MAX), whole);
}

/// The messages, answers and refusal that resulted from a stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub records: Vec<Vec<u8>>,
    pub answers: Vec<u8>,
    pub refused: Option<Reason>,
}

/// An in-memory store with room for a few messages.
#[derive(Default)]
struct Records {
    kept: RefCell<Vec<Vec<u8>>>,
    room: Cell<usize>,
}

impl Store for Records {
    fn is_well(&self) -> bool {
        true
    }

    fn try_append(&self, messages: &[&[u8]]) -> Result<Option<u64>, wrote::Error> {
        // As in a batch, room for one message is room for the whole group.
        let first = self.kept.borrow().len() as u64;
        let Some(room) = self.room.get().checked_sub(1) else { return Ok(None) };
        self.room.set(room);
        self.kept.borrow_mut().extend(messages.iter().map(|message| message.to_vec()));
        Ok(Some(first))
    }
}

/// Passes `stream` to a door in pieces, as a connection would, and then closes the stream. Each
/// element of `cuts` is the length of a piece and the number of messages for which the log then has
/// room.
///
/// # Panics
///
/// If the door keeps more bytes than one framed message.
pub(crate) fn drive(
    mut door: impl Protocol,
    stream: &[u8],
    cuts: &[(usize, usize)],
    message_bytes_max: usize,
) -> Outcome {
    let (records, mut answers) = (Records::default(), Answers::default());
    let (mut kept, mut rest) = (Vec::new(), stream);
    let whole = [(stream.len(), usize::MAX)];
    let mut cuts = if cuts.is_empty() { &whole } else { cuts }.iter().cycle();
    let mut refused = None;
    loop {
        let &(bytes, room) = cuts.next().expect("an endless cycle");
        let (piece, behind) = rest.split_at(bytes.clamp(1, rest.len().max(1)).min(rest.len()));
        kept.extend_from_slice(piece);
        rest = behind;
        records.room.set(room);
        match turn(&mut door, &mut kept, rest.is_empty(), &records, &mut answers, message_bytes_max)
        {
            Ok(false) => {}
            Ok(true) => break,
            Err(refusal) => {
                refused = Some(refusal.reason());
                break;
            }
        }
    }
    answers.release(u64::MAX);
    let mut sent = Vec::new();
    while !answers.sendable().is_empty() {
        sent.extend_from_slice(answers.sendable());
        answers.sent(answers.sendable().len());
    }
    Outcome { records: records.kept.into_inner(), answers: sent, refused }
}

/// Passes the kept bytes to the door until it needs more. Returns whether the connection is over.
fn turn<P: Protocol>(
    door: &mut P,
    kept: &mut Vec<u8>,
    has_ended: bool,
    records: &Records,
    answers: &mut Answers,
    message_bytes_max: usize,
) -> Result<bool, Refusal> {
    loop {
        let mut intake = Intake::new(records, answers, message_bytes_max);
        let mut done = door.take(kept, &mut intake)?;
        if has_ended && !intake.is_full && !intake.is_over {
            done += door.take_rest(&kept[done..], &mut intake)?;
        }
        let is_over = intake.is_over || has_ended && !intake.is_full;
        if is_over {
            door.goodbye(&mut intake);
        }
        let is_full = intake.is_full;
        kept.drain(..done);
        if is_over || !is_full {
            assert!(is_over || kept.len() <= message_bytes_max + P::FRAME_BYTES_MAX);
            return Ok(is_over);
        }
        records.room.set(1);
    }
}
