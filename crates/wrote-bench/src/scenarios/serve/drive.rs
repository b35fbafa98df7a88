//! The load generator: one thread that keeps every connection busy, using epoll.

use super::clients::{Answers, Client, Protocol};
use super::message::Messages;
use crate::arrivals::Arrivals;
use hdrhistogram::Histogram;
use rustix::event::epoll::{self, EventFlags};
use rustix::fs::Timespec;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};
use wrote_jobs::histogram;
use wrote_result::{Error, Stop};

/// Bytes that all connections prepare at once, and the limit per connection.
const PREPARED_BYTES: usize = 16 << 20;
const BATCH_BYTES_MAX: usize = 64 << 10;
const READ_BYTES: usize = 64 << 10;
const EVENTS_MAX: usize = 256;
/// How long to wait for a server that neither answers nor accepts anything.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest wait before checking for a stop.
const NAP: Duration = Duration::from_millis(100);

/// The connections of a run, greeted and ready.
pub(super) struct Load<'a> {
    messages: &'a Messages,
    protocol: Protocol,
    /// Unanswered messages per connection.
    window: usize,
    /// Messages prepared at once per connection.
    batch: usize,
    connections: Vec<Connection>,
    epoll: OwnedFd,
    stop: &'a Stop,
    /// Connections that may be able to send.
    ready: VecDeque<usize>,
    latencies: Histogram<u64>,
    window_reached: usize,
    input: Vec<u8>,
    message: Vec<u8>,
}

struct Connection {
    stream: TcpStream,
    client: Box<dyn Client>,
    /// Bytes to send, from `sent_bytes` on.
    output: Vec<u8>,
    sent_bytes: usize,
    /// The start of an incomplete answer.
    input: Vec<u8>,
    /// When each unanswered message started.
    unanswered: VecDeque<Instant>,
    sent: u64,
    acknowledged: u64,
    is_writable: bool,
    is_ready: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Sending,
    /// Everything is sent, and the sending side is closed.
    Shut,
    /// The server has answered everything, or received everything and closed.
    Done,
}

/// Each connection's counts, and the latencies of all.
#[derive(Debug)]
pub(super) struct Driven {
    pub sent: Vec<u64>,
    pub acknowledged: Vec<u64>,
    /// The time from a message's start, or when it was due, until its acknowledgement.
    pub latencies: Histogram<u64>,
    pub window_reached: u32,
}

/// The messages still to send, and when they are due (M5).
pub(super) struct Supply {
    left: u64,
    until: Option<Instant>,
    arrivals: Arrivals,
    is_open_loop: bool,
    due: Option<Instant>,
    message_bytes: usize,
}

impl Supply {
    /// Creates a supply of `messages` messages until the given time. Without a rate they are always
    /// due.
    pub(super) fn new(
        left: u64,
        time: Option<Duration>,
        arrivals: Option<Arrivals>,
        message_bytes: usize,
    ) -> Supply {
        Supply {
            left,
            until: time.map(|time| Instant::now() + time),
            is_open_loop: arrivals.is_some(),
            arrivals: arrivals.unwrap_or_default(),
            due: None,
            message_bytes,
        }
    }

    /// Returns when the next message starts: now in a closed loop; `None` after the last.
    fn next(&mut self, now: Instant) -> Option<Instant> {
        if self.left == 0 || self.until.is_some_and(|until| until <= now) {
            self.left = 0;
            return None;
        }
        if self.is_open_loop && self.due.is_none() {
            self.due = self.arrivals.due(self.message_bytes);
        }
        Some(self.due.unwrap_or(now))
    }

    /// Takes the next message if it is due.
    fn take(&mut self, now: Instant) -> Option<Instant> {
        let began = self.next(now).filter(|due| *due <= now)?;
        self.left -= 1;
        self.due = None;
        Some(began)
    }
}

