//! A connection: feeds bytes from a stream through its protocol into the log, and returns answers.

mod inbox;
mod outbox;
mod room;

use crate::doors::{Intake, Protocol};
use crate::memory::Pool;
use crate::metrics::add;
use crate::port::{Admission, Port};
use crate::refusals::{Reason, Refusal};
use crate::stamp::Stamper;
use crate::stream::Stream;
use crate::target::Target;
use inbox::{Inbox, Input, READ_BYTES};
use outbox::{Outbox, Sent};
use room::Room;
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::time::Sleep;

thread_local! {
    /// The read buffer that all connections of a thread share. A connection keeps only the bytes of
    /// an unfinished message, so an idle connection keeps none.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Serves one client until it disconnects or is refused, or the server drains. Refusals are
/// counted.
pub(crate) struct Connection<S, P> {
    stream: S,
    protocol: P,
    admission: Admission,
    port: Port,
    inbox: Inbox,
    room: Room,
    outbox: Outbox,
    stamper: Option<Box<Stamper>>,
    drain: Option<Wait<()>>,
    /// Why the door accepts no more input, and the length of the input when it stopped. Answers to
    /// earlier messages are still sent, so that the client knows what not to resend.
    refusal: Option<(Refusal, usize)>,
    patience: Patience,
}

type Wait<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Actions that the client must take within a time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    FirstByte,
    Message,
    Reading,
}

