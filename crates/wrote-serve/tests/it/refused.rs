//! Refused streams: each is counted once, and no part of it becomes a message.

use crate::serving::Serving;
use std::io::{Read, Write};

/// Sends bytes, reads until the server closes the connection, and returns what was read.
pub fn send(serving: &Serving, bytes: &[u8]) -> Vec<u8> {
    let mut stream = serving.connect();
    // A server that refuses the first bytes may disconnect before the last ones are sent.
    let _ = stream.write_all(bytes);
    let mut answers = Vec::new();
    // The server may also reset the connection, because it left bytes unread.
    let _ = stream.read_to_end(&mut answers);
    answers
}

/// Asserts that each stream is refused and counted once, and that only these messages remain.
#[track_caller]
fn assert_refused(url: &str, streams: &[&[u8]], messages: &[&[u8]]) {
    let serving = Serving::start(url, |_| ());
    for (count, stream) in (1..).zip(streams) {
        send(&serving, stream);
        serving.wait_until(|figures| figures.connections == 0);
        assert_eq!(serving.figures().refused, count, "{}", stream.escape_ascii());
    }
    assert_eq!(serving.stop(), messages);
}

#[test]
fn a_refused_stream_is_counted_once_and_leaves_only_the_messages_before() {
    let long = format!("5 first{} {}\n", 1 << 20, "x".repeat(1 << 17));
    let counted: [&[u8]; 4] = [
        long.as_bytes(),
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\n\x01\xfc\x03\x03",
        b"5 forged",
    ];
    assert_refused(
        "tcp://127.0.0.1:0?frame=octets&oversize=refuse",
        &counted,
        &[b"first", b"forge"],
    );
    let long = [b"first\n", &[b'x'; 1 << 17][..], b"\nforged\n"].concat();
    // A web page can make a browser send this.
    let page = b"POST /x?y HTTP/1.1\r\nHost: localhost:5140\r\n\r\n<85>sudo: forged\n\0";
    let tls = b"\x16\x03\x01\x02\x00\x01\n\x01\xfc\x03\x03\n";
    assert_refused("tcp://127.0.0.1:0?oversize=refuse", &[&long, tls, page], &[b"first"]);
}
