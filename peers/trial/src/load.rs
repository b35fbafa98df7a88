//! A server under load: one thread keeps every connection busy for a time, and then waits until
//! the server has answered every message, or has read each connection to its end.

use crate::Result;
use crate::clock::Clock;
use crate::outcome::{Outcome, Percentiles};
use hdrhistogram::Histogram;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fs::Timespec;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Bytes of a message, with the line feed that ends it in lines and HTTP.
const MESSAGE_BYTES: usize = 500;
/// Messages of random bytes, sent over and over: more than the window of a compressor.
const MESSAGES: usize = 8192;
/// Bytes that a connection prepares at once at most, and all connections.
const BATCH_BYTES: usize = 64 << 10;
const PREPARED_BYTES: usize = 16 << 20;
/// How long a server may neither answer nor accept anything.
const PATIENCE: Duration = Duration::from_secs(30);
const NAP: Duration = Duration::from_millis(100);
const OFFERS: &str = "relp_version=1\nrelp_software=trial\ncommands=syslog";

/// The protocol of the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Protocol {
    /// Lines, without answers.
    Lines,
    /// RELP: a frame for each message, each answered.
    Relp,
    /// Requests of HTTP, each with a window of lines, one after the other.
    Http,
}

/// The load.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Work {
    /// The protocol.
    #[arg(long)]
    pub protocol: Protocol,
    /// Connections at once.
    #[arg(long, value_name = "N")]
    pub connections: usize,
    /// Messages of a connection without an answer; of HTTP, the messages of a request.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub window: usize,
    /// Seconds for which messages are sent.
    #[arg(long, value_name = "S")]
    pub seconds: f64,
    /// The port on this machine.
    pub port: u16,
}

struct Connection {
    stream: TcpStream,
    /// Bytes to send, from `sent` on.
    output: Vec<u8>,
    sent: usize,
    /// The start of an answer.
    input: Vec<u8>,
    /// When messages started that have no answer, and how many.
    unanswered: VecDeque<(Instant, usize)>,
    in_flight: usize,
    messages: u64,
    /// RELP's number of the last frame.
    number: u64,
    is_writable: bool,
    /// The sending side is closed, since the time is over.
    is_shut: bool,
    is_done: bool,
}

/// Sends messages for the time asked, and returns when all have arrived.
pub fn load(work: &Work) -> Result<Outcome> {
    let text = text();
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut connections = Vec::new();
    for number in 0..work.connections {
        let mut connection = Connection::open(work)?;
        connection.messages = (number * 131) as u64; // Connections start at other messages.
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&epoll, &connection.stream, EventData::new_u64(number as u64), flags)?;
        connections.push(connection);
    }
    let begun: u64 = connections.iter().map(|connection| connection.messages).sum();
    let mut latencies = Histogram::new(3)?;
    let clock = Clock::start()?;
    let until = Instant::now() + Duration::from_secs_f64(work.seconds);
    let mut ready: VecDeque<usize> = (0..connections.len()).collect();
    let (mut is_over, mut moved) = (false, Instant::now());
    while connections.iter().any(|connection| !connection.is_done) {
        let now = Instant::now();
        if now >= until && !is_over {
            is_over = true;
            ready.extend(0..connections.len());
        }
        // Each sends once before the kernel is asked again.
        for _ in 0..ready.len() {
            let number = ready.pop_front().expect("counted");
            if connections[number].send(work, &text, (!is_over).then_some(now))? {
                ready.push_back(number);
            }
        }
        let nap = if ready.is_empty() { NAP } else { Duration::ZERO };
        let nap = Timespec { tv_sec: 0, tv_nsec: nap.subsec_nanos().into() };
        let mut events = Vec::with_capacity(256);
        match epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), Some(&nap)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for event in &events {
            let number = event.data.u64() as usize;
            let connection = &mut connections[number];
            let flags = event.flags;
            connection.is_writable |= flags.contains(EventFlags::OUT);
            let ended = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
            if flags.intersects(EventFlags::IN | ended) {
                connection.read(work.protocol, &mut latencies)?;
            }
            ready.push_back(number);
        }
        if !events.is_empty() || !ready.is_empty() {
            moved = now;
        } else if now - moved > PATIENCE {
            return Err(format!("the server has been silent for {} s", PATIENCE.as_secs()).into());
        }
    }
    let messages = connections.iter().map(|connection| connection.messages).sum::<u64>() - begun;
    let outcome = clock.stop(messages * MESSAGE_BYTES as u64, messages)?;
    Ok(Outcome { latency_ns: Percentiles::of(&latencies), ..outcome })
}

/// Returns lines of random bytes without control characters, which would end a line.
fn text() -> Vec<u8> {
    let mut text = vec![0; MESSAGES * MESSAGE_BYTES];
    Xoshiro256PlusPlus::seed_from_u64(1).fill_bytes(&mut text);
    text.iter_mut().filter(|byte| byte.is_ascii_control()).for_each(|byte| *byte |= 0xC0);
    text.chunks_exact_mut(MESSAGE_BYTES).for_each(|line| line[MESSAGE_BYTES - 1] = b'\n');
    text
}

