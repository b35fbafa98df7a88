//! A log behind a server. Producers append to it with RESP and HTTP clients over loopback.

use super::record;
use super::{Logs, PRODUCERS, WINDOW};
use crate::verbs::power_cut::said::Line;
use crate::verbs::power_cut::subject::Reporter;
use rand::RngExt;
use std::convert::Infallible;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, OnceLock};
use std::thread;
use wrote::{Error, Log, LogOptions};
use wrote_serve::{Config, Listen, Server, Socket};

/// More than the longest record.
const MESSAGE_BYTES_MAX: usize = 120_000;

/// A server that runs until its process ends.
#[derive(Debug)]
pub(super) struct Served {
    log: Log,
    /// The addresses of the listeners, in the order of [`CLIENTS`].
    addresses: Vec<String>,
}

/// A protocol of the producers.
struct Client {
    listen: &'static str,
    request: fn(u32, u64) -> Vec<u8>,
    /// Reads the answer to a request: the sequence of its record.
    answer: fn(&mut dyn BufRead) -> io::Result<u64>,
}

/// The protocols; producers use them in turn.
const CLIENTS: [Client; 2] = [
    Client { listen: "resp://127.0.0.1:0", request: xadd, answer: id },
    Client { listen: "http://127.0.0.1:0", request: post, answer: first },
];

impl Served {
    /// Starts a server in front of the log opened with `options`.
    pub(super) fn start(logs: &Logs, options: LogOptions) -> Result<Served, Error> {
        let folder = logs.log();
        let failed = |error: wrote_serve::Error| match error {
            wrote_serve::Error::Log(error) => error,
            other => logs.elsewhere(&io::Error::other(other.to_string())),
        };
        let listener = |client: &Client| client.listen.parse::<Listen>().expect("a listener");
        let mut config = Config::of_log(&folder, CLIENTS.iter().map(listener).collect());
        config.limits.message_bytes = MESSAGE_BYTES_MAX;
        config.limits.free_bytes = 0;
        let first = Arc::new(OnceLock::new());
        let opened = first.clone();
        let server = Server::start_with(config, move |log| {
            let log = options.open(&log.folder)?;
            // A log opened again after the cut makes no reported promise.
            let _ = opened.set(log.clone());
            Ok(log)
        });
        let server = server.map_err(failed)?;
        let address = |listen: Listen| match listen.socket {
            Socket::Tcp(address) => address,
            _ => unreachable!("it listens at a port"),
        };
        let addresses = server.listeners().into_iter().map(address).collect();
        let log = first.get().expect("a server opens its log").clone();
        thread::spawn(move || server.run());
        Ok(Served { log, addresses })
    }

    /// Sends from as many connections as there are producers, until the first error.
    pub(super) fn write(&self, logs: &Logs, seed: u64, say: Reporter) -> Error {
        thread::scope(|scope| {
            let produce = |producer| {
                scope.spawn(move || match self.produce(logs, producer, seed, say) {
                    Err(error) => error,
                })
            };
            let threads: Vec<_> = (0..PRODUCERS).map(produce).collect();
            let ended = threads.into_iter().map(|thread| match thread.join() {
                Ok(error) => error,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            ended.collect::<Vec<_>>().swap_remove(0)
        })
    }

    fn produce(
        &self,
        logs: &Logs,
        producer: u32,
        seed: u64,
        say: Reporter,
    ) -> Result<Infallible, Error> {
        let mut random = crate::verbs::power_cut::content::random(seed ^ u64::from(producer));
        let kind = producer as usize % CLIENTS.len();
        let client = &CLIENTS[kind];
        let mut stream =
            TcpStream::connect(&self.addresses[kind]).map_err(|error| self.ended(logs, error))?;
        let mut answers =
            BufReader::new(stream.try_clone().map_err(|error| self.ended(logs, error))?);
        let mut begin = 0;
        loop {
            let numbers = begin..begin + random.random_range(WINDOW);
            begin = numbers.end;
            say(&Line::Sending { producer, end: begin })?;
            let requests: Vec<u8> =
                numbers.clone().flat_map(|number| (client.request)(producer, number)).collect();
            stream.write_all(&requests).map_err(|error| self.ended(logs, error))?;
            for number in numbers {
                let sequence =
                    (client.answer)(&mut answers).map_err(|error| self.ended(logs, error))?;
                say(&Line::Appended { sequence, producer, number })?;
            }
        }
    }

    /// The log's error that made the server end a connection; else the connection's.
    fn ended(&self, logs: &Logs, error: io::Error) -> Error {
        self.log.check().err().unwrap_or_else(|| logs.elsewhere(&error))
    }
}

/// `XADD log * record BYTES`.
fn xadd(producer: u32, number: u64) -> Vec<u8> {
    let record = record(producer, number);
    let head = "*5\r\n$4\r\nXADD\r\n$3\r\nlog\r\n$1\r\n*\r\n$6\r\nrecord\r\n";
    [format!("{head}${}\r\n", record.len()).as_bytes(), &record, b"\r\n"].concat()
}

/// Reads an answer: `$LENGTH`, and an ID, which begins with the record's sequence.
fn id(from: &mut dyn BufRead) -> io::Result<u64> {
    let mut lines = [const { String::new() }; 2];
    for line in &mut lines {
        if from.read_line(line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if line.starts_with('-') {
            return Err(io::Error::other(line.trim_end().to_owned()));
        }
    }
    let sequence = lines[1].split('-').next().and_then(|sequence| sequence.parse().ok());
    sequence.ok_or_else(|| io::Error::other(format!("an answer {lines:?}")))
}

/// `POST /append`, with the record as its body.
fn post(producer: u32, number: u64) -> Vec<u8> {
    let record = record(producer, number);
    let len = record.len();
    let head = format!("POST /append HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len}\r\n\r\n");
    [head.as_bytes(), &record].concat()
}

/// Reads an answer: a head with the length of its body, which names the first sequence.
fn first(from: &mut dyn BufRead) -> io::Result<u64> {
    let (mut head, mut body_bytes) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let begin = head.len();
        if from.read_line(&mut head)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = head[begin..].trim_end().to_ascii_lowercase();
        if let Some(length) = line.strip_prefix("content-length: ") {
            body_bytes = length.parse().map_err(io::Error::other)?;
        }
    }
    let mut body = String::new();
    from.take(body_bytes).read_to_string(&mut body)?;
    let is_taken = head.starts_with("HTTP/1.1 200");
    let first = body.split_once("\"first\":").filter(|_| is_taken);
    let first = first.and_then(|(_, behind)| behind.split([',', '}']).next()?.parse().ok());
    first.ok_or_else(|| io::Error::other(format!("an answer {head:?} {body:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_tells_the_sequence_and_an_error_is_one() {
        assert_eq!(id(&mut &b"$5\r\n123-1\r\n"[..]).expect("an ID"), 123);
        for bytes in [&b"-MISCONF full\r\n"[..], b"", b"$5\r\n", b"$1\r\nx\r\n"] {
            assert!(id(&mut &bytes[..]).is_err());
        }
        let answer = |status: &str, body: &str| {
            let len = body.len();
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: {len}\r\n\r\n{body}");
            first(&mut answer.as_bytes())
        };
        let body = "{\"appended\":1,\"first\":123,\"next\":124}\n";
        assert_eq!(answer("200 OK", body).expect("a sequence"), 123);
        assert!(answer("503 Service Unavailable", body).is_err());
        assert!(answer("200 OK", "{}").is_err());
        assert!(first(&mut &b"HTTP/1.1 200 OK\r\n"[..]).is_err());
    }
}
