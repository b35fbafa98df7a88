//! Doors: protocol parsers without I/O. Bytes come in, messages go to the log by an [`Intake`],
//! which checks and counts them, and answers come out.

mod frames;
pub(crate) mod http;
mod relp;
mod resp;

pub(crate) use frames::{Frames, without_trailer};
pub(crate) use relp::Relp;
pub(crate) use resp::{READS_MAX, Resp};

use crate::answers::Answers;
use crate::config::access::Access;
use crate::refusals::{Reason, Refusal};
use crate::stamp::{self, Stamper};
use crate::target::{Health, Target};
use std::io::Write;
use std::sync::Arc;
use tokio::sync::oneshot;

/// The maximum number of bytes that are skipped. A larger count is considered wrong.
const PASSED_BYTES_MAX: usize = 64 << 20;

/// A protocol on a byte stream.
pub(crate) trait Protocol: Send + Unpin + 'static {
    /// The maximum number of unread bytes that the door leaves beyond one message.
    #[cfg(any(test, feature = "fuzzing"))]
    const FRAME_BYTES_MAX: usize = 1024 + 64;

    /// Takes complete messages and commands from the start of `input`, and returns the bytes
    /// consumed. The rest is passed again with more bytes after it. Stops when the intake is full.
    fn take(&mut self, input: &[u8], intake: &mut Intake<'_>) -> Result<usize, Refusal>;

    /// Takes unfinished input after the client ended the stream or the server drains. Returns like
    /// [`Protocol::take`].
    fn take_rest(&mut self, rest: &[u8], _: &mut Intake<'_>) -> Result<usize, Refusal> {
        Ok(rest.len())
    }

    /// Switches to the current tokens. Fails if the client's token is no longer valid.
    fn renew(&mut self, _: &Arc<Access>) -> Result<(), Refusal> {
        Ok(())
    }

    /// Returns whether the client still has to give a token.
    fn is_stranger(&self) -> bool {
        false
    }

    /// Returns the memory that the parser keeps besides the input, if considerable.
    fn held_bytes(&self) -> usize {
        0
    }

    /// Queues a goodbye after the last answer, before the server ends the connection.
    fn goodbye(&mut self, _: &mut Intake<'_>) {}
}

/// A destination for messages: a log, or its substitute in tests.
pub(crate) trait Store {
    /// Appends messages atomically (a crash keeps all or none) and returns the first sequence;
    /// `None` while there is no room.
    fn try_append(&self, messages: &[&[u8]]) -> Result<Option<u64>, wrote::Error>;

    /// Returns whether the store accepts messages, in which case an error concerns the message.
    fn is_well(&self) -> bool;
}

impl Store for Target {
    fn try_append(&self, messages: &[&[u8]]) -> Result<Option<u64>, wrote::Error> {
        let ticket = match self {
            Target::Log(log) => log.try_append(messages)?,
            Target::File(lines) => lines.try_append(messages)?,
        };
        Ok(ticket.map(|ticket| ticket.sequence() + 1 - messages.len() as u64))
    }

    fn is_well(&self) -> bool {
        !matches!(self.health(), Health::Failed(_))
    }
}

/// Where a door puts the messages and answers of one connection.
pub(crate) struct Intake<'a> {
    store: &'a dyn Store,
    answers: &'a mut Answers,
    pub message_bytes_max: usize,
    /// Turns messages into records, if they differ.
    pub stamper: Option<&'a Stamper>,
    /// Messages and bytes since this value was created.
    pub messages: u64,
    pub bytes: u64,
    /// Oversized messages accepted in part.
    pub cut: u64,
    /// The log had no room for a message; the door passes it again later.
    pub is_full: bool,
    /// The channel accepts no messages now.
    pub is_closed: bool,
    /// The sender is paused while no messages are accepted, because it gets no answers.
    pub holds: bool,
    /// An answer in progress, after all earlier answers.
    pub later: Option<Later>,
    /// Why individual messages were refused while the connection continues.
    pub rejected: Vec<Reason>,
    /// The door accepts no more input; the connection ends after the answers.
    pub is_over: bool,
}

/// An answer made by another task; there is none if the sender is dropped.
pub(crate) type Later = oneshot::Receiver<Vec<u8>>;

impl<'a> Intake<'a> {
    pub(crate) fn new(
        store: &'a dyn Store,
        answers: &'a mut Answers,
        message_bytes_max: usize,
    ) -> Self {
        Intake {
            store,
            answers,
            message_bytes_max,
            stamper: None,
            messages: 0,
            bytes: 0,
            cut: 0,
            is_full: false,
            is_closed: false,
            holds: false,
            later: None,
            rejected: Vec::new(),
            is_over: false,
        }
    }

