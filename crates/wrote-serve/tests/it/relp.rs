//! RELP over sockets: answers and goodbyes.

use crate::serving::Serving;
use crate::warnings;
use std::io::{BufRead, BufReader, Read, Write};

const OPEN: &[u8] = b"1 open 14 relp_version=0\n";

fn session(frames: &str) -> Vec<u8> {
    [OPEN, frames.as_bytes()].concat()
}

/// Returns the frames and the lines of offers that arrive, up to the line `last`.
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
fn a_server_that_drains_answers_what_has_arrived_and_says_goodbye() {
    let serving = Serving::start("relp://127.0.0.1:0", |_| ());
    let mut stream = serving.connect();
    let frames: String = (2..1002).map(|number| format!("{number} syslog 5 hello\n")).collect();
    stream.write_all(&session(&frames)).unwrap();
    let mut reader = BufReader::new(stream);
    read_until(&mut reader, "2 rsp 6 200 OK");
    let records = serving.stop();
    // Part of what the client sent may not have arrived; the answers show which messages have.
    let mut answers = read_until(&mut reader, "0 serverclose 0");
    let mut rest = Vec::new();
    reader.read_to_end(&mut rest).unwrap();
    assert_eq!((answers.pop().as_deref(), rest.len()), (Some("0 serverclose 0"), 0));
    assert_eq!(answers.len() + 1, records.len());
}

#[test]
fn a_command_at_the_wrong_time_is_refused_for_that_reason_alone() {
    warnings::collect();
    for (frames, because) in [
        (session("2 open 14 relp_version=0\n"), "the session is open already"),
        (b"1 syslog 3 bad\n".to_vec(), "the session was not opened"),
        (session("2 eventlog 3 bad\n"), "the command is unknown"),
    ] {
        let serving = Serving::start("relp://127.0.0.1:0", |_| ());
        serving.connect().write_all(&frames).unwrap();
        serving.wait_until(|figures| figures.refused == 1);
        let listen = serving.listen.to_string();
        let lines = warnings::about(&format!(": {because}; it holds "));
        assert!(lines.iter().any(|line| line.starts_with(&listen)), "{because}: {lines:?}");
        serving.stop();
    }
}
