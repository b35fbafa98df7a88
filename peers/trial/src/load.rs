//! A server under load: one thread keeps every connection busy for a time, and then waits until
//! the server has answered every message, or has read each connection to its end.

use crate::Result;
use crate::clock::Clock;
use crate::outcome::{Outcome, Percentiles};
use hdrhistogram::Histogram;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Bytes of a message, with the line feed that ends it in lines and HTTP.
const MESSAGE_BYTES: usize = 500;
/// Messages of random bytes, sent over and over: more than the window of a compressor.
const MESSAGES: usize = 8192;
/// Bytes that a connection prepares at once at most, and all connections.
const BATCH_BYTES: usize = 64 << 10;
const PREPARED_BYTES: usize = 16 << 20;
/// Bytes that a connection reads at once.
const READ_BYTES: usize = 16 << 10;
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

/// The state that all connections share.
struct Load {
    work: Work,
    text: Vec<u8>,
    latencies: Mutex<Histogram<u64>>,
}

struct Connection {
    load: Arc<Load>,
    stream: TcpStream,
    output: Vec<u8>,
    /// The start of an answer.
    input: Vec<u8>,
    /// When each answer that is still to come was asked for.
    unanswered: VecDeque<Instant>,
    /// The number of the next message.
    next: usize,
    /// RELP's number of the last frame.
    number: u64,
}

/// Sends messages for the time asked, and returns when all have arrived.
pub fn load(work: &Work) -> Result<Outcome> {
    let latencies = Mutex::new(Histogram::new(3)?);
    let load = Arc::new(Load { work: *work, text: text(), latencies });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let outcome = runtime.block_on(async {
        let mut connections = Vec::new();
        for number in 0..work.connections {
            connections.push(Connection::open(Arc::clone(&load), number).await?);
        }
        let clock = Clock::start()?;
        let until = Instant::now() + Duration::from_secs_f64(work.seconds);
        let busy = connections.into_iter().map(|connection| tokio::spawn(connection.busy(until)));
        let mut messages = 0;
        for connection in busy.collect::<Vec<_>>() {
            messages += connection.await?? as u64;
        }
        clock.stop(messages * MESSAGE_BYTES as u64, messages)
    })?;
    let latencies = load.latencies.lock().map_err(|_| "a connection panicked")?;
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
    async fn open(load: Arc<Load>, number: usize) -> Result<Connection> {
        let stream = TcpStream::connect(("127.0.0.1", load.work.port)).await?;
        stream.set_nodelay(true)?;
        let (output, input) = (Vec::new(), Vec::with_capacity(READ_BYTES));
        let next = number * 131; // Connections start at other messages.
        let unanswered = VecDeque::new();
        let mut opened = Connection { load, stream, output, input, unanswered, next, number: 0 };
        if opened.load.work.protocol == Protocol::Relp {
            opened.frame("open", OFFERS.as_bytes());
            opened.stream.write_all(&opened.output).await?;
            while opened.read().await? == 0 {}
        }
        Ok(opened)
    }

    /// Appends a frame of RELP.
    fn frame(&mut self, command: &str, data: &[u8]) {
        self.number += 1;
        write!(self.output, "{} {command} {} ", self.number, data.len()).expect("memory");
        self.output.extend_from_slice(data);
        self.output.push(b'\n');
    }

    /// Sends messages until the time is over, and returns their number when all have arrived.
    async fn busy(mut self, until: Instant) -> Result<usize> {
        let (load, first) = (Arc::clone(&self.load), self.next);
        loop {
            let now = Instant::now();
            if now < until {
                self.prepare(now);
                self.stream.write_all(&self.output).await?;
            }
            if load.work.protocol == Protocol::Lines {
                if now < until {
                    continue;
                }
                self.stream.shutdown().await?;
                return match self.stream.read(&mut [0]).await? {
                    0 => Ok(self.next - first),
                    _ => Err("an answer to lines".into()),
                };
            }
            if self.unanswered.is_empty() {
                return Ok(self.next - first);
            }
            // One answer of HTTP is for its whole request.
            let answered = if load.work.protocol == Protocol::Http { load.work.window } else { 1 };
            let (answers, now) = (self.read().await?, Instant::now());
            let mut latencies = load.latencies.lock().map_err(|_| "a connection panicked")?;
            for _ in 0..answers {
                let began = self.unanswered.pop_front().ok_or("too many answers")?;
                latencies.record_n((now - began).as_nanos() as u64, answered as u64)?;
            }
        }
    }

    /// Replaces the output by the messages that may be sent `now`.
    fn prepare(&mut self, now: Instant) {
        let load = Arc::clone(&self.load);
        let Work { protocol, connections, window, .. } = load.work;
        let batch = (BATCH_BYTES.min(PREPARED_BYTES / connections) / MESSAGE_BYTES).max(1);
        let count = match protocol {
            Protocol::Lines => batch,
            Protocol::Relp => batch.min(window - self.unanswered.len()),
            Protocol::Http if self.unanswered.is_empty() => window,
            Protocol::Http => 0,
        };
        self.output.clear();
        if protocol == Protocol::Http && count > 0 {
            let bytes = count * MESSAGE_BYTES;
            let head = "POST /append HTTP/1.1\r\nhost: localhost\r\ncontent-type: \
                        application/x-ndjson\r\ncontent-length: ";
            write!(self.output, "{head}{bytes}\r\n\r\n").expect("memory");
            self.unanswered.push_back(now);
        }
        for number in self.next..self.next + count {
            let begin = number % MESSAGES * MESSAGE_BYTES;
            let line = &load.text[begin..begin + MESSAGE_BYTES];
            if protocol == Protocol::Relp {
                self.frame("syslog", &line[..MESSAGE_BYTES - 1]);
                self.unanswered.push_back(now);
            } else {
                self.output.extend_from_slice(line);
            }
        }
        self.next += count;
    }

    /// Reads what has come, at least a byte, and returns the number of answers that are whole.
    async fn read(&mut self) -> Result<usize> {
        if self.stream.read_buf(&mut self.input).await? == 0 {
            return Err("the server closed a connection".into());
        }
        let (used, answers) = match self.load.work.protocol {
            Protocol::Http => http(&self.input)?,
            _ => relp(&self.input)?,
        };
        self.input.drain(..used);
        Ok(answers)
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
    use std::io::{BufRead, BufReader, Read};
    use std::net::{TcpListener, TcpStream};
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