impl<'a> Load<'a> {
    /// Connects and greets.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if the server refuses a connection or the greeting.
    pub(super) fn connect(
        address: SocketAddr,
        protocol: Protocol,
        count: u32,
        window: Option<u32>,
        messages: &'a Messages,
        stop: &'a Stop,
    ) -> Result<Load<'a>, Error> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed("epoll_create1"))?;
        let mut connections = Vec::with_capacity(count as usize);
        for number in 0..count {
            stop.check()?;
            let connection = Connection::open(address, protocol).map_err(|error| {
                Error::Failed(format!("{address}: connection {number}: {error}"))
            })?;
            let data = epoll::EventData::new_u64(number.into());
            let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
            epoll::add(&epoll, &connection.stream, data, flags).map_err(failed("epoll_ctl"))?;
            connections.push(connection);
        }
        let share = PREPARED_BYTES / count as usize / messages.message_bytes();
        let fit = BATCH_BYTES_MAX / messages.message_bytes();
        let mut load = Load {
            messages,
            protocol,
            window: window.map_or(usize::MAX, |window| window as usize),
            batch: share.min(fit).max(1),
            connections,
            epoll,
            stop,
            ready: VecDeque::new(),
            latencies: histogram(),
            window_reached: 0,
            input: vec![0; READ_BYTES],
            message: Vec::new(),
        };
        (0..count as usize).for_each(|number| load.make_ready(number));
        load.greet()?;
        Ok(load)
    }

    /// Sends greetings until every connection accepts messages.
    fn greet(&mut self) -> Result<(), Error> {
        let is_closed = |connection: &Connection| !connection.client.is_open();
        for number in 0..self.connections.len() {
            let connection = &mut self.connections[number];
            connection.client.open(&mut connection.output);
            self.flush(number)?;
        }
        let mut quiet_since = Instant::now();
        while self.connections.iter().any(is_closed) {
            let moved = self.wait(false, NAP)?;
            self.be_patient(moved, &mut quiet_since)?;
        }
        Ok(())
    }

    /// Sends the supply, and returns when everything is answered. If the protocol has no answers,
    /// returns when the server has read everything and closed every connection.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if an answer is not an acknowledgement, a connection ends early, or the
    /// server is silent for 30 s; [`Error::Interrupted`].
    pub(super) fn run(mut self, mut supply: Supply) -> Result<Driven, Error> {
        let mut left = self.connections.len();
        let mut quiet_since = Instant::now();
        while left > 0 {
            let now = Instant::now();
            // Each connection sends once before the others are polled again.
            for _ in 0..self.ready.len() {
                if supply.next(now).is_some_and(|due| due > now) {
                    break;
                }
                let number = self.ready.pop_front().expect("counted");
                self.connections[number].is_ready = false;
                self.pump(number, &mut supply, now)?;
            }
            let nap = match supply.next(now) {
                Some(due) if !self.ready.is_empty() => due.saturating_duration_since(now).min(NAP),
                _ if !self.ready.is_empty() => Duration::ZERO,
                _ => NAP,
            };
            let moved = self.wait(supply.left == 0, nap)?;
            self.be_patient(moved || !self.ready.is_empty(), &mut quiet_since)?;
            if supply.left == 0 {
                left = self.connections.iter().filter(|of| of.state != State::Done).count();
            }
        }
        let counts = |count: fn(&Connection) -> u64| self.connections.iter().map(count).collect();
        Ok(Driven {
            sent: counts(|connection| connection.sent),
            acknowledged: counts(|connection| connection.acknowledged),
            latencies: self.latencies,
            window_reached: self.window_reached as u32,
        })
    }

    /// Lets a connection prepare and send one batch.
    fn pump(&mut self, number: usize, supply: &mut Supply, now: Instant) -> Result<(), Error> {
        let answers = self.protocol.answers();
        let connection = &mut self.connections[number];
        if connection.state != State::Sending || !connection.client.is_open() {
            return Ok(());
        }
        if connection.output.is_empty() {
            let unanswered = connection.unanswered.len();
            let room = match self.protocol {
                // A request waits for its answer and is not split.
                Protocol::Http if unanswered == 0 => self.window,
                Protocol::Http => 0,
                _ => {
                    (self.window - unanswered).min(if supply.is_open_loop { 1 } else { self.batch })
                }
            };
            let mut count = 0;
            while count < room
                && let Some(began) = supply.take(now)
            {
                count += 1;
                if answers {
                    connection.unanswered.push_back(began);
                }
            }
            if count > 0 {
                let output = &mut connection.output;
                connection.client.begin(count, self.messages.message_bytes(), output);
                for _ in 0..count {
                    self.messages.write(number, connection.sent, &mut self.message);
                    connection.client.put(&self.message, output);
                    connection.sent += 1;
                }
                self.window_reached = self.window_reached.max(connection.unanswered.len());
            }
        }
        self.flush(number)?;
        let connection = &mut self.connections[number];
        if supply.left == 0 && connection.output.is_empty() {
            return self.end(number);
        }
        let has_room = connection.unanswered.len() < self.window
            && (self.protocol != Protocol::Http || connection.unanswered.is_empty());
        if connection.is_writable && (has_room || !connection.output.is_empty()) {
            self.make_ready(number);
        }
        Ok(())
    }

    /// Sends prepared bytes, as far as the kernel accepts them.
    fn flush(&mut self, number: usize) -> Result<(), Error> {
        let connection = &mut self.connections[number];
        while connection.is_writable && connection.sent_bytes < connection.output.len() {
            match connection.stream.write(&connection.output[connection.sent_bytes..]) {
                Ok(bytes) => connection.sent_bytes += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    connection.is_writable = false;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(connection.broken(number, &error.to_string())),
            }
        }
        if connection.sent_bytes == connection.output.len() {
            connection.output.clear();
            connection.sent_bytes = 0;
        }
        Ok(())
    }

    /// Ends a connection that has sent everything: after its last answer, or without answers when
    /// the server has read everything.
    fn end(&mut self, number: usize) -> Result<(), Error> {
        let answers = self.protocol.answers();
        let connection = &mut self.connections[number];
        if connection.state != State::Sending || !connection.output.is_empty() {
            return Ok(());
        }
        if !answers {
            let shut = connection.stream.shutdown(Shutdown::Write);
            shut.map_err(|error| connection.broken(number, &error.to_string()))?;
            connection.state = State::Shut;
        } else if connection.unanswered.is_empty() {
            connection.state = State::Done;
        }
        Ok(())
    }

    /// Waits for events and reads answers; returns whether there was an event. Ends connections
    /// when no messages are left.
    fn wait(&mut self, all_is_taken: bool, nap: Duration) -> Result<bool, Error> {
        self.stop.check()?;
        let timeout = Timespec { tv_sec: nap.as_secs() as i64, tv_nsec: nap.subsec_nanos().into() };
        let mut events = Vec::with_capacity(EVENTS_MAX);
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&timeout))
        {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(failed("epoll_wait")(error)),
        }
        for event in &events {
            let number = event.data.u64() as usize;
            let flags = event.flags;
            if flags.contains(EventFlags::OUT) {
                self.connections[number].is_writable = true;
            }
            let ended = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
            if flags.intersects(EventFlags::IN | ended) {
                self.read(number, flags.intersects(ended))?;
            }
            if all_is_taken {
                self.flush(number)?;
                self.end(number)?;
            }
            self.make_ready(number);
        }
        Ok(!events.is_empty())
    }

    /// Reads answers until the kernel has no more. A short read indicates that, except before the
    /// end of the stream.
    fn read(&mut self, number: usize, to_end: bool) -> Result<(), Error> {
        let connection = &mut self.connections[number];
        loop {
            let bytes = match connection.stream.read(&mut self.input) {
                Ok(0) if connection.state == State::Sending => {
                    return Err(connection.broken(number, "the server closed it"));
                }
                Ok(0) => {
                    // Without answers, the server has received every byte.
                    connection.acknowledged = connection.sent;
                    connection.state = State::Done;
                    return Ok(());
                }
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(connection.broken(number, &error.to_string())),
            };
            let fresh = &self.input[..bytes];
            let answers = if connection.input.is_empty() {
                let answers = connection.client.answers(fresh);
                if let Ok(Answers { used_bytes, .. }) = answers {
                    connection.input.extend_from_slice(&fresh[used_bytes..]);
                }
                answers
            } else {
                connection.input.extend_from_slice(fresh);
                let answers = connection.client.answers(&connection.input);
                if let Ok(Answers { used_bytes, .. }) = answers {
                    connection.input.drain(..used_bytes);
                }
                answers
            };
            let answers = answers.map_err(|answer| connection.broken(number, &answer))?;
            if answers.acknowledged > connection.unanswered.len() {
                return Err(connection.broken(number, "more answers than messages"));
            }
            // One clock reading for everything that arrived together (M10).
            let now = Instant::now();
            for began in connection.unanswered.drain(..answers.acknowledged) {
                let latency_ns = (now - began).as_nanos().clamp(1, u64::MAX.into()) as u64;
                self.latencies.saturating_record(latency_ns);
            }
            connection.acknowledged += answers.acknowledged as u64;
            if bytes < READ_BYTES && !to_end {
                return Ok(());
            }
        }
    }

    fn make_ready(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        if connection.state == State::Sending && !std::mem::replace(&mut connection.is_ready, true)
        {
            self.ready.push_back(number);
        }
    }

    /// Fails the run if nothing has moved for too long.
    fn be_patient(&self, moved: bool, quiet_since: &mut Instant) -> Result<(), Error> {
        let now = Instant::now();
        if moved {
            *quiet_since = now;
        } else if now - *quiet_since > PATIENCE {
            let unanswered: usize = self.connections.iter().map(|of| of.unanswered.len()).sum();
            let waiting = self.connections.iter().filter(|of| of.state != State::Done).count();
            return Err(Error::Failed(format!(
                "the server has been silent for {} s: {waiting} connections wait, and {unanswered} \
                 messages have no answer",
                PATIENCE.as_secs()
            )));
        }
        Ok(())
    }
}

impl Connection {
    fn open(address: SocketAddr, protocol: Protocol) -> std::io::Result<Connection> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        Ok(Connection {
            stream,
            client: protocol.client(),
            output: Vec::new(),
            sent_bytes: 0,
            input: Vec::new(),
            unanswered: VecDeque::new(),
            sent: 0,
            acknowledged: 0,
            is_writable: true,
            is_ready: false,
            state: State::Sending,
        })
    }

    fn broken(&self, number: usize, because: &str) -> Error {
        Error::Failed(format!(
            "connection {number}, after {} messages of which {} were acknowledged: {because}",
            self.sent, self.acknowledged
        ))
    }
}

fn failed(call: &'static str) -> impl Fn(Errno) -> Error {
    move |error| Error::Failed(format!("{call}: {error}"))
}
