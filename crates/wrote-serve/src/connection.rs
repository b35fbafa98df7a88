//! A connection: feeds bytes from a stream through its protocol into the log, and sends answers
//! back.

use crate::acks::{Acks, Wait as Acked};
use crate::admission::Admission;
use crate::answers::Answers;
use crate::doors::Protocol;
use crate::intake::{Intake, Later};
use crate::limits::{Reason, Refusal};
use crate::memory::Pool;
use crate::metrics::{add, sub};
use crate::port::Port;
use crate::stamp::Stamper;
use crate::stream::Stream;
use crate::turns::Turn;
use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::ReadBuf;
use tokio::task::yield_now;
use tokio::time::Sleep;
use wrote::Log;

/// The most bytes read at once.
const READ_BYTES: usize = 128 << 10;
/// A kept message longer than this is not copied on each read.
const COPIED_BYTES_MAX: usize = 16 << 10;
/// Reading stops while this many bytes of answers are unsent.
const UNSENT_BYTES_MAX: usize = 256 << 10;

/// The interval of checking whether a client that sent much waits for its answer.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

thread_local! {
    /// The read buffer that all connections of a thread share. A connection keeps only the bytes of
    /// an unfinished message, so an idle one keeps none.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Serves one client until it ends, is refused, or the server drains. Refusals are counted.
pub(crate) struct Connection<S, P> {
    stream: S,
    protocol: P,
    admission: Admission,
    port: Port,
    log: Log,
    /// The channel's generation when the log was taken.
    generation: u64,
    /// Bytes that were read but not taken: an unfinished message, or messages that found no room.
    kept: Vec<u8>,
    answers: Answers,
    stamper: Option<Box<Stamper>>,
    acks: Arc<Acks>,
    /// The wait for the record of the next answer.
    acked: Option<Acked>,
    /// Set if the log had no room for the message at the start of `kept`, or others wait for room.
    room: Option<Wait<Result<Option<Turn>, Refusal>>>,
    /// The right to append before all senders that wait for room.
    turn: Option<Turn>,
    /// An answer in progress. No more input is taken until it is complete.
    later: Option<Later>,
    /// The timer for the next check whether the client waits for the answer.
    look: Option<Pin<Box<Sleep>>>,
    /// `kept` still holds input to take: commands after an answer that just completed, or work that
    /// a door left for its next turn.
    has_rest: bool,
    /// Lets other connections run first.
    yields: bool,
    drain: Option<Wait<()>>,
    input: Input,
    /// The stream ended abnormally; an unfinished message is dropped.
    is_cut: bool,
    /// Why the door takes no more. Answers to earlier messages are still sent, so that the client
    /// knows what not to resend.
    refusal: Option<Refusal>,
    /// The stream has sent all bytes that it was given. A TLS stream buffers some.
    is_flushed: bool,
    /// The bytes of messages and answers accounted for, whether the client is unauthenticated, and
    /// whether it waits for the log.
    held: (usize, usize, bool, bool),
    /// Messages in the log whose answer is outstanding.
    unacked: u64,
    /// The end of the batch whose answer is timed, and when it was appended.
    timed: Option<(u64, Instant)>,
    patience: Patience,
}

type Wait<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The state of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    Open,
    /// Bytes that have arrived are still read; then the connection ends.
    Draining,
    /// The stream has ended; kept bytes are still to be taken.
    Ended,
    /// All input was taken and the goodbye queued.
    Done,
}

