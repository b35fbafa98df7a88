//! Hostile clients: each is disconnected and counted, and others are served.

use super::client::Client;
use crate::serving::{Serving, address, deaf};
use crate::warnings;
use std::io::Write;
use std::time::Duration;
use wrote_serve::Config;

const FIRST_BYTE: Duration = Duration::from_millis(50);
const MESSAGE_TIME: Duration = Duration::from_millis(100);

/// Sends one byte after another until the server closes the connection.
fn drip(client: &mut Client, byte: u8) {
    while client.stream().write_all(&[byte]).is_ok() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_client_that_drips_its_head_or_body_is_let_go() {
    // On a busy machine, a client may start late. Its first byte is still treated as being in time.
    let serving =
        Serving::start("http://127.0.0.1:0", |config| config.limits.message_time = MESSAGE_TIME);
    let mut head = Client::connect(serving.address());
    head.send(b"GET /records HTTP/1.1\r\nHost: ");
    drip(&mut head, b'x');
    serving.wait_until(|figures| figures.refused == 1 && figures.connections == 0);
    let mut stopped = Client::connect(serving.address());
    stopped.send(b"GET /records HTTP/1.1\r\n");
    let answer = stopped.answer();
    assert_eq!(
        (answer.code, answer.text()),
        (408, "{\"error\":\"a request's head took too long\"}\n")
    );

    let mut body = Client::connect(serving.address());
    body.send(
        b"POST /append?by=lines HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\none\n",
    );
    drip(&mut body, b'x');
    serving.wait_until(|figures| figures.connections == 0);
    assert_eq!(serving.refused(), [("message_time", 3)]);

    let mut stopped = Client::connect(serving.address());
    stopped.send(b"POST /append HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nnever");
    assert_eq!(stopped.answer().code, 408);
    assert_eq!(stopped.rest(), b"");
    assert_eq!(serving.figures().refused, 4);
    assert_eq!(serving.stop(), [b"one"]);
}

#[test]
fn a_client_that_pauses_between_requests_is_kept() {
    let impatient = |config: &mut Config| {
        config.limits.first_byte = FIRST_BYTE;
        config.limits.message_time = MESSAGE_TIME;
    };
    let mut client = None;
    // The first request arrives before the server starts its timers, and each request arrives as a
    // whole.
    let serving = Serving::start_after("http://127.0.0.1:0", impatient, |listen, _| {
        let first = b"POST /append HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n0";
        client.insert(Client::connect(address(listen))).send(first);
    });
    let mut client = client.expect("it is connected");
    assert_eq!(client.answer().code, 200);
    for number in 1..3 {
        std::thread::sleep(3 * MESSAGE_TIME);
        assert_eq!(client.append(&format!("{number}\n")).code, 200);
    }
    assert_eq!((serving.figures().refused, serving.figures().connections), (0, 1));
    assert_eq!(serving.stop(), [b"0", b"1", b"2"]);
}

#[test]
fn a_malformed_request_is_refused_once_with_the_reason_and_makes_no_record() {
    let serving = Serving::http();
    let headers: String = (0..1_000_000).map(|number| format!("h{number}: x\r\n")).collect();
    let long = "x".repeat(1 << 20);
    let post = |header| format!("POST /append HTTP/1.1\r\n{header}\r\n\r\nforged\r\n");
    for (count, (request, expected)) in (1..).zip([
        ("forged\nforged\n\r\n\r\n".to_owned(), "400 not an HTTP request"),
        ("GET /records\r\n\r\n".to_owned(), "400 the request line is not a method, a path"),
        ("GET /records HTTP/3\r\n\r\n".to_owned(), "400 the request line is not a method, a path"),
        ("GET /records HTTP/1.1\r\nno colon\r\n\r\n".to_owned(), "400 a header is not a name"),
        ("\x16\x03\x01\x02\0\x01\0\x01".to_owned(), "400 a TLS handshake on a plain listener"),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), "400 HTTP/2 is not served"),
        (format!("GET /records HTTP/1.1\r\n{headers}\r\n"), "431 a request's head has over 16 KiB"),
        (format!("GET /records?{long} HTTP/1.1\r\n\r\n"), "431 a request's head has over 16 KiB"),
        (post("Content-Length: 99999999999999999999999"), "400 Content-Length must be one number"),
        (post("Content-Length: many"), "400 Content-Length must be one number"),
        (post("Content-Length: 5\r\nContent-Length: 6"), "400 Content-Length must be one number"),
        (post("Content-Length: 9999999999999999"), "413 a message is too long"),
        (post("Transfer-Encoding: chunked"), "400 the body is broken"),
        (post("Transfer-Encoding: gzip"), "400 Transfer-Encoding must be chunked"),
    ]) {
        let (code, because) = expected.split_at(3);
        let mut client = Client::connect(serving.address());
        // A server that refuses the first bytes may disconnect before the last ones are sent.
        let _ = client.stream().write_all(request.as_bytes());
        let begin = &request[..request.len().min(60)];
        let answer = client.answer();
        assert_eq!(answer.code.to_string(), code, "{begin}");
        let error = format!("\"error\":\"{}", because.trim());
        assert!(answer.text().contains(&error), "{begin}: {}", answer.text());
        client.rest();
        drop(client);
        serving.wait_until(|figures| figures.connections == 0);
        assert_eq!(serving.figures().refused, count, "{begin}");
    }
    assert_eq!(serving.figures().in_flight_bytes, 0);
    assert!(serving.stop().is_empty());
}

