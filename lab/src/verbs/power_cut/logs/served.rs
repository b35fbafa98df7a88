//! A log that a server writes. Producers append to it through RESP clients over loopback.

use super::{Opened, WINDOW, record};
use crate::verbs::power_cut::content::random;
use crate::verbs::power_cut::said::Line;
use crate::verbs::power_cut::subject::Reporter;
use rand::RngExt;
use std::convert::Infallible;
use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::thread;
use wrote::{Action, Error, Log, LogOptions};
use wrote_serve::{Config, Listen, Server, Socket};

/// The maximum length of a message: enough for the longest records, which fit into the log's small
/// buffers.
const MESSAGE_BYTES_MAX: usize = 120_000;

/// Starts a server for a log. Returns the log and the server's address.
pub fn start(folder: &Path, options: LogOptions) -> Result<Opened, Error> {
    let failed = |error: wrote_serve::Error| match error {
        wrote_serve::Error::Log(error) => error,
        other => elsewhere(folder, &io::Error::other(other.to_string())),
    };
    let listen: Listen = "resp://127.0.0.1:0".parse().expect("a listener");
    let mut config = Config::of_log(folder, vec![listen]);
    config.limits.message_bytes = MESSAGE_BYTES_MAX;
    // The limit of free space is disabled, because the file system is small.
    config.limits.free_bytes = 0;
    let first = Arc::new(OnceLock::new());
    let opened = first.clone();
    let server = Server::start_with(config, move |log| {
        let log = options.open(&log.folder)?;
        let _ = opened.set(log.clone());
        Ok(log)
    });
    let server = server.map_err(failed)?;
    let address = server.listeners().into_iter().find_map(|listen| match listen.socket {
        Socket::Tcp(address) => Some(address),
        _ => None,
    });
    let log = first.get().expect("a server opens its log").clone();
    // The server runs until the process exits.
    thread::spawn(move || server.run());
    Ok((log, address))
}

/// Appends the records of one producer.
pub fn produce(
    folder: &Path,
    log: &Log,
    address: &str,
    (producer, seed): (u32, u64),
    say: Reporter,
) -> Result<Infallible, Error> {
    // The server closes the connection after an error of the log.
    let ended = |error| log.check().err().unwrap_or_else(|| elsewhere(folder, &error));
    let mut random = random(seed ^ u64::from(producer));
    let mut stream = TcpStream::connect(address).map_err(ended)?;
    let mut answers = BufReader::new(stream.try_clone().map_err(ended)?);
    let mut begin = 0;
    loop {
        let numbers = begin..begin + random.random_range(WINDOW);
        begin = numbers.end;
        say(&Line::Sending { producer, end: begin })?;
        let requests: Vec<u8> = numbers.clone().flat_map(|number| xadd(producer, number)).collect();
        stream.write_all(&requests).map_err(ended)?;
        for number in numbers {
            let sequence = id(&mut answers).map_err(ended)?;
            say(&Line::Appended { sequence, producer, number })?;
        }
    }
}

fn elsewhere(folder: &Path, error: &io::Error) -> Error {
    Error::file(folder, Action::Write, None, error)
}

/// Returns the request `XADD log * record BYTES`.
fn xadd(producer: u32, number: u64) -> Vec<u8> {
    let record = record(producer, number);
    let head = "*5\r\n$4\r\nXADD\r\n$3\r\nlog\r\n$1\r\n*\r\n$6\r\nrecord\r\n";
    [format!("{head}${}\r\n", record.len()).as_bytes(), &record, b"\r\n"].concat()
}

/// Reads an answer, which consists of `$LENGTH` and an ID. Returns the record's sequence, which is
/// the beginning of the ID.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_tells_the_sequence_and_an_error_is_one() {
        assert_eq!(id(&mut &b"$5\r\n123-1\r\n"[..]).expect("an ID"), 123);
        for bytes in [&b"-MISCONF full\r\n"[..], b"", b"$5\r\n", b"$1\r\nx\r\n"] {
            assert!(id(&mut &bytes[..]).is_err());
        }
    }
}
