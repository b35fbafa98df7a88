//! Every protocol against a stand-in server: each message arrives, and lost or altered ones fail
//! the row.

use super::*;
use crate::sample::{Asked, asked};
use crate::scratch::Scratch;
use fixtures::folder;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use std::time::Duration;
use wrote::{Log, SyncPolicy};
use wrote_jobs::rate::{Amount, Rate};
use wrote_result::Stop;
use wrote_result::document::{Process, Row, View};

/// Modifies a message before the stand-in appends it.
type Change = fn(u64, &mut Vec<u8>);

/// Starts a server for one protocol that appends to a log and acknowledges before writing; returns
/// its URL. It ends with the test's process.
fn serve(protocol: Protocol, log: &Path, change: Change) -> ServerUrl {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let log = Log::options().sync(SyncPolicy::EverySec).open(log).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (log, stream) = (log.clone(), stream.unwrap());
            thread::spawn(move || serve_one(protocol, &stream, &log, change));
        }
    });
    ServerUrl { protocol, host }
}

fn serve_one(protocol: Protocol, stream: &TcpStream, log: &Log, change: Change) {
    let (mut input, mut output) = (BufReader::new(stream), stream);
    let mut count = 0;
    let mut append = |mut message: Vec<u8>| {
        change(count, &mut message);
        count += 1;
        match message.is_empty() {
            true => Ok(()),
            false => log.append(&message).map(drop),
        }
        .unwrap();
    };
    // The client's end is the end.
    while let Some(message) = message(protocol, &mut input) {
        let answer = match protocol {
            Protocol::Frames(_) => {
                append(message);
                continue;
            }
            Protocol::Relp => {
                let head = String::from_utf8(message).unwrap();
                let mut words = head.split(' ');
                let (txnr, command) = (words.next().unwrap(), words.next().unwrap());
                let data = exactly(&mut input, words.next().unwrap().trim().parse().unwrap());
                exactly(&mut input, 1);
                if command == "syslog" {
                    append(data);
                }
                format!("{txnr} rsp 6 200 OK\n")
            }
            Protocol::Resp => {
                append(message);
                "$3\r\n0-1\r\n".into()
            }
            Protocol::Http => {
                message
                    .split(|byte| *byte == b'\n')
                    .filter(|line| !line.is_empty())
                    .for_each(|line| append(line.to_vec()));
                "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".into()
            }
        };
        output.write_all(answer.as_bytes()).unwrap();
    }
}

/// Reads the next message, or what precedes it; `None` at the end.
fn message(protocol: Protocol, input: &mut BufReader<&TcpStream>) -> Option<Vec<u8>> {
    let mut until = |end: u8| {
        let mut bytes = Vec::new();
        input.read_until(end, &mut bytes).ok()?;
        bytes.pop().map(|_| bytes)
    };
    Some(match protocol {
        Protocol::Frames(Frame::Lines) => until(b'\n')?,
        Protocol::Frames(Frame::Nul) => until(0)?,
        Protocol::Relp => {
            let mut head = [until(b' ')?, until(b' ')?].join(&b' ');
            head.push(b' ');
            head.extend(until(b' ')?);
            head
        }
        Protocol::Frames(Frame::Octets) => {
            let len = String::from_utf8(until(b' ')?).unwrap().parse().unwrap();
            exactly(input, len)
        }
        Protocol::Frames(Frame::U32) => {
            let mut len = [0; 4];
            input.read_exact(&mut len).ok()?;
            exactly(input, u32::from_be_bytes(len) as usize)
        }
        Protocol::Resp => {
            // Ten lines: *5, a length and a word for each of four, and the value's length.
            let lines: Vec<Vec<u8>> = (0..10).map_while(|_| until(b'\n')).collect();
            let len = str::from_utf8(lines.last()?)
                .unwrap()
                .trim()
                .trim_start_matches('$')
                .parse()
                .ok()?;
            let value = exactly(input, len);
            exactly(input, 2);
            value
        }
        Protocol::Http => {
            let mut body_bytes = 0;
            loop {
                let line = String::from_utf8(until(b'\n')?).unwrap();
                match line.trim().strip_prefix("content-length: ") {
                    Some(len) => body_bytes = len.parse().unwrap(),
                    None if line.trim().is_empty() => break,
                    None => {}
                }
            }
            exactly(input, body_bytes)
        }
    })
}

fn exactly(input: &mut BufReader<&TcpStream>, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    input.read_exact(&mut bytes).unwrap();
    bytes
}

fn same(_: u64, _: &mut Vec<u8>) {}

