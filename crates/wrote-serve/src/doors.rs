//! Doors: protocol parsers without I/O. They receive bytes, pass messages to the log through an
//! [`Intake`], which checks and counts them, and produce answers.

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

/// The maximum number of bytes that are skipped. A larger length is considered an error.
const PASSED_BYTES_MAX: usize = 64 << 20;

/// A protocol on a byte stream.
pub(crate) trait Protocol: Send + Unpin + 'static {
    /// The maximum number of bytes beyond one message that the door leaves unconsumed.
    #[cfg(any(test, feature = "fuzzing"))]
    const FRAME_BYTES_MAX: usize = 1024 + 64;

    /// Processes complete messages and commands at the start of `input`, and returns the number of
    /// bytes consumed. The rest is passed again together with more bytes. Stops when the intake is
    /// full.
    fn take(&mut self, input: &[u8], intake: &mut Intake<'_>) -> Result<usize, Refusal>;

    /// Processes unfinished input after the client has closed the stream or the server drains.
    /// Returns the number of bytes consumed.
    fn take_rest(&mut self, rest: &[u8], _: &mut Intake<'_>) -> Result<usize, Refusal> {
        Ok(rest.len())
    }

    /// Switches to the current tokens. Fails if the client's token is no longer valid.
    fn renew(&mut self, _: &Arc<Access>) -> Result<(), Refusal> {
        Ok(())
    }

    /// Returns whether the client has not authenticated yet.
    fn is_stranger(&self) -> bool {
        false
    }

    /// Returns the memory that the parser uses in addition to the input, if it is significant.
    fn held_bytes(&self) -> usize {
        0
    }

    /// Queues a goodbye after the last answer, before the server closes the connection.
    fn goodbye(&mut self, _: &mut Intake<'_>) {}
}

/// A destination for messages: a log, or a substitute in tests.
pub(crate) trait Store {
    /// Appends messages atomically (a crash keeps all or none) and returns the sequence of the
    /// first; `None` if there is no room.
    fn try_append(&self, messages: &[&[u8]]) -> Result<Option<u64>, wrote::Error>;

    /// Returns whether the store accepts messages. If it does, an error of an append concerns the
    /// message.
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

/// The interface through which a door appends the messages and queues the answers of one
/// connection.
pub(crate) struct Intake<'a> {
    store: &'a dyn Store,
    answers: &'a mut Answers,
    pub message_bytes_max: usize,
    /// Adds stamps to messages; `None` if records are the bare messages.
    pub stamper: Option<&'a Stamper>,
    /// The number of messages, and of their bytes, appended through this value.
    pub messages: u64,
    pub bytes: u64,
    /// The number of oversized messages accepted in part.
    pub cut: u64,
    /// Whether the log had no room for a message. The door passes that message again later.
    pub is_full: bool,
    /// Whether the channel currently accepts no messages.
    pub is_closed: bool,
    /// Whether the sender is paused while no messages are accepted, because it gets no answers.
    pub holds: bool,
    /// An answer in progress, which follows all earlier answers.
    pub later: Option<Later>,
    /// The reasons why individual messages were refused while the connection continues.
    pub rejected: Vec<Reason>,
    /// Whether the door accepts no more input, so that the connection is closed after the answers.
    pub is_over: bool,
}

/// An answer that another task builds. If the task drops its sender, there is no answer.
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

    /// Appends a message and returns its sequence. Returns `None` if the log has no room; the door
    /// then stops before this message, and passes it again later.
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

    /// Returns whether the door must stop before the next message, because no messages are accepted
    /// now.
    fn is_held(&mut self) -> bool {
        self.is_full |= self.is_closed && self.holds;
        self.is_full
    }

    /// Handles a failed append. Refuses the message, unless the sender gets no answers and the
    /// failure is temporary: the sender is then paused until the log is reopened or space is free.
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
    /// it does not block later messages. Returns whether there was room.
    pub(crate) fn take(&mut self, message: &[u8]) -> Result<bool, Refusal> {
        match self.append(message) {
            Err(Refusal::Unfit(_)) => {
                self.reject(Reason::Malformed);
                Ok(true)
            }
            appended => appended.map(|sequence| sequence.is_some()),
        }
    }

    /// Like [`Intake::take`], but for several messages. Returns how many were processed. If there
    /// are more, the door stops before the next one, and passes it again later.
    pub(crate) fn append_run(&mut self, messages: &[&[u8]]) -> Result<usize, Refusal> {
        if self.is_held() {
            return Ok(0);
        }
        // The messages are appended together if they all fit; otherwise, one by one.
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

    /// Appends messages atomically (a crash keeps all or none), and returns the sequence of the
    /// first. Returns `None` if there is no room, like [`Intake::append`].
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

    /// Queues `answer`, to be sent once record `sequence` is safe and all earlier answers have been
    /// sent.
    pub(crate) fn answer_to(&mut self, sequence: u64, answer: &[u8]) {
        self.answers.push(sequence + 1, answer);
    }

    /// Counts a message that was refused with an error on a connection that continues.
    pub(crate) fn reject(&mut self, reason: Reason) {
        self.rejected.push(reason);
    }

    /// Queues `answer` after all earlier answers.
    pub(crate) fn answer(&mut self, answer: &[u8]) {
        self.answers.push(0, answer);
    }
}

/// Formats a short text into `to`, which must be long enough, without allocating.
fn text<'a>(to: &'a mut [u8], arguments: std::fmt::Arguments<'_>) -> &'a [u8] {
    let mut rest = &mut *to;
    rest.write_fmt(arguments).expect("it fits");
    let left = rest.len();
    &to[..to.len() - left]
}
