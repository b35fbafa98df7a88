//! Connections of several workers append to one log.

use crate::serving::Serving;
use std::io::{BufRead, BufReader, Write};
use std::thread;

const CLIENTS: usize = 9;
const MESSAGES: usize = 40;

/// Appends messages one by one, each after the previous answer, and returns the IDs.
fn append(serving: &Serving, client: usize) -> Vec<u64> {
    let mut stream = serving.connect();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    let mut ids = Vec::new();
    for number in 0..MESSAGES {
        let value = format!("{client:03}-{number:03}");
        write!(stream, "*5\r\n$4\r\nXADD\r\n$3\r\nlog\r\n$1\r\n*\r\n$1\r\nm\r\n$7\r\n{value}\r\n")
            .unwrap();
        let (mut length, mut id) = (String::new(), String::new());
        answers.read_line(&mut length).unwrap();
        answers.read_line(&mut id).unwrap();
        ids.push(id.strip_suffix("-1\r\n").unwrap().parse().unwrap());
    }
    ids
}

#[test]
fn connections_of_all_workers_are_answered_and_each_keeps_its_order() {
    let serving = Serving::start("resp://127.0.0.1:0", |config| config.workers = 3);
    let all: Vec<_> = thread::scope(|scope| {
        let serving = &serving;
        let append = |client| scope.spawn(move || append(serving, client));
        let threads: Vec<_> = (0..CLIENTS).map(append).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let records = serving.stop();
    assert_eq!(records.len(), CLIENTS * MESSAGES);
    for (client, ids) in all.iter().enumerate() {
        assert!(ids.is_sorted());
        for (number, id) in ids.iter().enumerate() {
            assert_eq!(records[*id as usize], format!("{client:03}-{number:03}").as_bytes());
        }
    }
}

#[test]
fn a_server_of_several_workers_drains_and_ends() {
    let serving = Serving::start("relp://127.0.0.1:0", |config| config.workers = 3);
    let streams: Vec<_> = (0..CLIENTS).map(|_| serving.connect()).collect();
    serving.wait_until(|figures| figures.connections == CLIENTS as u64);
    assert_eq!(serving.stop(), Vec::<Vec<u8>>::new());
    drop(streams);
}