/// Runs one row against the stand-in.
fn measured(
    door: &Door,
    connections: u32,
    rate: Option<Rate>,
    change: Change,
) -> Result<Row, Error> {
    let folder = folder();
    let log = folder.path().join("log");
    let serve = Serve {
        connections: vec![connections],
        window: vec![8],
        server_url: vec![serve(door.protocol, &log, change)],
        server_log: Some(log),
        server_pid: Some(std::process::id()),
        ..Serve::default()
    };
    let asked = Asked {
        path: folder.path().to_owned(),
        runs: Some(1),
        time: Some(Duration::from_millis(100)),
        rate,
        serve,
        ..asked(&[door.name])
    };
    let scratch = Scratch::make(folder.path()).unwrap();
    let measured = asked.measured(&scratch, &Stop::new(), false)?;
    let [row] = &measured.scenario.rows[..] else { panic!("one row") };
    Ok(row.clone())
}

#[test]
fn every_protocols_messages_arrive_whole_and_in_order() {
    // W9
    for door in DOORS {
        for connections in [1, 5] {
            let row = measured(door, connections, None, same).unwrap();
            let run = &row.runs[0];
            let records = run.records.unwrap();
            assert!(records.are_whole() && records.out_of_order == 0, "{}: {records:?}", row.name);
            assert_eq!(records.sent, row.settings.asked.messages.unwrap(), "{}", row.name);
            assert_eq!(run.bytes, 500 * records.sent, "{}", row.name);
            assert!(run.client_cpu_s.is_some() && run.max_rss_bytes.unwrap() > 0, "{}", row.name);
            assert_eq!(row.view(), View::Messages);
            let answers = door.protocol.answers();
            let latencies = row.latency_ns.map(|latency| latency.count);
            assert_eq!(latencies, answers.then_some(records.sent), "{}", row.name);
            assert!(!answers || (1..=8).contains(&run.iodepth_reached), "{}", row.name);
        }
    }
}

#[test]
fn at_a_rate_messages_are_sent_when_they_are_due() {
    // M5
    let amount = Amount::OperationsPerS(1000);
    for process in [Process::Linear, Process::Poisson] {
        for door in DOORS.iter().filter(|door| door.is_usual) {
            let row = measured(door, 3, Some(Rate { amount, process }), same).unwrap();
            assert!(row.is_open_loop() && row.has_all_records(), "{}", row.name);
            assert_eq!(row.runs[0].records.unwrap().sent, 100, "{}", row.name);
        }
    }
}

#[test]
fn an_acknowledged_message_that_is_missing_or_altered_is_an_error_of_the_row() {
    let refused = |change: Change| {
        let door = DOORS.iter().find(|door| door.name == "serve/relp").unwrap();
        let rate = Rate { amount: Amount::OperationsPerS(1000), process: Process::Linear };
        measured(door, 2, Some(rate), change).unwrap_err().to_string()
    };
    let lost = refused(|count, message| {
        if count == 7 {
            message.clear();
        }
    });
    assert!(lost.starts_with("serve/relp/2/8: ") && lost.contains("where 7 belongs"), "{lost}");
    let altered = refused(|count, message| {
        if count == 7 {
            message[99] ^= 1;
        }
    });
    assert!(
        altered.contains("message 7 of connection") && altered.contains("altered"),
        "{altered}"
    );
}

#[test]
fn a_server_that_refuses_or_hangs_up_is_an_error_in_its_words() {
    let of = |words: &'static [u8]| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 64]);
                let _ = stream.write_all(words);
            }
        });
        let folder = folder();
        let serve = Serve {
            connections: vec![1],
            window: vec![1],
            server_url: vec![ServerUrl { protocol: Protocol::Resp, host }],
            ..Serve::default()
        };
        let asked = Asked { path: folder.path().to_owned(), serve, ..asked(&["serve/resp"]) };
        let scratch = Scratch::make(folder.path()).unwrap();
        asked.measured(&scratch, &Stop::new(), false).unwrap_err().to_string()
    };
    let refused = of(b"-NOAUTH Authentication required.\r\n");
    assert!(refused.ends_with("-NOAUTH Authentication required."), "{refused}");
    // The kernel resets a connection with unread bytes.
    let hung_up = of(b"");
    assert!(hung_up.contains("connection 0, after 1 messages of which 0"), "{hung_up}");
}

#[test]
fn every_row_has_a_name_and_words_that_fit() {
    for door in DOORS {
        assert!(door.name.starts_with("serve/") && Serve::default().knows(door.name));
        let widest = Way { door: *door, connections: 15_000, window: Some(65_536) };
        assert!(widest.words().len() <= 34, "{}", widest.words());
    }
}
