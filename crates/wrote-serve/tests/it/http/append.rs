//! `POST /append`: records, answers and refusals.

use super::client::Client;
use crate::serving::Serving;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::net::Shutdown;
use wrote::{Log, SyncPolicy};

#[test]
fn a_body_is_a_record_and_with_lines_each_line_is() {
    let serving = Serving::http();
    let mut client = Client::connect(serving.address());
    let answer = client.post("/append", "", b"one\r\n\0two\n");
    assert_eq!((answer.code, answer.header("content-type")), (200, Some("application/json")));
    assert_eq!(answer.text(), "{\"appended\":1,\"first\":0,\"next\":1}\n");
    let answer = client.append("three\nfour\r\n\n\nfive");
    assert_eq!(answer.text(), "{\"appended\":3,\"first\":1,\"next\":4}\n");
    let types = "Content-Type: application/x-ndjson\r\n";
    let answer = client.post("/append", types, b"{\"a\":6}\n{\"a\":7}\n");
    assert_eq!(answer.text(), "{\"appended\":2,\"first\":4,\"next\":6}\n");
    let answer = client.post("/append", "Content-Type: application/octet-stream\r\n", b"");
    assert_eq!(answer.text(), "{\"appended\":0,\"first\":6,\"next\":6}\n");
    let figures = serving.figures();
    assert_eq!((figures.messages, figures.acks, figures.refused), (6, 6, 0));
    assert_eq!(figures.bytes, 10 + 5 + 4 + 4 + 7 + 7);
    let records = serving.stop();
    let expected = [&b"one\r\n\0two\n"[..], b"three", b"four", b"five", b"{\"a\":6}", b"{\"a\":7}"];
    assert_eq!(records, expected);
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_body_that_is_compressed_is_taken_as_it_was_in_bounded_memory() {
    const CODING: &str = "Content-Encoding: gzip\r\n";
    let serving = Serving::start("http://127.0.0.1:0", |config| {
        config.limits.in_flight_bytes = 256 << 10;
    });
    let mut client = Client::connect(serving.address());
    let lines: String = (0..20_000).map(|number| format!("line {number}\n")).collect();
    // A gzip file may consist of several members.
    let body = [gzip(&lines.as_bytes()[..1000]), gzip(&lines.as_bytes()[1000..])].concat();
    let answer = client.post("/append?by=lines", CODING, &body);
    assert_eq!((answer.code, serving.figures().messages), (200, 20_000));
    assert_eq!(client.post("/append", CODING, &gzip(b"one body")).code, 200);
    // The body contains 100 MB of a single line, compressed to 100 kB.
    let bomb = gzip(&vec![b'x'; 100 << 20]);
    let answer = Client::connect(serving.address()).post("/append?by=lines", CODING, &bomb);
    assert!(answer.code == 413 && serving.figures().in_flight_bytes < 64 << 10, "{answer:?}");
    assert_eq!(Client::connect(serving.address()).post("/append", CODING, &bomb).code, 413);
    let cut = &gzip(b"a part")[..12];
    for broken in [cut, b"no gzip"] {
        let mut client = Client::connect(serving.address());
        assert_eq!(client.post("/append", CODING, broken).code, 400, "{broken:?}");
    }
    let mut transformed = Client::connect(serving.address());
    transformed.send(b"POST /append HTTP/1.1\r\nHost: localhost\r\n");
    transformed.send(b"Transfer-Encoding: gzip, chunked\r\n\r\n");
    assert_eq!(transformed.answer().code, 501);
    let records = serving.stop();
    assert_eq!((records.len(), records[20_000].as_slice()), (20_001, &b"one body"[..]));
    assert!(records[19_999] == b"line 19999");
}

#[test]
fn a_client_that_ends_its_side_behind_a_request_gets_its_answer() {
    let serving = Serving::http();
    for number in 0..20 {
        let mut client = Client::connect(serving.address());
        let request = "POST /append HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx";
        client.send(request.as_bytes());
        client.stream().shutdown(Shutdown::Write).unwrap();
        let answer = client.answer();
        let expected = format!("{{\"appended\":1,\"first\":{number},\"next\":{}}}\n", number + 1);
        assert_eq!((answer.code, answer.text()), (200, expected.as_str()));
        assert!(client.is_over());
    }
    // A partial body is not a record.
    let mut client = Client::connect(serving.address());
    client.send(b"POST /append HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\npart");
    client.stream().shutdown(Shutdown::Write).unwrap();
    client.rest();
    assert_eq!(serving.stop().len(), 20);
}

#[test]
fn a_follower_that_ends_its_side_is_gone_before_the_next_record() {
    let serving = Serving::http();
    let mut client = Client::connect(serving.address());
    assert_eq!(client.append("one\n").code, 200);
    client.send(b"GET /records?follow=true&as=lines HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(client.head().code, 200);
    assert_eq!(client.chunk().unwrap(), b"one\n");
    client.stream().shutdown(Shutdown::Write).unwrap();
    // The client would wait forever if the server noticed the end of the client's stream only at
    // the next record.
    assert!(client.is_over());
    serving.stop();
}

#[test]
fn head_is_answered_as_get_without_the_records() {
    let serving = Serving::http();
    let mut client = Client::connect(serving.address());
    assert_eq!(client.append("one\ntwo\n").code, 200);
    client.send(b"HEAD /records?from=1&as=lines HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let head = client.head();
    assert_eq!((head.code, head.header("wrote-next-sequence")), (200, Some("2")));
    assert_eq!(client.get("/records?from=1&as=lines").text(), "two\n");
    serving.stop();
}

#[test]
fn an_answer_comes_once_its_records_are_as_safe_as_it_says() {
    for (ack, sync) in
        [("durable", SyncPolicy::Always), ("durable", SyncPolicy::No), ("written", SyncPolicy::No)]
    {
        let serving = Serving::start(&format!("http://127.0.0.1:0?ack={ack}"), |config| {
            config.logs[0].options = Log::options().sync(sync);
        });
        let mut client = Client::connect(serving.address());
        for number in 0..20 {
            let answer = client.append(&format!("{number}\n"));
            assert_eq!(answer.code, 200);
            let (_, written, durable) = serving.logs().remove(0);
            let reached = if ack == "durable" { durable } else { written };
            assert!(reached > number, "{ack}: {reached} of {number}");
        }
        serving.stop();
    }
}

#[test]
fn a_record_that_is_too_long_is_refused_and_those_around_it_are_taken() {
    let serving = Serving::http();
    let mut client = Client::connect(serving.address());
    let long = "x".repeat(9000);
    let answer = client.append(&format!("before\n{long}\nafter\n\n{long}"));
    assert_eq!(answer.code, 413);
    assert_eq!(
        answer.text(),
        "{\"appended\":2,\"error\":\"line 2: a message is too long\",\"first\":0,\"next\":2,\
         \"refused\":2,\"refused_lines\":[2,5]}\n"
    );
    let mut client = Client::connect(serving.address());
    assert_eq!(client.post("/append", "", long.as_bytes()).code, 413);
    // A client that asks first gets its answer before it sends the body.
    let mut client = Client::connect(serving.address());
    client.send(
        b"POST /append HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9000\r\nExpect: 100-continue\r\n\r\n",
    );
    assert_eq!(client.answer().code, 413);
    let figures = serving.figures();
    assert_eq!((figures.messages, figures.acks, figures.unanswered), (2, 2, 0));
    assert_eq!(serving.refused(), [("too_long", 4)]);
    assert_eq!(serving.stop(), [&b"before"[..], b"after"]);
}

#[test]
fn requests_that_make_no_sense_are_answered_by_their_codes_and_the_connection_goes_on() {
    let serving = Serving::http();
    let mut client = Client::connect(serving.address());
    assert_eq!(client.post("/append?by=words", "", b"").code, 400);
    assert_eq!(client.post("/", "", b"").code, 404);
    let answer = client.get("/append");
    assert_eq!((answer.code, answer.header("allow")), (405, Some("POST")));
    let answer = client.post("/records", "", b"");
    assert_eq!((answer.code, answer.header("allow")), (405, Some("GET, HEAD")));
    assert_eq!(client.get("/records?from=first").code, 400);
    assert_eq!(client.post("/append", "Content-Encoding: zstd\r\n", b"").code, 415);
    assert_eq!(client.post("/append", "Origin: http://example.com\r\n", b"").code, 403);
    assert_eq!(client.append("still here").code, 200);
    assert_eq!(serving.refused(), [("malformed", 6), ("unauthorized", 1)]);
    assert_eq!(serving.stop(), [b"still here"]);
}

#[test]
fn a_log_that_takes_nothing_now_asks_to_come_again() {
    let serving = Serving::start("http://127.0.0.1:0", |config| {
        config.limits.free_bytes = u64::MAX;
    });
    // The server's first check of the disk is still in progress.
    let refused = loop {
        let mut client = Client::connect(serving.address());
        let answer = client.append("taken before the first look\n");
        if answer.code != 200 {
            break answer;
        }
    };
    assert_eq!((refused.code, refused.header("retry-after")), (503, Some("1")));
    let taken = serving.figures().messages;
    let mut client = Client::connect(serving.address());
    assert_eq!(client.append("refused\n").code, 503);
    assert_eq!(client.get("/records?limit=1").code, 200, "it can be read");
    assert_eq!(serving.stop().len() as u64, taken);
}

#[test]
fn a_server_that_drains_finishes_what_it_has_and_says_that_it_closes() {
    let serving = Serving::http();
    let mut busy = Client::connect(serving.address());
    busy.send(
        b"POST /append?by=lines HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8\r\n\r\none\n",
    );
    let mut idle = Client::connect(serving.address());
    assert_eq!(idle.append("zero\n").code, 200);
    serving.wait_until(|figures| figures.messages == 2);
    serving.handle().stop();
    assert_eq!(idle.rest(), b"", "a client without a request is let go");
    busy.send(b"two\n");
    let answer = busy.answer();
    assert_eq!((answer.code, answer.header("connection")), (200, Some("close")));
    assert_eq!(busy.rest(), b"");
    let mut records = serving.stop();
    records.sort();
    assert_eq!(records, [&b"one"[..], b"two", b"zero"]);
}

#[test]
fn requests_that_had_arrived_when_the_server_drains_are_answered() {
    let mut client = None;
    let serving = Serving::start_after(
        "http://127.0.0.1:0",
        |_| (),
        |listen, handle| {
            let mut early = Client::connect(crate::serving::address(listen));
            early.send(
                b"POST /append HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nearly",
            );
            client = Some(early);
            handle.stop();
        },
    );
    let answer = client.unwrap().answer();
    assert_eq!((answer.code, answer.header("connection")), (200, Some("close")));
    assert_eq!(serving.stop(), [b"early"]);
}
