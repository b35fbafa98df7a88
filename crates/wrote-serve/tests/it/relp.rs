//! RELP over sockets: answers, refusals, goodbyes.

use crate::refused::send;
use crate::serving::Serving;
use std::io::{BufRead, BufReader, Read, Write};

const OPEN: &[u8] = b"1 open 14 relp_version=0\n";

fn session(frames: &str) -> Vec<u8> {
    [OPEN, frames.as_bytes()].concat()
}

/// Reads frames and lines of offers up to the line `last`.
fn read_until(reader: &mut impl BufRead, last: &str) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0, "no '{last}' in {lines:?}");
        lines.push(line.trim_end().to_owned());
        if lines.last().unwrap() == last {
            return lines;
        }
    }
}

#[test]
fn a_refusal_leaves_behind_the_answers_before_it_and_none_of_its_own() {
    let serving = Serving::start("relp://127.0.0.1:0?oversize=refuse", |_| ());
    for (count, bad) in (1..).zip([
        format!("3 syslog {} {}", 1 << 20, "x".repeat(1 << 18)),
        "4 syslog 3 bad\n".to_owned(),
        "3 starttls 0\n".to_owned(),
        "GET / HTTP/1.1\r\n\r\n".to_owned(),
    ]) {
        let answers = send(&serving, &session(&format!("2 syslog 4 good\n{bad}")));
        let answers = String::from_utf8(answers).unwrap();
        assert!(answers.ends_with("commands=syslog\n2 rsp 6 200 OK\n"), "{answers}");
        serving.wait_until(|figures| figures.connections == 0);
        assert_eq!(serving.figures().refused, count);
    }
    // Without a session there is nothing to answer.
    for (count, bad) in (5..).zip([&b"GET / HTTP/1.1\r\n\r\n"[..], b"\x16\x03\x01\x02\0\x01\0\x01"])
    {
        assert_eq!(send(&serving, bad), b"");
        serving.wait_until(|figures| figures.connections == 0);
        assert_eq!(serving.figures().refused, count);
    }
    assert_eq!(serving.stop(), [b"good"; 4]);
}

#[test]
fn a_client_that_closes_is_answered_and_the_connection_ends() {
    let serving = Serving::start("relp://127.0.0.1:0", |_| ());
    let answers = send(&serving, &session("2 syslog 5 hello\n3 close 0\n"));
    let answers = String::from_utf8(answers).unwrap();
    assert!(answers.ends_with("\n2 rsp 6 200 OK\n3 rsp 6 200 OK\n0 serverclose 0\n"), "{answers}");
    serving.wait_until(|figures| figures.connections == 0);
    assert_eq!(serving.figures().refused, 0);
    assert_eq!(serving.stop(), [b"hello"]);
}

#[test]
fn a_server_that_drains_answers_what_has_arrived_and_says_goodbye() {
    let serving = Serving::start("relp://127.0.0.1:0", |_| ());
    let mut stream = serving.connect();
    let frames: String = (2..1002).map(|number| format!("{number} syslog 5 hello\n")).collect();
    stream.write_all(&session(&frames)).unwrap();
    let mut reader = BufReader::new(stream);
    read_until(&mut reader, "2 rsp 6 200 OK");
    let records = serving.stop();
    // The client may have sent more than had arrived; the answers show which.
    let mut answers = read_until(&mut reader, "0 serverclose 0");
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert_eq!((answers.pop().as_deref(), rest.len()), (Some("0 serverclose 0"), 0));
    assert_eq!(answers.len() + 1, records.len());
}