impl Connection {
    /// Connects, and has RELP's greeting answered.
    fn open(work: &Work) -> Result<Connection> {
        let stream = TcpStream::connect(("127.0.0.1", work.port))?;
        stream.set_nodelay(true)?;
        let mut connection = Connection {
            stream,
            output: Vec::new(),
            sent: 0,
            input: Vec::new(),
            unanswered: VecDeque::new(),
            in_flight: 0,
            messages: 0,
            number: 0,
            is_writable: true,
            is_shut: false,
            is_done: false,
        };
        if work.protocol == Protocol::Relp {
            connection.frame("open", OFFERS.as_bytes());
            connection.stream.write_all(&connection.output)?;
            connection.output.clear();
            let mut bytes = [0; 1024];
            while relp(&connection.input)? == (0, 0) {
                match connection.stream.read(&mut bytes)? {
                    0 => return Err("the server closed a connection at its opening".into()),
                    read => connection.input.extend_from_slice(&bytes[..read]),
                }
            }
            connection.input.clear();
        }
        connection.stream.set_nonblocking(true)?;
        Ok(connection)
    }

    /// Appends a frame of RELP.
    fn frame(&mut self, command: &str, data: &[u8]) {
        self.number += 1;
        write!(self.output, "{} {command} {} ", self.number, data.len()).expect("memory");
        self.output.extend_from_slice(data);
        self.output.push(b'\n');
    }

    /// Prepares and sends a batch that starts `now`; without it the time is over, and the rest is
    /// sent. Returns whether the connection can send more at once.
    fn send(&mut self, work: &Work, text: &[u8], now: Option<Instant>) -> Result<bool> {
        if !self.is_writable || self.is_shut {
            return Ok(false);
        }
        if self.output.is_empty()
            && let Some(now) = now
        {
            self.prepare(work, text, now);
        }
        while self.sent < self.output.len() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(bytes) => self.sent += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_writable = false;
                    return Ok(false);
                }
                Err(error) => return Err(error.into()),
            }
        }
        let has_sent = self.sent > 0;
        self.output.clear();
        self.sent = 0;
        if now.is_none() && work.protocol == Protocol::Lines {
            self.stream.shutdown(Shutdown::Write)?;
            self.is_shut = true;
        } else if now.is_none() && self.in_flight == 0 {
            (self.is_shut, self.is_done) = (true, true);
        }
        Ok(has_sent && !self.is_shut && now.is_some())
    }

    fn prepare(&mut self, work: &Work, text: &[u8], now: Instant) {
        let batch = BATCH_BYTES.min(PREPARED_BYTES / work.connections) / MESSAGE_BYTES;
        let count = match work.protocol {
            Protocol::Lines => batch.max(1),
            Protocol::Relp => (work.window - self.in_flight).min(batch.max(1)),
            Protocol::Http if self.in_flight == 0 => work.window,
            Protocol::Http => 0,
        };
        if count == 0 {
            return;
        }
        if work.protocol == Protocol::Http {
            let bytes = count * MESSAGE_BYTES;
            let head = "POST /append HTTP/1.1\r\nhost: localhost\r\ncontent-type: \
                        application/x-ndjson\r\ncontent-length: ";
            write!(self.output, "{head}{bytes}\r\n\r\n").expect("memory");
        }
        for _ in 0..count {
            let begin = self.messages as usize % MESSAGES * MESSAGE_BYTES;
            let line = &text[begin..begin + MESSAGE_BYTES];
            match work.protocol {
                Protocol::Relp => self.frame("syslog", &line[..MESSAGE_BYTES - 1]),
                Protocol::Lines | Protocol::Http => self.output.extend_from_slice(line),
            }
            self.messages += 1;
        }
        if work.protocol != Protocol::Lines {
            self.unanswered.push_back((now, count));
            self.in_flight += count;
        }
    }

    /// Reads answers until the kernel has no more.
    fn read(&mut self, protocol: Protocol, latencies: &mut Histogram<u64>) -> Result<()> {
        let mut bytes = [0; 16 << 10];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) if self.is_shut => {
                    self.is_done = true;
                    return Ok(());
                }
                Ok(0) => return Err("the server closed a connection".into()),
                Ok(read) => self.input.extend_from_slice(&bytes[..read]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            let (used, answers) = match protocol {
                Protocol::Lines => return Err("an answer to lines".into()),
                Protocol::Relp => relp(&self.input)?,
                Protocol::Http => http(&self.input)?,
            };
            self.input.drain(..used);
            let now = Instant::now();
            let mut left = answers;
            while left > 0 {
                let (began, count) = self.unanswered.front_mut().ok_or("too many answers")?;
                // One answer of HTTP is for its whole request.
                let answered = if protocol == Protocol::Http { *count } else { left.min(*count) };
                latencies.record_n((now - *began).as_nanos() as u64, answered as u64)?;
                *count -= answered;
                if *count == 0 {
                    self.unanswered.pop_front();
                }
                self.in_flight -= answered;
                left -= if protocol == Protocol::Http { 1 } else { answered };
            }
        }
    }
}

