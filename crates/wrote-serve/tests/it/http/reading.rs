//! `GET /records`: returns exactly the log's records, from a sequence or a time on.

use super::client::Client;
use crate::serving::Serving;
use jiff::Timestamp;
use std::time::SystemTime;
use wrote::{Log, SyncPolicy};

fn serving() -> Serving {
    Serving::start("http://127.0.0.1:0", |config| {
        config.logs[0].options = Log::options().sync(SyncPolicy::No);
    })
}

fn numbers(range: std::ops::Range<u32>) -> String {
    range.map(|number| format!("number {number}\n")).collect()
}

/// Splits an answer with length prefixes into records.
fn counted(mut body: &[u8]) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    while let Some((len, rest)) = body.split_first_chunk::<4>() {
        let (record, rest) = rest.split_at(u32::from_be_bytes(*len) as usize);
        records.push(record.to_vec());
        body = rest;
    }
    assert!(body.is_empty());
    records
}

#[test]
fn records_are_read_from_a_sequence_up_to_a_limit_or_the_end() {
    let serving = serving();
    let mut client = Client::connect(serving.address());
    client.append(&numbers(0..20_000));
    let answer = client.get("/records?from=19990&as=lines");
    assert_eq!(answer.text(), numbers(19_990..20_000));
    assert_eq!(answer.header("content-type"), Some("text/plain"));
    assert_eq!(answer.header("wrote-next-sequence"), Some("20000"));
    let answer = client.get("/records?from=5&limit=10&as=lines");
    assert_eq!(answer.text(), numbers(5..15));
    assert_eq!(answer.header("wrote-next-sequence"), Some("15"));
    assert_eq!(client.get("/records?as=lines").text(), numbers(0..20_000));
    for beyond in ["/records?from=20000", "/records?from=99999999", "/records?limit=0"] {
        let answer = client.get(beyond);
        assert_eq!((answer.code, answer.text()), (200, ""), "{beyond}");
    }
    serving.stop();
}

#[test]
fn records_are_read_from_a_time_on_by_timestamp_or_age() {
    let serving = serving();
    let mut client = Client::connect(serving.address());
    let mut bounds = Vec::new();
    for number in 0..5 {
        client.append(&numbers(number..number + 1));
        // By this machine's clock, the record was written before the time of the next one.
        bounds.push(SystemTime::now());
    }
    let mut read = |bound: SystemTime, rest: &str| {
        let time = Timestamp::try_from(bound).unwrap().to_string().replace(':', "%3A");
        client.get(&format!("/records?since={time}&as=lines{rest}"))
    };
    for (number, bound) in bounds.iter().enumerate() {
        let number = number as u32 + 1;
        let answer = read(*bound, "");
        assert_eq!((answer.code, answer.text()), (200, &*numbers(number..5)));
        assert_eq!(answer.header("wrote-first-sequence"), Some(&*number.to_string()));
        assert_eq!(answer.header("wrote-next-sequence"), Some("5"));
        assert_eq!(read(*bound, "&limit=1").text(), numbers(number..5.min(number + 1)));
    }
    for (since, expected) in [("1h", 0), ("2999-01-01T00:00Z", 5), ("1970-01-01", 0)] {
        let answer = client.get(&format!("/records?since={since}&as=lines"));
        assert_eq!((answer.code, answer.text()), (200, &*numbers(expected..5)), "{since}");
    }
    let mut follower = Client::connect(serving.address());
    follower.send(b"GET /records?since=2999-01-01T00:00Z&follow=1&as=lines HTTP/1.1\r\n");
    follower.send(b"Host: localhost\r\n\r\n");
    assert_eq!(follower.head().code, 200);
    client.append(&numbers(5..6));
    assert_eq!(follower.chunk().unwrap(), numbers(5..6).as_bytes());
    for bad in ["since=yesterday", "since=", "since=1h&from=3"] {
        assert_eq!(client.get(&format!("/records?{bad}")).code, 400, "{bad}");
    }
    drop(follower);
    serving.stop();
}

#[test]
fn a_log_is_read_by_lengths_or_as_lines() {
    let serving = serving();
    let mut client = Client::connect(serving.address());
    client.post("/append", "", b"a\nb\0");
    client.append("c\n");
    let answer = client.get("/records");
    assert_eq!(answer.header("content-type"), Some("application/octet-stream"));
    assert_eq!(counted(&answer.body), [&b"a\nb\0"[..], b"c"]);
    assert_eq!(client.get("/records?as=lines").text(), "a\nb\0\nc\n");
    assert_eq!(counted(&client.get("/records?from=1&as=u32").body), [b"c"]);
    serving.stop();
}

