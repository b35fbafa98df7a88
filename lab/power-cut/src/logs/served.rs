//! A log behind a server, to which producers append as clients of RESP, over loopback.

use super::records::record;
use super::{Logs, PRODUCERS, WINDOW};
use crate::said::Line;
use crate::subject::{Reporter, unsaid};
use rand::RngExt;
use std::convert::Infallible;
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::{Arc, OnceLock};
use std::thread;
use wrote::{Action, Error, Log, LogOptions};
use wrote_serve::{Config, Listen, Server, Socket};

/// More than the longest record.
const MESSAGE_BYTES_MAX: usize = 120_000;

/// A server that runs until its process ends.
#[derive(Debug)]
pub(super) struct Served {
    log: Log,
    address: String,
}

impl Served {
    /// Starts a server in front of the log, which `options` open.
    pub(super) fn start(logs: &Logs, options: LogOptions) -> Result<Served, Error> {
        let folder = logs.log();
        let failed = |error: wrote_serve::Error| match error {
            wrote_serve::Error::Log(error) => error,
            other => elsewhere(logs, io::Error::other(other.to_string())),
        };
        let listen: Listen = "resp://127.0.0.1:0".parse().expect("a listener");
        let mut config = Config::of_log(&folder, vec![listen]);
        config.limits.message_bytes = MESSAGE_BYTES_MAX;
        config.limits.free_bytes = 0;
        let first = Arc::new(OnceLock::new());
        let opened = first.clone();
        let server = Server::start_with(config, move |log| {
            let log = options.open(&log.folder)?;
            // A log that is opened again after the cut made no promise that is reported.
            let _ = opened.set(log.clone());
            Ok(log)
        });
        let server = server.map_err(failed)?;
        let Socket::Tcp(address) = server.listeners().remove(0).socket else {
            unreachable!("it listens at a port")
        };
        let log = first.get().expect("a server opens its log").clone();
        thread::spawn(move || server.run());
        Ok(Served { log, address })
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
        let say = |line| say(&line).map_err(|trouble| unsaid(&trouble));
        let mut random = crate::content::random(seed ^ u64::from(producer));
        let mut stream =
            TcpStream::connect(&self.address).map_err(|error| self.ended(logs, error))?;
        let mut answers =
            BufReader::new(stream.try_clone().map_err(|error| self.ended(logs, error))?);
        let mut begin = 0;
        loop {
            let numbers = begin..begin + random.random_range(WINDOW);
            begin = numbers.end;
            say(Line::Sending { producer, end: begin })?;
            let requests: Vec<u8> =
                numbers.clone().flat_map(|number| request(producer, number)).collect();
            stream.write_all(&requests).map_err(|error| self.ended(logs, error))?;
            for number in numbers {
                let sequence = answer(&mut answers).map_err(|error| self.ended(logs, error))?;
                say(Line::Appended { sequence, producer, number })?;
            }
        }
    }

    /// The error of the log, for which the server has ended a connection; else that of the
    /// connection.
    fn ended(&self, logs: &Logs, error: io::Error) -> Error {
        self.log.check().err().unwrap_or_else(|| elsewhere(logs, error))
    }
}

fn elsewhere(logs: &Logs, error: io::Error) -> Error {
    Error::file(&logs.log(), Action::Write, None, &error)
}

/// `XADD log * record BYTES`.
fn request(producer: u32, number: u64) -> Vec<u8> {
    let record = record(false, producer, number);
    let head = "*5\r\n$4\r\nXADD\r\n$3\r\nlog\r\n$1\r\n*\r\n$6\r\nrecord\r\n";
    [format!("{head}${}\r\n", record.len()).as_bytes(), &record, b"\r\n"].concat()
}

/// Reads an answer: `$LENGTH`, and an ID, which begins with the record's sequence.
fn answer(from: &mut impl BufRead) -> io::Result<u64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_tells_the_sequence_and_an_error_is_one() {
        assert_eq!(answer(&mut &b"$5\r\n123-1\r\n"[..]).expect("an ID"), 123);
        for bytes in [&b"-MISCONF full\r\n"[..], b"", b"$5\r\n", b"$1\r\nx\r\n"] {
            assert!(answer(&mut &bytes[..]).is_err());
        }
    }
}
