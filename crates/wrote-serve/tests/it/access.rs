//! Access: addresses that can be reached, tokens, and connections per address.

use crate::http::client::Client;
use crate::refused::send;
use crate::resp::Answer;
use crate::serving::{Serving, tokens};
use std::fs;
use wrote_serve::Config;

#[test]
fn a_client_of_http_sends_and_reads_nothing_without_a_token() {
    let (_folder, path) = tokens("secret\n");
    let serving = Serving::start("http://127.0.0.1:0", |config| {
        config.access.token_file = Some(path.clone());
    });
    let mut client = Client::connect(serving.address());
    for header in ["", "Authorization: Bearer wrong\r\n", "Authorization: Basic secret\r\n"] {
        let answer = client.post("/append", header, b"refused");
        assert_eq!((answer.code, answer.header("WWW-Authenticate")), (401, Some("Bearer")));
    }
    assert_eq!(client.get("/records?from=0").code, 401);
    assert_eq!(serving.refused(), [("unauthorized", 4)]);
    assert_eq!(client.post("/append", "Authorization: bearer secret\r\n", b"taken").code, 200);
    assert_eq!(serving.stop(), [b"taken"]);
}

#[test]
fn a_client_of_resp_sends_nothing_without_a_token() {
    let (_folder, path) = tokens("secret\n");
    let serving = Serving::start("resp://127.0.0.1:0", |config| {
        config.access.token_file = Some(path.clone());
    });
    let asked = |text: &str| String::from_utf8(send(&serving, text.as_bytes())).unwrap();
    let answer = asked("RPUSH log refused\r\nXRANGE log - +\r\nQUIT\r\n");
    assert_eq!(answer.matches("-NOAUTH").count(), 2, "{answer}");
    let answer = asked("AUTH wrong\r\nRPUSH log refused\r\nHELLO 3\r\nQUIT\r\n");
    assert!(answer.starts_with("-WRONGPASS") && answer.matches("-NOAUTH").count() == 2, "{answer}");
    let answer =
        asked("HELLO 3 AUTH default wrong\r\nHELLO 3 SETNAME a AUTH default wrong\r\nQUIT\r\n");
    assert_eq!(answer.matches("-WRONGPASS").count(), 2, "{answer}");
    assert_eq!(serving.refused(), [("unauthorized", 6)]);
    // Such a client cannot make the server keep much data either.
    let long = format!("*2\r\n$4\r\nAUTH\r\n$1000000\r\n{}", "x".repeat(20_000));
    assert_eq!(asked(&long), "");
    serving.wait_until(|figures| figures.connections == 0);
    assert_eq!(serving.refused(), [("too_long", 1), ("unauthorized", 6)]);
    assert!(asked("AUTH secret\r\nRPUSH log one\r\nQUIT\r\n").starts_with("+OK\r\n:1\r\n"));
    assert!(asked("AUTH any secret\r\nRPUSH log two\r\nQUIT\r\n").starts_with("+OK\r\n:2\r\n"));
    let answer = asked("HELLO 3 AUTH any secret\r\nRPUSH log three\r\nRESET\r\nPING\r\nQUIT\r\n");
    assert!(answer.starts_with("%7") && answer.contains(":3\r\n+RESET\r\n-NOAUTH"), "{answer}");
    let answer = asked("HELLO 3 SETNAME name AUTH any secret\r\nQUIT\r\n");
    assert!(answer.starts_with("%7"), "{answer}");

    // New tokens apply to new connections.
    fs::write(&path, "\n").unwrap();
    let error = serving.reload().unwrap_err().to_string();
    assert!(error.ends_with("tokens: has no token in it"), "{error}");
    assert!(asked("AUTH secret\r\nQUIT\r\n").starts_with("+OK"));
    fs::write(&path, "later\n").unwrap();
    serving.reload().unwrap();
    // The listener applies the settings to the next connection.
    assert!(asked("AUTH secret\r\nQUIT\r\n").starts_with("-WRONGPASS"));
    assert!(asked("AUTH later\r\nQUIT\r\n").starts_with("+OK"));
    assert_eq!(serving.stop(), [&b"one"[..], b"two", b"three"]);
}