#[test]
fn a_line_about_a_request_head_names_its_own_limit() {
    warnings::collect();
    let serving =
        Serving::start("http://127.0.0.1:0", |config| config.limits.message_time = MESSAGE_TIME);
    let name = serving.listen.to_string();
    let said = |begin: &str, words: &str| {
        let mut client = Client::connect(serving.address());
        let _ = client.stream().write_all(begin.as_bytes());
        client.rest();
        serving.wait_until(|figures| figures.connections == 0);
        let lines = warnings::about(&name);
        assert!(lines.iter().any(|line| line.ends_with(words)), "{words}: {lines:?}");
    };
    said(
        &format!("GET /{}", "x".repeat(1 << 20)),
        "a request's head has over 16 KiB or 100 fields",
    );
    said("GET /records HTTP/1.1\r\n", "a request's head took too long (message_time: 100ms)");
    assert_eq!(serving.refused(), [("malformed", 1), ("message_time", 1)]);
}

#[test]
fn a_body_without_end_is_taken_in_bounded_memory() {
    const LINES: u64 = 100_000;
    let serving = Serving::start("http://127.0.0.1:0", |config| {
        config.limits.in_flight_bytes = 256 << 10;
    });
    let mut client = Client::connect(serving.address());
    client.send(
        b"POST /append?by=lines HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    let line = format!("{}\n", "x".repeat(200));
    let chunk = format!("{:x}\r\n{}\r\n", 100 * line.len(), line.repeat(100));
    for _ in 0..LINES / 100 {
        client.send(chunk.as_bytes());
    }
    serving.wait_until(|figures| figures.messages == LINES);
    assert!(serving.figures().in_flight_bytes < 256 << 10);
    drop(client);
    serving.wait_until(|figures| figures.connections == 0);
    let figures = serving.figures();
    // The client left without waiting for its answer.
    assert_eq!((figures.acks, figures.unacked, figures.unanswered), (0, 0, LINES));
    assert_eq!(serving.stop().len() as u64, LINES);
}

// W8
#[test]
fn requests_whose_bodies_do_not_come_are_bounded_in_all() {
    let serving = Serving::start("http://127.0.0.1:0", |config| {
        config.limits.in_flight_bytes = 200 << 10;
    });
    let head = "POST /append HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\n\
        Content-Length: 5\r\n\r\n";
    let clients: Vec<_> = (0..30)
        .map(|_| {
            let mut client = Client::connect(serving.address());
            client.send(head.as_bytes());
            client
        })
        .collect();
    // Each client uses 16 KiB.
    serving.wait_until(|figures| figures.connections == 12 && figures.refused >= 18);
    assert!(serving.refused().iter().all(|(reason, _)| *reason == "in_flight_bytes"));
    drop(clients);
    serving.wait_until(|figures| figures.connections == 0);
    assert_eq!(serving.figures().in_flight_bytes, 0);
    serving.stop();
}

// W8
#[test]
fn answers_that_are_not_read_are_bounded_in_all_and_held_until_they_are_written() {
    const RECORD_BYTES: usize = 1 << 20;
    for (url, path) in
        [("http://127.0.0.1:0", "/records?limit=1"), ("http://127.0.0.1:0", "/records")]
    {
        let serving = Serving::start(url, |config| {
            config.limits.unsent_bytes = 4 * RECORD_BYTES;
            config.limits.message_bytes = RECORD_BYTES;
            config.logs[0].options = wrote::Log::options().sync(wrote::SyncPolicy::No);
            config.logs[0].buffer_bytes = None;
        });
        let mut client = Client::connect(serving.address());
        for _ in 0..4 {
            assert_eq!(client.post("/append", "", &[b'x'; RECORD_BYTES]).code, 200);
        }
        assert_eq!(client.get(path).code, 200);
        serving.wait_until(|figures| figures.in_flight_bytes == 0);
        let deaf: Vec<_> = (0..12)
            .map(|_| {
                let mut stream = deaf(&serving);
                let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
                // This exceeds what the buffers of both kernels can hold.
                stream.write_all(request.repeat(8).as_bytes()).unwrap();
                stream
            })
            .collect();
        serving.wait_until(|figures| figures.refused >= 6);
        assert!(serving.refused().iter().all(|(reason, _)| *reason == "in_flight_bytes"));
        drop((deaf, client));
        serving.wait_until(|figures| figures.connections == 0);
        assert_eq!(serving.figures().in_flight_bytes, 0);
        serving.stop();
    }
}

#[test]
fn a_client_that_never_reads_is_let_go() {
    let serving = Serving::start("http://127.0.0.1:0", |config| {
        config.limits.unread_time = Duration::from_millis(100);
        config.limits.message_bytes = 64 << 10;
        config.logs[0].options = wrote::Log::options().sync(wrote::SyncPolicy::No);
        config.logs[0].buffer_bytes = None;
    });
    let mut writer = Client::connect(serving.address());
    let line = format!("{}\n", "x".repeat(50_000));
    for _ in 0..10 {
        assert_eq!(writer.append(&line.repeat(20)).code, 200);
    }
    let mut deaf = Client::connect(serving.address());
    // This exceeds what the buffers of both kernels can hold.
    deaf.send("GET /records HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(3).as_bytes());
    serving.wait_until(|figures| figures.refused == 1);
    assert_eq!(serving.refused(), [("unread_time", 1)]);
    assert_eq!(writer.append("others are served\n").code, 200);
    serving.stop();
}
