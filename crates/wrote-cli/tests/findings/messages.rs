//! Findings on appended messages: lost ones, and their order.

use crate::scene::{bench, said, silent};
use crate::support::row;
use fixtures::folder;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use wrote_result::document::Document;

/// Enough messages that tasks on two or more processors overtake each other.
fn appended(rows: &str) -> Document {
    let folder = folder();
    bench(folder.path(), &format!("--only {rows} --messages 20000 --message-size 64 --runs 2"))
}

#[test]
fn records_lost_is_said_of_several_handles_on_one_file() {
    let document = appended("append/flume-10-files,append/mutex");
    said(&document, "records-lost", &["append/flume-10-files"]);
}

#[test]
fn records_lost_is_not_said_of_one_handle_or_of_a_log() {
    silent(&appended("append/mutex,append/flume-10-writers,append/log-no"), "records-lost");
}

#[test]
fn records_out_of_order_is_said_of_tasks_that_each_hand_over_one() {
    let document = appended("append/mutex,append/loop");
    let records = |name: &str| row(&document, name).runs[0].records.expect("looked for");
    // The test proves something only if one task overtakes another.
    assert!(records("append/mutex").out_of_order > 0, "{document:?}");
    said(&document, "records-out-of-order", &["append/mutex"]);
}

#[test]
fn records_out_of_order_is_not_said_of_one_that_hands_over_all_or_of_a_log() {
    silent(&appended("append/loop,append/log-no,append/log-lines"), "records-out-of-order");
}

/// A server on loopback that reads everything, and answers each read with an ID.
fn sink() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.expect("a connection");
            thread::spawn(move || {
                let mut bytes = vec![0; 1 << 20];
                while stream.read(&mut bytes).is_ok_and(|read| read > 0) {
                    // If no answer is expected, the client has ended by then.
                    let _ =
                        bytes.starts_with(b"*5\r\n").then(|| stream.write_all(b"$3\r\n0-1\r\n"));
                }
            });
        }
    });
    address.to_string()
}

#[test]
fn client_limited_is_said_of_short_messages_to_who_reads_in_large_pieces() {
    let folder = folder();
    let url = format!("tcp://{}", sink());
    let short = "--only serve/lines --connections 1 --server-message-size 32 --runs 1 --time 300ms";
    let document = bench(folder.path(), &format!("{short} --server-url {url}"));
    said(&document, "client-limited", &["serve/lines/1"]);
}

#[test]
fn client_limited_is_not_said_of_few_messages_that_wait_for_answers() {
    let folder = folder();
    let url = format!("resp://{}", sink());
    let few = "--only serve/resp --connections 1 --window 1 --rate 10 --runs 1 --time 1s";
    silent(&bench(folder.path(), &format!("{few} --server-url {url}")), "client-limited");
}