#[derive(Default)]
struct Patience {
    due: Option<Due>,
    since: Option<Instant>,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl<S: Stream, P: Protocol> Connection<S, P> {
    pub(crate) fn new(
        stream: S,
        protocol: P,
        admission: Admission,
        port: Port,
        target: Target,
    ) -> Connection<S, P> {
        let acks = port.acks[admission.seat.worker().number].clone();
        let mut patience = Patience::default();
        patience.expect(Some(Due::FirstByte));
        Connection {
            inbox: Inbox::new(),
            room: Room::new(target, &port),
            outbox: Outbox::new(acks),
            stamper: Stamper::of(&port.listen, admission.client(), stream.certificate_name()),
            drain: Some(Box::pin(port.drains())),
            refusal: None,
            patience,
            stream,
            protocol,
            admission,
            port,
        }
    }

    /// Works until no more progress is possible.
    fn proceed(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        if self.port.renew() {
            self.protocol.renew(&self.port.access)?;
        }
        self.admission.account.check()?;
        loop {
            self.outbox.release(&self.room, &self.port, context)?;
            let mut has_moved = self.send(context);
            if self.inbox.state == Input::Done {
                // The turn is passed on, because no more input is accepted.
                self.room.pass();
            }
            if self.outbox.answer_later(context) {
                (self.inbox.has_rest, has_moved) = (true, true);
            }
            let has_answered = self.outbox.later.is_none() && self.outbox.answers.is_empty();
            if self.inbox.state == Input::Done && has_answered {
                if self.outbox.shut_down(&mut self.stream, context).is_ready() {
                    return Poll::Ready(Ok(()));
                }
                break;
            }
            // A turn is used immediately, even for a client that does not read its answers, because
            // other senders wait for it.
            if !self.outbox.is_full() || self.room.is_awaited() {
                has_moved |= self.receive(context)?;
            }
            if !has_moved && !self.turns_to_draining(context) {
                break;
            }
        }
        self.hold_memory(context)?;
        ready!(self.poll_patience(context))?;
        unreachable!("patience ends with a refusal")
    }

    /// Sends the answers that have been released. Returns whether anything changed.
    fn send(&mut self, context: &mut Context<'_>) -> bool {
        let sent = self.outbox.send(&mut self.stream, context);
        match sent {
            Sent::Nothing => {}
            Sent::Gone => self.inbox.state = Input::Done,
            // The client does read, however slowly.
            Sent::Some if self.patience.due == Some(Due::Reading) => self.patience.expect(None),
            Sent::Some => {}
        }
        sent != Sent::Nothing
    }

    /// Reads once, and processes complete messages. Returns whether anything changed.
    fn receive(&mut self, context: &mut Context<'_>) -> Result<bool, Refusal> {
        if self.inbox.state == Input::Done {
            return Ok(false);
        }
        if self.outbox.later.is_some() && self.inbox.len() >= READ_BYTES {
            return Ok(self.forgets_answer(context));
        }
        if std::mem::take(&mut self.inbox.has_rest) {
            // The client may wait for these answers before it sends more.
            return Ok(SCRATCH.with_borrow_mut(|scratch| self.take_from(scratch, 0)));
        }
        // If the sender gets no answers, it is paused while no messages are accepted.
        let holds = self.port.listen.answers().is_none();
        if self.room.is_awaited() {
            let Poll::Ready(goes_on) = self.room.poll(&self.port, holds, context) else {
                return Ok(false);
            };
            if goes_on? {
                // Messages that had no room are appended before more is read, so that the inbox
                // does not grow. An incomplete message needs more bytes.
                SCRATCH.with_borrow_mut(|scratch| self.take_from(scratch, 0));
            }
            return Ok(true);
        }
        if holds && !self.port.channel.takes_messages() {
            // Bytes that are not read stay with the sender.
            self.room.hold(&self.port);
            return Ok(true);
        }
        Ok(SCRATCH.with_borrow_mut(|scratch| self.receive_into(scratch, context)))
    }

    /// Drops the answer in progress if the client has closed the stream or the server is draining.
    /// Kept bytes would hide the end of the stream from reads, so it is checked separately. Returns
    /// whether the answer was dropped.
    fn forgets_answer(&mut self, context: &mut Context<'_>) -> bool {
        let forgets = self.inbox.state == Input::Draining || self.stream.has_hung_up();
        if forgets {
            self.outbox.forget_later();
            self.inbox.has_rest = true;
        } else {
            self.outbox.look_again(context);
        }
        forgets
    }

    fn receive_into(&mut self, scratch: &mut Vec<u8>, context: &mut Context<'_>) -> bool {
        let memory = &self.admission.account.memory;
        let most = memory.read_bytes(READ_BYTES, &self.port.limits);
        let read = self.inbox.read(&mut self.stream, scratch, most, context);
        let Poll::Ready(bytes) = read else { return false };
        if self.outbox.later.is_some() {
            // Reading continues, so that the end of the stream is noticed even if the answer never
            // comes.
            self.inbox.keep(scratch, bytes);
            if self.inbox.state == Input::Ended {
                self.outbox.later = None;
            }
            return true;
        }
        self.take_from(scratch, bytes)
    }

    /// Processes complete messages from the kept bytes, followed by the newly read ones. Returns
    /// whether anything changed.
    fn take_from(&mut self, scratch: &mut Vec<u8>, read: usize) -> bool {
        let before = self.inbox.state;
        let has_bytes = read > 0 || !self.inbox.is_empty();
        if has_bytes && self.room.is_taken(&self.port) {
            // The new bytes follow the bytes that wait for room.
            self.inbox.keep(scratch, read);
            self.patience.expect(None);
            self.room.pause(&self.port);
            return true;
        }
        let taken = if self.inbox.is_long() {
            let input = self.inbox.move_out(&scratch[..read]);
            let taken = self.take(&input);
            self.inbox.move_back(input, taken);
            taken
        } else {
            let filled = self.inbox.copy_out(scratch, read);
            let taken = self.take(&scratch[..filled]);
            self.inbox.copy_back(&scratch[taken..filled]);
            taken
        };
        if taken > 0 || self.patience.due == Some(Due::FirstByte) {
            self.patience.expect(None);
        }
        // A pause that has just begun must still be polled.
        read > 0 || taken > 0 || self.room.is_awaited() || self.inbox.state != before
    }

    /// Passes `input` to the protocol. Returns the number of bytes consumed.
    fn take(&mut self, input: &[u8]) -> usize {
        if self.outbox.answers.awaited().is_none() {
            // If the log has failed, answers that wait for it are never sent: the log's error
            // closes the connection.
            self.room.renew(&self.port);
        }
        let message_bytes_max = self.port.limits.message_bytes;
        let mut intake =
            Intake::new(&self.room.target, &mut self.outbox.answers, message_bytes_max);
        intake.stamper = self.stamper.as_deref();
        intake.is_closed = !self.port.channel.takes_messages();
        intake.holds = self.port.listen.answers().is_none();
        let mut taken = self.protocol.take(input, &mut intake);
        let (mut is_done, mut given) = (intake.is_over, input.len());
        if self.inbox.state == Input::Ended
            && !intake.is_full
            && !is_done
            && intake.later.is_none()
            && let Ok(done) = taken
        {
            if !self.inbox.is_cut {
                let rest = self.protocol.take_rest(&input[done..], &mut intake);
                taken = rest.map(|rest| done + rest);
                given -= done;
            } else if done < input.len() {
                // A truncated message may have a different meaning: `amount=10` instead of
                // `amount=1000`.
                intake.reject(Reason::Unfinished);
                taken = Ok(input.len());
            }
            is_done = !intake.is_full;
        }
        if is_done && taken.is_ok() {
            self.protocol.goodbye(&mut intake);
        }
        let Intake { messages, bytes, cut, is_full, is_closed, later, rejected, .. } = intake;
        self.outbox.later = later;
        self.count((messages, bytes, cut), rejected);
        if is_full && is_closed {
            self.room.hold(&self.port);
        } else if is_full {
            self.room.pause(&self.port);
        } else {
            self.room.pass();
        }
        if is_done || taken.is_err() {
            self.inbox.state = Input::Done;
        }
        taken.unwrap_or_else(|refusal| {
            self.refusal = Some((refusal, given));
            input.len()
        })
    }

    /// Counts the messages that the door has accepted, truncated and refused.
    fn count(&mut self, (messages, bytes, cut): (u64, u64, u64), rejected: Vec<Reason>) {
        let (port, client) = (&self.port, self.admission.client());
        add(&port.metrics.cut_messages_total, cut);
        if cut > 0 {
            port.say(client, Reason::TooLong, "a message was cut");
        }
        for reason in rejected {
            port.reject(client, reason, reason.text());
        }
        let answers = port.listen.answers();
        port.metrics.take(answers, messages, bytes);
        self.outbox.expect(if answers.is_some() { messages } else { 0 });
    }

    /// Starts draining if the server does. Returns whether it has just started.
    fn turns_to_draining(&mut self, context: &mut Context<'_>) -> bool {
        let Some(drain) = &mut self.drain else { return false };
        if drain.as_mut().poll(context).is_pending() {
            return false;
        }
        self.drain = None;
        if self.inbox.state == Input::Open {
            self.inbox.state = Input::Draining;
        }
        true
    }

    /// Accounts for kept bytes and unsent answers while the connection makes no progress.
    fn hold_memory(&self, context: &Context<'_>) -> Result<(), Refusal> {
        let messages = self.inbox.len() + self.protocol.held_bytes();
        let answers = self.outbox.answers.held_bytes();
        let (account, limits) = (&self.admission.account, &self.port.limits);
        let bytes = match self.protocol.is_stranger() {
            true => [0, 0, messages + answers],
            false => [messages, answers, 0],
        };
        for (pool, bytes) in Pool::ALL.into_iter().zip(bytes) {
            account.hold(pool, bytes, limits)?;
        }
        account.set_paused(self.room.is_awaited());
        account.watch(context);
        // The connection may have been closed before its waker was registered.
        account.check()
    }

    /// Returns the refusal that closes the connection, if the client misses a deadline.
    fn poll_patience(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        let is_awaited = self.room.is_awaited();
        let due = if self.outbox.is_unread() {
            Some(Due::Reading)
        } else if !is_awaited && self.outbox.later.is_none() && !self.inbox.is_empty() {
            Some(Due::Message)
        } else if !is_awaited && self.patience.due == Some(Due::FirstByte) {
            Some(Due::FirstByte)
        } else {
            None
        };
        self.patience.expect(due);
        let limits = &self.port.limits;
        let Some(due) = due else { return Poll::Pending };
        let (limit, refusal) = match due {
            Due::FirstByte => (limits.first_byte, Refusal::Silent),
            Due::Message => (limits.message_time, Refusal::Slow),
            Due::Reading => (limits.unread_time, Refusal::Unread),
        };
        loop {
            ready!(self.patience.poll(limit, context));
            if due != Due::FirstByte || self.port.is_crowded() {
                return Poll::Ready(Err(refusal));
            }
            // Many programs connect when they start, and write only when they have something to
            // report.
            self.patience = Patience { due: Some(due), since: Some(Instant::now()), sleep: None };
        }
    }
}

impl<S: Stream, P: Protocol> Future for Connection<S, P> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let ended = ready!(self.proceed(context));
        let late = ended.err().map(|refusal| (refusal, self.inbox.len()));
        if let Some((refusal, input)) = self.refusal.take().or(late) {
            let held = input + self.outbox.answers.len();
            let because = format_args!("{refusal}; it holds {held} bytes");
            self.port.refuse(self.admission.client(), refusal.reason(), because);
        }
        Poll::Ready(())
    }
}

impl<S, P> Drop for Connection<S, P> {
    fn drop(&mut self) {
        self.outbox.forget(&self.port);
    }
}

impl Patience {
    fn expect(&mut self, due: Option<Due>) {
        if due.is_none() {
            *self = Patience::default();
        } else if due != self.due {
            *self = Patience { due, since: Some(Instant::now()), sleep: None };
        }
    }

    /// Becomes ready once `limit` has passed since the current action was first expected of the
    /// client.
    fn poll(&mut self, limit: Duration, context: &mut Context<'_>) -> Poll<()> {
        let Some(since) = self.since else { return Poll::Pending };
        let sleep = self.sleep.get_or_insert_with(|| {
            let until = tokio::time::Instant::from_std(since) + limit;
            Box::pin(tokio::time::sleep_until(until))
        });
        sleep.as_mut().poll(context)
    }
}