/// Counts the whole answers of RELP at the start of `input`: their bytes, and how many.
fn relp(input: &[u8]) -> Result<(usize, usize)> {
    let (mut used, mut answers) = (0, 0);
    loop {
        let rest = &input[used..];
        let mut words = rest.splitn(4, |byte| *byte == b' ');
        let (Some(number), Some(_), Some(length), Some(data)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Ok((used, answers));
        };
        let length: usize = str::from_utf8(length)?.parse()?;
        if data.len() <= length {
            return Ok((used, answers));
        }
        if !data.starts_with(b"200") {
            return Err(format!("frame {}: no 200", number.escape_ascii()).into());
        }
        used += rest.len() - data.len() + length + 1;
        answers += 1;
    }
}

/// Counts the whole answers of HTTP at the start of `input` likewise.
fn http(input: &[u8]) -> Result<(usize, usize)> {
    let (mut used, mut answers) = (0, 0);
    loop {
        let rest = &input[used..];
        let Some(head) = rest.windows(4).position(|bytes| bytes == b"\r\n\r\n") else {
            return Ok((used, answers));
        };
        let text = str::from_utf8(&rest[..head])?.to_ascii_lowercase();
        if !text.starts_with("http/1.1 2") {
            return Err(text.into());
        }
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
        let whole = head + 4 + length.map_or(Ok(0), |length| length.trim().parse::<usize>())?;
        if rest.len() < whole {
            return Ok((used, answers));
        }
        used += whole;
        answers += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;
    use std::thread::{self, JoinHandle};

    /// Serves two connections of a protocol, and returns the messages of each.
    fn serve(protocol: Protocol) -> (u16, JoinHandle<Vec<u64>>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let server = thread::spawn(move || {
            let accept = |_| {
                let (stream, _) = listener.accept().expect("a client");
                thread::spawn(move || serve_one(protocol, stream))
            };
            let served: Vec<_> = (0..2).map(accept).collect();
            served.into_iter().map(|served| served.join().expect("served")).collect()
        });
        (port, server)
    }

    fn serve_one(protocol: Protocol, mut output: TcpStream) -> u64 {
        let mut input = BufReader::new(output.try_clone().expect("a copy"));
        let (mut messages, mut line) = (0, Vec::new());
        let mut asked = 0;
        while input.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
            let text = String::from_utf8_lossy(&line).into_owned();
            let words: Vec<&str> = text.splitn(4, ' ').collect();
            match protocol {
                Protocol::Relp if words.get(1) == Some(&"open") => {
                    let rest = OFFERS.len() - words[3].len() + 1;
                    input.read_exact(&mut vec![0; rest]).expect("offers");
                    output.write_all(b"1 rsp 10 200 OK\na=b\n").expect("an answer");
                }
                Protocol::Relp => {
                    messages += 1;
                    writeln!(output, "{} rsp 6 200 OK", words[0]).expect("an answer");
                }
                Protocol::Http if asked == 0 => {
                    if let Some(bytes) = text.strip_prefix("content-length: ") {
                        asked = bytes.trim().parse::<usize>().expect("a number") / MESSAGE_BYTES;
                        input.read_exact(&mut [0; 2]).expect("the end of the head");
                    }
                }
                Protocol::Http | Protocol::Lines => {
                    messages += 1;
                    asked = asked.saturating_sub(1);
                    if protocol == Protocol::Http && asked == 0 {
                        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n0\n";
                        output.write_all(answer).expect("an answer");
                    }
                }
            }
            line.clear();
        }
        messages
    }

    #[test]
    fn every_message_that_is_counted_has_arrived() {
        for protocol in [Protocol::Lines, Protocol::Relp, Protocol::Http] {
            let (port, server) = serve(protocol);
            let work = Work { protocol, connections: 2, window: 3, seconds: 0.05, port };
            let outcome = load(&work).expect("a load");
            let arrived = server.join().expect("a server");
            assert!(arrived.iter().all(|messages| *messages > 0), "{protocol:?}: {arrived:?}");
            assert_eq!(outcome.operations, arrived.iter().sum::<u64>(), "{protocol:?}");
            assert_eq!(outcome.bytes, 500 * outcome.operations, "{protocol:?}");
            let answered = outcome.latency_ns.map(|all| all.count);
            let expected = (protocol != Protocol::Lines).then_some(outcome.operations);
            assert_eq!(answered, expected, "{protocol:?}");
        }
    }

    #[test]
    fn an_answer_in_parts_is_counted_once_and_a_refusal_is_an_error() {
        let frames = b"1 rsp 10 200 OK\na=b\n2 rsp 6 200 OK\n";
        assert_eq!(relp(frames).expect("answers"), (frames.len(), 2));
        assert_eq!(relp(&frames[..25]).expect("answers"), (20, 1));
        assert!(relp(b"3 rsp 9 500 error\n").is_err());
        let answers = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n0\nHTTP/1.1 204 No\r\n\r\n";
        assert_eq!(http(answers).expect("answers"), (answers.len(), 2));
        assert_eq!(http(&answers[..39]).expect("answers"), (0, 0));
        assert!(http(b"HTTP/1.1 503 Service Unavailable\r\n\r\n").is_err());
    }
}