/// Actions with a deadline for the client.
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
        log: Log,
    ) -> Connection<S, P> {
        let generation = port.channel.generation();
        let acks = port.acks[admission.seat.worker().number].clone();
        let mut draining = port.draining.clone();
        let drain = Box::pin(async move {
            // An error means that the server is gone, which is the same.
            let _ = draining.wait_for(|&draining| draining).await;
        });
        let mut patience = Patience::default();
        patience.expect(Some(Due::FirstByte));
        let stamper = Stamper::of(&port.listen, admission.client(), stream.certificate_name());
        Connection {
            stream,
            protocol,
            admission,
            port,
            log,
            generation,
            kept: Vec::new(),
            answers: Answers::default(),
            stamper,
            acks,
            acked: None,
            room: None,
            turn: None,
            later: None,
            look: None,
            has_rest: false,
            yields: false,
            drain: Some(drain),
            input: Input::Open,
            is_cut: false,
            refusal: None,
            is_flushed: true,
            held: (0, 0, false, false),
            unacked: 0,
            timed: None,
            patience,
        }
    }

    /// Works until no more progress is possible.
    fn proceed(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        if self.port.renew() {
            self.protocol.renew(&self.port.access)?;
        }
        self.admission.account.check()?;
        loop {
            self.release(context)?;
            let mut has_moved = self.send(context)?;
            if self.input == Input::Done {
                // Passes the turn on, as no more is taken.
                self.resume();
                self.turn = None;
            }
            has_moved |= self.answer_later(context);
            if self.input == Input::Done && self.later.is_none() && self.answers.is_empty() {
                if self.shut_down(context).is_ready() {
                    return Poll::Ready(Ok(()));
                }
                break;
            }
            // A turn is used at once, even for a client that reads no answers, because others wait
            // for it.
            if self.answers.len() < UNSENT_BYTES_MAX || self.room.is_some() {
                has_moved |= self.receive(context)?;
            }
            if std::mem::take(&mut self.yields) {
                // Wakes this task after all others.
                let _ = pin!(yield_now()).poll(context);
                break;
            }
            if !has_moved && !self.turns_to_draining(context) {
                break;
            }
        }
        self.hold_memory(context)?;
        ready!(self.poll_patience(context))?;
        unreachable!("patience ends with a refusal")
    }

    /// Releases the answers whose records are safe, and registers a wake-up for the next.
    fn release(&mut self, context: &mut Context<'_>) -> Result<(), Refusal> {
        while let Some(end) = self.answers.awaited() {
            let reached = self.port.listen.ack.reached(&self.log);
            let count = self.answers.release(reached);
            if self.answers.awaited() != Some(end) {
                self.acknowledge(reached, count);
                self.acked = None;
                continue;
            }
            match self.acked {
                Some(acked) if acked.end == end => {
                    self.acks.check(acked).map_err(Refusal::Log)?;
                    break;
                }
                // Checks once more: the record may have become safe since.
                _ => {
                    let log = (self.generation, &self.log);
                    let wait = self.acks.wait(log, end, context).map_err(Refusal::Log)?;
                    self.acked = Some(wait);
                }
            }
        }
        Ok(())
    }

    fn acknowledge(&mut self, reached: u64, acks: u64) {
        self.unacked -= acks;
        self.port.metrics.acknowledge(self.port.listen.ack, acks);
        if let Some((end, since)) = self.timed
            && end <= reached
        {
            self.port.metrics.ack_durations.observe(since.elapsed());
            self.timed = None;
        }
    }

    /// Queues an answer that was made by another task, even while others are unsent, because only
    /// queued bytes are counted. Returns whether it was ready.
    fn answer_later(&mut self, context: &mut Context<'_>) -> bool {
        let Some(later) = &mut self.later else { return false };
        let Poll::Ready(answer) = Pin::new(later).poll(context) else { return false };
        (self.later, self.has_rest) = (None, true);
        if let Ok(answer) = answer {
            self.answers.push(0, &answer);
        }
        true
    }

    /// Sends released answers. Returns whether any bytes were sent.
    fn send(&mut self, context: &mut Context<'_>) -> Result<bool, Refusal> {
        let mut has_sent = false;
        while !self.answers.sendable().is_empty() {
            match Pin::new(&mut self.stream).poll_write(context, self.answers.sendable()) {
                Poll::Ready(Ok(bytes)) if bytes > 0 => {
                    self.answers.sent(bytes);
                    has_sent = true;
                }
                // The client is gone, and its unsent answers with it.
                Poll::Ready(_) => {
                    self.answers = Answers::default();
                    (self.later, self.input) = (None, Input::Done);
                    return Ok(true);
                }
                Poll::Pending => break,
            }
        }
        if has_sent && self.patience.due == Some(Due::Reading) {
            // The client reads, however slowly.
            self.patience.expect(None);
        }
        if has_sent || !self.is_flushed {
            // The next read notices a broken stream.
            self.is_flushed = Pin::new(&mut self.stream).poll_flush(context).is_ready();
        }
        Ok(has_sent)
    }

    /// Reads once and takes complete messages. Returns whether anything changed.
    fn receive(&mut self, context: &mut Context<'_>) -> Result<bool, Refusal> {
        if self.input == Input::Done {
            return Ok(false);
        }
        if self.later.is_some() && self.kept.len() >= READ_BYTES {
            return Ok(self.forgets_answer(context));
        }
        if std::mem::take(&mut self.has_rest) {
            // The client may wait for these answers before it sends more.
            return SCRATCH.with_borrow_mut(|scratch| self.take_from(scratch, 0));
        }
        if let Some(room) = &mut self.room {
            let Poll::Ready(waited) = room.as_mut().poll(context) else { return Ok(false) };
            self.resume();
            match waited {
                // A reopened log or free space ends this condition.
                Err(Refusal::Log(_)) if self.holds() => {
                    self.hold();
                    return Ok(true);
                }
                waited => self.turn = waited?,
            }
            // Takes messages that had no room before reading more, so that `kept` does not grow.
            SCRATCH.with_borrow_mut(|scratch| self.take_from(scratch, 0))?;
            // An incomplete message needs more bytes.
            return Ok(true);
        }
        if self.holds() && !self.port.channel.takes_messages() {
            // Unread bytes stay with the sender.
            self.hold();
            return Ok(true);
        }
        SCRATCH.with_borrow_mut(|scratch| self.receive_into(scratch, context))
    }

    /// Drops the answer in progress if the client has closed the stream or the server drains. Kept
    /// bytes would hide the end from reads, so it is checked separately. Returns whether the answer
    /// was dropped.
    fn forgets_answer(&mut self, context: &mut Context<'_>) -> bool {
        if self.input == Input::Draining || self.stream.has_hung_up() {
            (self.later, self.look, self.has_rest) = (None, None, true);
            return true;
        }
        let look = self.look.get_or_insert_with(|| Box::pin(tokio::time::sleep(LOOK_PAUSE)));
        if look.as_mut().poll(context).is_ready() {
            self.look = None;
            context.waker().wake_by_ref();
        }
        false
    }

    /// Returns whether the sender is paused while no messages are accepted, as it gets no answers.
    fn holds(&self) -> bool {
        self.port.listen.answers().is_none()
    }

    fn receive_into(
        &mut self,
        scratch: &mut Vec<u8>,
        context: &mut Context<'_>,
    ) -> Result<bool, Refusal> {
        let kept = self.copied();
        let memory = self.admission.account.memory();
        let most = memory.read_bytes(READ_BYTES, &self.port.limits);
        if scratch.len() < kept + most {
            scratch.resize(kept + most, 0);
        }
        let mut bytes = 0;
        if self.input != Input::Ended {
            match self.read(&mut scratch[kept..kept + most], context) {
                Poll::Ready(Ok(0)) => self.input = Input::Ended,
                Poll::Ready(Ok(read)) => bytes = read,
                // The client is gone or aborted.
                Poll::Ready(Err(_)) => (self.input, self.is_cut) = (Input::Ended, true),
                // Everything that had arrived when draining began has been read.
                Poll::Pending if self.input == Input::Draining && !self.stream.has_unread() => {
                    (self.input, self.is_cut) = (Input::Ended, true);
                }
                Poll::Pending => return Ok(false),
            }
        }
        if self.later.is_some() {
            // Keeps reading, so that the client's end is seen even if the answer never comes.
            self.kept.extend_from_slice(&scratch[kept..kept + bytes]);
            if self.input == Input::Ended {
                self.later = None;
            }
            return Ok(true);
        }
        self.take_from(scratch, bytes)
    }

    /// Takes complete messages from the kept bytes and the newly read ones after them. Returns
    /// whether anything changed.
    fn take_from(&mut self, scratch: &mut Vec<u8>, read: usize) -> Result<bool, Refusal> {
        let (before, copied) = (self.input, self.copied());
        let has_bytes = read > 0 || !self.kept.is_empty();
        if has_bytes && self.turn.is_none() && self.port.channel.turns.are_taken() {
            // Added after the bytes that wait for room.
            self.kept.extend_from_slice(&scratch[copied..copied + read]);
            self.patience.expect(None);
            self.pause();
            return Ok(true);
        }
        let taken = if copied < self.kept.len() {
            self.take_in_place(&scratch[..read])
        } else {
            self.take_copied(scratch, copied + read)
        };
        if taken > 0 || self.patience.due == Some(Due::FirstByte) {
            self.patience.expect(None);
        }
        // A pause that has just begun must be polled.
        Ok(read > 0 || taken > 0 || self.room.is_some() || self.input != before)
    }

    /// Returns how many kept bytes are copied to the start of the thread's buffer: all or none.
    fn copied(&self) -> usize {
        if self.kept.len() > COPIED_BYTES_MAX { 0 } else { self.kept.len() }
    }

    /// Takes from the kept bytes and those after them, and returns how many were consumed.
    fn take_copied(&mut self, scratch: &mut Vec<u8>, filled: usize) -> usize {
        if scratch.len() < filled {
            scratch.resize(filled, 0);
        }
        scratch[..self.kept.len()].copy_from_slice(&self.kept);
        let taken = self.take(&scratch[..filled]);
        self.kept.clear();
        self.kept.extend_from_slice(&scratch[taken..filled]);
        if self.kept.is_empty() {
            self.kept = Vec::new();
        }
        taken
    }

    /// Takes from the kept and the newly read bytes, and returns how many were consumed.
    fn take_in_place(&mut self, read: &[u8]) -> usize {
        let mut input = std::mem::take(&mut self.kept);
        if input.capacity() - input.len() < read.len() {
            input.reserve_exact(read.len().max(input.len() / 4));
        }
        input.extend_from_slice(read);
        let taken = self.take(&input);
        input.drain(..taken);
        if taken > 0 && input.capacity() > 2 * input.len() {
            input.shrink_to_fit();
        }
        self.kept = input;
        taken
    }

    fn read(&mut self, into: &mut [u8], context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut buffer = ReadBuf::new(into);
        let read = Pin::new(&mut self.stream).poll_read(context, &mut buffer);
        read.map_ok(|()| buffer.filled().len())
    }

    /// Passes `input` to the protocol. Returns the bytes consumed.
    fn take(&mut self, input: &[u8]) -> usize {
        self.renew_log();
        let message_bytes_max = self.port.limits.message_bytes;
        let mut intake = Intake::new(&self.log, &mut self.answers, message_bytes_max);
        intake.stamper = self.stamper.as_deref();
        intake.is_closed = !self.port.channel.takes_messages();
        intake.holds = self.port.listen.answers().is_none();
        let mut taken = self.protocol.take(input, &mut intake);
        let mut is_done = intake.is_over;
        if self.input == Input::Ended
            && !intake.is_full
            && !intake.yields
            && !is_done
            && intake.later.is_none()
            && let Ok(done) = taken
        {
            if !self.is_cut {
                let rest = self.protocol.take_rest(&input[done..], &mut intake);
                taken = rest.map(|rest| done + rest);
            } else if done < input.len() {
                // A truncated message may read as a different one: `amount=10` of `amount=1000`.
                intake.reject(Reason::Unfinished);
                taken = Ok(input.len());
            }
            is_done = !intake.is_full;
        }
        if is_done && taken.is_ok() {
            self.protocol.goodbye(&mut intake);
        }
        let Intake { messages, bytes, cut, is_full, yields, is_closed, .. } = intake;
        let (later, rejected) = (intake.later, intake.rejected);
        (self.yields, self.has_rest) = (yields, yields);
        self.later = later;
        add(&self.port.metrics.cut_messages_total, cut);
        let client = self.admission.client();
        if cut > 0 {
            self.port.say(client, Reason::TooLong, "a message was cut");
        }
        for reason in rejected {
            self.port.reject(client, reason, reason.text());
        }
        self.count_messages(messages, bytes);
        if is_full && is_closed {
            self.hold();
        } else if is_full {
            self.pause();
        } else {
            self.turn = None;
        }
        if is_done || taken.is_err() {
            self.input = Input::Done;
        }
        taken.unwrap_or_else(|refusal| {
            self.refusal = Some(refusal);
            input.len()
        })
    }

    fn count_messages(&mut self, messages: u64, bytes: u64) {
        let answers = self.port.listen.answers();
        self.port.metrics.take(answers, messages, bytes);
        if answers.is_some() {
            self.unacked += messages;
        }
        if let (Some(end), None) = (self.answers.last_awaited(), self.timed) {
            self.timed = Some((end, Instant::now()));
        }
    }

    /// Switches to the log that replaced a failed one. Answers waiting for the failed log are never
    /// sent: its error ends the connection.
    fn renew_log(&mut self) {
        let generation = self.port.channel.generation();
        if generation != self.generation
            && self.answers.awaited().is_none()
            && let Some(log) = self.port.channel.log()
        {
            (self.log, self.generation) = (log, generation);
        }
    }

    /// Waits for its turn, and then for room in the log's buffers.
    fn pause(&mut self) {
        let log = self.log.clone();
        self.room = Some(match self.turn.take() {
            Some(turn) => Box::pin(async move {
                log.room().await.map_err(Refusal::Log)?;
                Ok(Some(turn))
            }),
            None => {
                let next = self.port.channel.turns.next();
                Box::pin(async move { Ok(Some(next.await)) })
            }
        });
        add(&self.port.metrics.paused_connections, 1);
    }

    /// Waits until messages are accepted again. If the server ends before that, the sender's data
    /// in flight is lost.
    fn hold(&mut self) {
        self.turn = None;
        let good_look = self.port.channel.next_good_look();
        let mut draining = self.port.draining.clone();
        self.room = Some(Box::pin(async move {
            tokio::select! {
                () = good_look => Ok(None),
                _ = draining.wait_for(|&draining| draining) => Err(Refusal::Closed),
            }
        }));
        add(&self.port.metrics.paused_connections, 1);
    }

    fn resume(&mut self) {
        if self.room.take().is_some() {
            sub(&self.port.metrics.paused_connections, 1);
        }
    }

    /// Starts draining when the server does. Returns whether it just started.
    fn turns_to_draining(&mut self, context: &mut Context<'_>) -> bool {
        let Some(drain) = &mut self.drain else { return false };
        if drain.as_mut().poll(context).is_pending() {
            return false;
        }
        self.drain = None;
        if self.input == Input::Open {
            self.input = Input::Draining;
        }
        true
    }

    /// Accounts for kept bytes and unsent answers while nothing moves.
    fn hold_memory(&mut self, context: &Context<'_>) -> Result<(), Refusal> {
        let messages = self.kept.len() + self.protocol.held_bytes();
        let answers = self.answers.held_bytes();
        let held = (messages, answers, self.protocol.is_stranger(), self.room.is_some());
        if held == self.held {
            return Ok(());
        }
        self.held = held;
        let (account, limits) = (&self.admission.account, &self.port.limits);
        let held = if held.2 { [0, 0, messages + answers] } else { [messages, answers, 0] };
        for (pool, bytes) in Pool::ALL.into_iter().zip(held) {
            account.hold(pool, bytes, limits)?;
        }
        account.set_paused(self.room.is_some());
        account.watch(context);
        // It may have been closed since.
        account.check()
    }

    /// Ends the connection if the client misses a deadline.
    fn poll_patience(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Refusal>> {
        let due = if !self.answers.sendable().is_empty() || !self.is_flushed {
            Some(Due::Reading)
        } else if self.room.is_none() && self.later.is_none() && !self.kept.is_empty() {
            Some(Due::Message)
        } else if self.room.is_none() && self.patience.due == Some(Due::FirstByte) {
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
        ready!(self.patience.poll(limit, context));
        Poll::Ready(Err(refusal))
    }

    /// Closes the sending side. A client that does not read has the same deadline as for answers.
    fn shut_down(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // A client that is gone needs no shutdown.
        self.is_flushed = Pin::new(&mut self.stream).poll_shutdown(context).is_ready();
        if self.is_flushed { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl<S: Stream, P: Protocol> Future for Connection<S, P> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let ended = ready!(self.proceed(context));
        if let Some(refusal) = self.refusal.take().or(ended.err()) {
            let held = self.kept.len() + self.answers.len();
            let because = format_args!("{refusal}; it holds {held} bytes");
            self.port.refuse(self.admission.client(), refusal.reason(), because);
        }
        Poll::Ready(())
    }
}

impl<S, P> Drop for Connection<S, P> {
    fn drop(&mut self) {
        if let Some(acked) = self.acked {
            self.acks.forget(acked);
        }
        let metrics = &self.port.metrics;
        metrics.forget(self.unacked);
        if self.room.is_some() {
            sub(&metrics.paused_connections, 1);
        }
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

    /// Becomes ready when the client has not done this within `limit` of first being expected to.
    fn poll(&mut self, limit: Duration, context: &mut Context<'_>) -> Poll<()> {
        let Some(since) = self.since else { return Poll::Pending };
        let sleep = self.sleep.get_or_insert_with(|| {
            let until = tokio::time::Instant::from_std(since) + limit;
            Box::pin(tokio::time::sleep_until(until))
        });
        sleep.as_mut().poll(context)
    }
}
