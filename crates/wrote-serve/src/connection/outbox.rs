//! The answers of a connection, which are held until their records are safe and then sent.

use super::room::Room;
use crate::acks::{Acks, Wait as Acked};
use crate::answers::Answers;
use crate::doors::Later;
use crate::port::Port;
use crate::refusals::Refusal;
use crate::stream::Stream;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::time::{Sleep, sleep};

/// The number of unsent bytes of answers at which the connection stops reading input.
const UNSENT_BYTES_MAX: usize = 256 << 10;
/// The interval at which a connection with much input checks whether its client still waits for an
/// answer.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// The unsent answers, and the messages that they acknowledge.
pub(super) struct Outbox {
    pub answers: Answers,
    acks: Arc<Acks>,
    /// The wait for the record that belongs to the next answer.
    acked: Option<Acked>,
    /// The number of messages in the log that have not been answered.
    unacked: u64,
    /// The end of the batch whose answer is timed, and the time at which it was appended.
    timed: Option<(u64, Instant)>,
    /// An answer in progress. No more input is processed until it is complete.
    pub later: Option<Later>,
    /// The timer for the next check whether the client still waits for the answer.
    look: Option<Pin<Box<Sleep>>>,
    /// Whether the stream has sent all bytes written to it. A TLS stream buffers some of them.
    pub is_flushed: bool,
}

/// The outcome of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Nothing,
    Some,
    /// The client has disconnected, so that its unsent answers are lost.
    Gone,
}

impl Outbox {
    pub(super) fn new(acks: Arc<Acks>) -> Outbox {
        let (answers, acked, unacked) = (Answers::default(), None, 0);
        let (timed, later, look, is_flushed) = (None, None, None, true);
        Outbox { answers, acks, acked, unacked, timed, later, look, is_flushed }
    }

    /// Returns whether there is so much unsent data that no more input is read.
    pub(super) fn is_full(&self) -> bool {
        self.answers.len() >= UNSENT_BYTES_MAX
    }

    /// Returns whether there are bytes for the client to read.
    pub(super) fn is_unread(&self) -> bool {
        !self.answers.sendable().is_empty() || !self.is_flushed
    }

    /// Releases the answers whose records are safe (W1), and registers a wake-up for the next
    /// answer.
    pub(super) fn release(
        &mut self,
        room: &Room,
        port: &Port,
        context: &mut Context<'_>,
    ) -> Result<(), Refusal> {
        while let Some(end) = self.answers.awaited() {
            let reached = room.target.reached(port.listen.ack);
            let count = self.answers.release(reached);
            if self.answers.awaited() != Some(end) {
                self.acknowledge(reached, count, port);
                self.acked = None;
                continue;
            }
            match self.acked {
                Some(acked) if acked.end == end => {
                    self.acks.check(acked).map_err(Refusal::Log)?;
                    break;
                }
                // The loop checks once more, because the record may just have become safe.
                _ => {
                    let log = (room.generation, &room.target);
                    let wait = self.acks.wait(log, end, context).map_err(Refusal::Log)?;
                    self.acked = Some(wait);
                }
            }
        }
        Ok(())
    }

    fn acknowledge(&mut self, reached: u64, acks: u64, port: &Port) {
        self.unacked -= acks;
        port.metrics.acknowledge(port.listen.ack, acks);
        if let Some((end, since)) = self.timed
            && end <= reached
        {
            port.metrics.ack_durations.observe(since.elapsed());
            self.timed = None;
        }
    }

    /// Counts messages that are to be answered. If no batch is being timed, times the last answer.
    pub(super) fn expect(&mut self, messages: u64) {
        self.unacked += messages;
        if let (Some(end), None) = (self.answers.last_awaited(), self.timed) {
            self.timed = Some((end, Instant::now()));
        }
    }

    /// Queues an answer built by another task if it is ready, and returns whether it was. The
    /// answer is queued even while other answers are unsent, because only queued bytes are
    /// accounted for.
    pub(super) fn answer_later(&mut self, context: &mut Context<'_>) -> bool {
        let Some(later) = &mut self.later else { return false };
        let Poll::Ready(answer) = Pin::new(later).poll(context) else { return false };
        self.later = None;
        if let Ok(answer) = answer {
            self.answers.push(0, &answer);
        }
        true
    }

    /// Drops the answer in progress, because its client has disconnected.
    pub(super) fn forget_later(&mut self) {
        (self.later, self.look) = (None, None);
    }

    /// Wakes the connection after a pause, to check again whether the client still waits for its
    /// answer.
    pub(super) fn look_again(&mut self, context: &mut Context<'_>) {
        let look = self.look.get_or_insert_with(|| Box::pin(sleep(LOOK_PAUSE)));
        if look.as_mut().poll(context).is_ready() {
            self.look = None;
            context.waker().wake_by_ref();
        }
    }

    /// Sends the answers that have been released.
    pub(super) fn send(&mut self, stream: &mut impl Stream, context: &mut Context<'_>) -> Sent {
        let mut sent = Sent::Nothing;
        while !self.answers.sendable().is_empty() {
            match Pin::new(&mut *stream).poll_write(context, self.answers.sendable()) {
                Poll::Ready(Ok(bytes)) if bytes > 0 => {
                    self.answers.sent(bytes);
                    sent = Sent::Some;
                }
                Poll::Ready(_) => {
                    (self.answers, self.later) = (Answers::default(), None);
                    return Sent::Gone;
                }
                Poll::Pending => break,
            }
        }
        if sent == Sent::Some || !self.is_flushed {
            // If the stream is broken, the next read notices it.
            self.is_flushed = Pin::new(stream).poll_flush(context).is_ready();
        }
        sent
    }

    /// Closes the sending side. A client that has disconnected needs no shutdown; for one that does
    /// not read, the same deadline applies as for answers.
    pub(super) fn shut_down(
        &mut self,
        stream: &mut impl Stream,
        context: &mut Context<'_>,
    ) -> Poll<()> {
        self.is_flushed = Pin::new(stream).poll_shutdown(context).is_ready();
        if self.is_flushed { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Records that the pending messages will not be answered.
    pub(super) fn forget(&self, port: &Port) {
        if let Some(acked) = self.acked {
            self.acks.forget(acked);
        }
        port.metrics.forget(self.unacked);
    }
}