#[test]
fn a_token_that_is_taken_back_ends_what_it_began() {
    let (_folder, path) = tokens("old\nkept\n");
    let with_tokens = |config: &mut Config| config.access.token_file = Some(path.clone());
    let resp = Serving::start("resp://127.0.0.1:0", with_tokens);
    let mut clients = ["old", "kept"].map(|token| {
        let mut client = crate::resp::Client::connect(&resp);
        assert_eq!(client.ask(&format!("AUTH {token}")), Answer::Line("+OK".into()));
        client
    });
    let http = Serving::start("http://127.0.0.1:0", with_tokens);
    let old = "Authorization: Bearer old\r\n";
    let mut follower = Client::connect(http.address());
    follower
        .send(format!("GET /records?follow=1 HTTP/1.1\r\nHost: localhost\r\n{old}\r\n").as_bytes());
    assert_eq!(follower.head().code, 200);
    let mut writer = Client::connect(http.address());
    let head =
        "POST /append?by=lines HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n";
    writer.send(format!("{head}{old}\r\n4\r\none\n\r\n").as_bytes());
    let mut idle = Client::connect(http.address());
    assert_eq!(idle.post("/append", old, b"two").code, 200);
    http.wait_until(|figures| figures.messages == 2);

    fs::write(&path, "kept\n").unwrap();
    resp.reload().unwrap();
    http.reload().unwrap();
    // The client may be disconnected before it sends, and then gets only an error.
    let _ = clients[0].send(b"RPUSH l refused\r\n");
    assert_eq!(clients[0].answer(), None);
    assert_eq!(clients[1].ask("RPUSH l taken"), Answer::Number(1));
    assert_eq!(idle.post("/append", old, b"refused").code, 401);
    writer.send(b"8\r\nrefused\n\r\n");
    assert_eq!(writer.head().code, 401);
    let kept = "Authorization: Bearer kept\r\n";
    assert_eq!(idle.post("/append", kept, b"secret").code, 200);
    let read = String::from_utf8(follower.rest()).unwrap();
    assert!(!read.contains("secret") && !read.ends_with("0\r\n\r\n"), "{read}");
    assert_eq!(resp.stop(), [b"taken"]);
    assert_eq!(http.stop(), [&b"one"[..], b"two", b"secret"]);
}

#[test]
fn a_web_page_whose_name_leads_to_loopback_reads_and_writes_nothing() {
    let (_folder, tokens) = tokens("secret\n");
    for (token_file, code) in [(None, 403), (Some(tokens), 200)] {
        let serving = Serving::start("http://localhost:0", |config| {
            config.access.token_file = token_file;
        });
        for (host, code) in [("evil.example:8080", code), ("localhost:1", 200), ("[::1]", 200)] {
            let mut client = Client::connect(serving.address());
            let token = "Authorization: Bearer secret\r\nContent-Length: 1\r\n\r\nx";
            client.send(format!("POST /append HTTP/1.1\r\nHost: {host}\r\n{token}").as_bytes());
            assert_eq!(client.answer().code, code, "{host}");
        }
        assert_eq!(serving.stop().len(), if code == 200 { 3 } else { 2 });
    }
}

#[test]
fn limits_that_are_read_again_hold_for_open_connections_of_http() {
    let mut serving = Serving::http();
    let mut client = Client::connect(serving.address());
    assert_eq!(client.post("/append", "", b"as long as ever").code, 200);
    serving.config.limits.message_bytes = 5;
    serving.reload().unwrap();
    assert_eq!(client.post("/append", "", b"small").code, 200);
    assert_eq!(client.post("/append", "", b"too long").code, 413);
    // The log's buffers keep their size until the server restarts.
    serving.config.limits.message_bytes = 16 << 10;
    serving.config.logs[0].buffer_bytes = None;
    let error = serving.reload().unwrap_err().to_string();
    assert!(error.contains("does not fit into the buffers of its log"), "{error}");
    assert_eq!(client.post("/append", "", b"too long").code, 413);
    serving.stop();
}