    /// Appends a message and returns its sequence. Returns `None` while the log has no room: the
    /// door then stops before this message, and is called again with it.
    pub(crate) fn append(&mut self, message: &[u8]) -> Result<Option<u64>, Refusal> {
        if self.is_held() {
            return Ok(None);
        }
        self.check(message)?;
        let record = stamp::record(self.stamper, message);
        let sequence = match self.store.try_append(&[&record]) {
            Ok(sequence) => sequence,
            Err(error) => self.fail(error).map(|()| None)?,
        };
        if sequence.is_none() {
            self.is_full = true;
        } else {
            self.count(message);
        }
        Ok(sequence)
    }

    /// Returns whether the door stops before the next message because none are accepted now.
    fn is_held(&mut self) -> bool {
        self.is_full |= self.is_closed && self.holds;
        self.is_full
    }

    /// Refuses a message that the log can never hold. A sender without answers is paused, because a
    /// reopened log or free space ends the condition.
    fn fail(&mut self, error: wrote::Error) -> Result<(), Refusal> {
        let refusal = self.refusal(error);
        if !self.holds || matches!(refusal, Refusal::Unfit(_)) {
            return Err(refusal);
        }
        self.is_closed = true;
        Ok(())
    }

    fn refusal(&self, error: wrote::Error) -> Refusal {
        Refusal::by_log(error, self.store.is_well())
    }

    /// Like [`Intake::append`], but counts and drops a message that the log can never hold, so that
    /// it does not block later ones. Returns whether there was room.
    pub(crate) fn take(&mut self, message: &[u8]) -> Result<bool, Refusal> {
        match self.append(message) {
            Err(Refusal::Unfit(_)) => {
                self.reject(Reason::Malformed);
                Ok(true)
            }
            appended => appended.map(|sequence| sequence.is_some()),
        }
    }

    /// Like [`Intake::take`] for several messages. Returns how many are done; if fewer than all,
    /// the door stops before the next and is called again with it.
    pub(crate) fn append_run(&mut self, messages: &[&[u8]]) -> Result<usize, Refusal> {
        if self.is_held() {
            return Ok(0);
        }
        // One claim for all, where they have room together; otherwise each by itself.
        if messages.len() > 1
            && self.stamper.is_none()
            && messages.iter().all(|message| self.check(message).is_ok())
            && let Ok(Some(_)) = self.store.try_append(messages)
        {
            messages.iter().for_each(|message| self.count(message));
            return Ok(messages.len());
        }
        for (done, message) in messages.iter().enumerate() {
            if !self.take(message)? {
                return Ok(done);
            }
        }
        Ok(messages.len())
    }

    /// Appends messages atomically (a crash keeps all or none), and returns the first sequence.
    /// Without room it returns `None`, like [`Intake::append`].
    pub(crate) fn append_all(&mut self, messages: &[&[u8]]) -> Result<Option<u64>, Refusal> {
        messages.iter().try_for_each(|message| self.check(message))?;
        let records = messages.iter().map(|message| stamp::record(self.stamper, message));
        let records: Vec<_> = records.collect();
        let records: Vec<&[u8]> = records.iter().map(|record| &**record).collect();
        let first = self.store.try_append(&records).map_err(|error| self.refusal(error))?;
        self.is_full |= first.is_none();
        if first.is_some() {
            messages.iter().for_each(|message| self.count(message));
        }
        Ok(first)
    }

    fn check(&self, message: &[u8]) -> Result<(), Refusal> {
        if message.len() > self.message_bytes_max {
            return Err(Refusal::TooLong);
        }
        if self.is_closed { Err(Refusal::Closed) } else { Ok(()) }
    }

    fn count(&mut self, message: &[u8]) {
        self.messages += 1;
        self.answers.take_message();
        self.bytes += message.len() as u64;
    }

    /// Queues `answer` until record `sequence` is safe and all earlier answers are sent.
    pub(crate) fn answer_to(&mut self, sequence: u64, answer: &[u8]) {
        self.answers.push(sequence + 1, answer);
    }

    /// Counts a message refused with an error, on a connection that continues.
    pub(crate) fn reject(&mut self, reason: Reason) {
        self.rejected.push(reason);
    }

    /// Queues `answer` after all earlier answers.
    pub(crate) fn answer(&mut self, answer: &[u8]) {
        self.answers.push(0, answer);
    }
}

/// Writes a short text into bytes that hold it, without an allocation.
fn text<'a>(to: &'a mut [u8], arguments: std::fmt::Arguments<'_>) -> &'a [u8] {
    let mut rest = &mut *to;
    rest.write_fmt(arguments).expect("it fits");
    let left = rest.len();
    &to[..to.len() - left]
}