#[test]
fn a_client_that_follows_gets_what_comes_and_the_end_of_the_server() {
    let serving = serving();
    let mut writer = Client::connect(serving.address());
    writer.append(&numbers(0..3));
    let mut follower = Client::connect(serving.address());
    follower.send(b"GET /records?from=1&follow=1&as=lines HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(follower.head().code, 200);
    let mut read = Vec::new();
    let mut read_up_to = |follower: &mut Client, end: u32| {
        let expected = numbers(1..end);
        while read.len() < expected.len() {
            read.extend(follower.chunk().unwrap());
        }
        assert_eq!(read, expected.as_bytes());
    };
    read_up_to(&mut follower, 3);
    for end in 4..100 {
        writer.append(&numbers(end - 1..end));
        read_up_to(&mut follower, end);
    }
    let mut beyond = Client::connect(serving.address());
    beyond.send(
        b"GET /records?from=100&follow=1&limit=1&as=lines HTTP/1.1\r\nHost: localhost\r\n\r\n",
    );
    assert_eq!(beyond.head().code, 200);
    writer.append(&numbers(99..102));
    assert_eq!(beyond.chunk().unwrap(), numbers(100..101).as_bytes());
    assert_eq!(beyond.chunk(), None, "no more was wanted");
    read_up_to(&mut follower, 102);
    serving.handle().stop();
    assert_eq!(follower.chunk(), None, "the answer ends as a whole");
    serving.stop();
}

#[test]
fn followers_that_wait_keep_no_place_among_the_readers_and_one_that_goes_is_noticed() {
    let serving = Serving::start("http://127.0.0.1:0", |config| config.limits.readers = 2);
    let mut followers: Vec<_> = (0..30)
        .map(|_| {
            let mut follower = Client::connect(serving.address());
            follower.send(b"GET /records?follow=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
            assert_eq!(follower.head().code, 200);
            follower
        })
        .collect();
    let mut client = Client::connect(serving.address());
    let before = client.get("/records").body;
    assert_eq!(client.append("one more").code, 200);
    let all = client.get("/records").body;
    assert!(all.len() > before.len());
    for follower in &mut followers {
        let mut read = Vec::new();
        while read.len() < all.len() {
            read.extend(follower.chunk().unwrap());
        }
        assert!(read == all);
    }
    drop(followers);
    serving.wait_until(|figures| figures.connections == 1);
    serving.stop();
}

#[test]
fn a_record_that_retention_removed_is_gone_and_the_first_left_is_named() {
    let serving = Serving::start("http://127.0.0.1:0", |config| {
        config.logs[0].options =
            Log::options().sync(SyncPolicy::No).segment_bytes(64 << 10).retain_bytes(128 << 10);
    });
    let mut client = Client::connect(serving.address());
    let line = "x".repeat(1000) + "\n";
    let gone = loop {
        client.append(&line.repeat(100));
        let answer = client.get("/records?limit=1");
        if answer.code != 200 {
            break answer;
        }
    };
    assert_eq!(gone.code, 410);
    let (_, first) = gone.text().rsplit_once("\"first\":").unwrap();
    let first: u64 = first.trim_end().trim_end_matches('}').parse().unwrap();
    let answer = client.get(&format!("/records?from={first}"));
    let next = serving.figures().messages;
    assert_eq!((answer.code, counted(&answer.body).len() as u64), (200, next - first));
    assert_eq!(client.get(&format!("/records?from={}", first - 1)).code, 410);
    serving.stop();
}

#[test]
fn an_answer_whose_records_are_removed_meanwhile_breaks_off_and_the_next_one_says_so() {
    let serving = Serving::start("http://127.0.0.1:0", |config| {
        config.logs[0].options =
            Log::options().sync(SyncPolicy::No).segment_bytes(256 << 10).retain_bytes(40 << 20);
    });
    let mut writer = Client::connect(serving.address());
    let mut append = |mebibytes: u32| {
        let block = ("x".repeat(1023) + "\n").repeat(1 << 10);
        (0..mebibytes).for_each(|_| assert_eq!(writer.append(&block).code, 200));
    };
    // This exceeds what the buffers of both kernels can hold.
    append(20);
    let mut reader = Client::connect(serving.address());
    reader.send(b"GET /records HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(reader.head().code, 200);
    append(60);
    let rest = reader.rest();
    assert!(!rest.is_empty() && rest.len() < 20 << 20, "{}", rest.len());
    assert!(!rest.ends_with(b"0\r\n\r\n"), "the body has no proper end");
    assert_eq!(Client::connect(serving.address()).get("/records").code, 410);
    serving.stop();
}
