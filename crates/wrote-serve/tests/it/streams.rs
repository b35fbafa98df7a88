//! Messages on streams: complete and in order, from many clients concurrently. Also refusals and
//! ends of streams.

use crate::serving::Serving;
use socket2::SockRef;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::Duration;

/// Returns a message of a connection, of up to about 3,000 bytes.
fn message(connection: u32, number: u32) -> String {
    let len = (connection * 31 + number) * 7919 % 3000;
    let letters = (0..len).map(|place| char::from(b'a' + ((number + place) % 26) as u8));
    format!("{connection} {number} {}", letters.collect::<String>())
}

#[test]
fn more_than_the_log_holds_comes_from_many_connections_and_each_keeps_its_order() {
    let serving = Serving::start("tcp://127.0.0.1:0", |_| ());
    std::thread::scope(|scope| {
        for connection in 0..40 {
            let mut stream = serving.connect();
            scope.spawn(move || {
                for number in 0..200 {
                    writeln!(stream, "{}", message(connection, number)).unwrap();
                }
            });
        }
    });
    let mut next = [0; 40];
    for record in serving.stop() {
        let record = String::from_utf8(record).unwrap();
        let connection: u32 = record.split(' ').next().unwrap().parse().unwrap();
        let number = &mut next[connection as usize];
        assert_eq!(record, message(connection, *number));
        *number += 1;
    }
    assert_eq!(next, [200; 40]);
}

#[test]
fn arrived_messages_are_taken_when_the_server_or_the_client_ends() {
    let serving = Serving::start("tcp://127.0.0.1:0", |_| ());
    let mut ended = serving.connect();
    ended.write_all(b"one\nwithout an end").unwrap();
    ended.shutdown(Shutdown::Write).unwrap();
    assert_eq!(ended.read(&mut [0; 1]).unwrap(), 0, "the server closes behind the last message");
    let mut open = serving.connect();
    open.write_all(b"two\nthree\n").unwrap();
    serving.wait_until(|figures| figures.messages == 4);
    assert_eq!(serving.stop(), [&b"one"[..], b"without an end", b"two", b"three"]);
}

#[test]
fn a_part_of_a_message_is_none_where_its_client_did_not_end_the_stream() {
    let serving = Serving::start("tcp://127.0.0.1:0", |_| ());
    let mut broken = serving.connect();
    broken.write_all(b"user=alice amount=1000\nuser=bob amount=10").unwrap();
    serving.wait_until(|figures| figures.messages == 1);
    // The stream is reset, as when a client is killed.
    SockRef::from(&broken).set_linger(Some(Duration::ZERO)).unwrap();
    drop(broken);
    serving.wait_until(|figures| figures.connections == 0);
    assert_eq!(serving.refused(), [("unfinished", 1)]);
    let mut open = serving.connect();
    open.write_all(b"user=carol amount=2\nuser=dave amount=20").unwrap();
    serving.wait_until(|figures| figures.messages == 2);
    assert_eq!(serving.stop(), [&b"user=alice amount=1000"[..], b"user=carol amount=2"]);
}

#[test]
fn a_message_that_is_too_long_is_cut_or_ends_its_connection_and_is_counted() {
    let serving = Serving::start("tcp://127.0.0.1:0", |_| ());
    let mut long = serving.connect();
    long.write_all(&[b"before\n".to_vec(), vec![b'x'; 9000], b"\nafter\n".to_vec()].concat())
        .unwrap();
    serving.wait_until(|figures| figures.messages == 3);
    assert_eq!(serving.refused(), []);
    assert_eq!(serving.figures().cut, 1);
    assert_eq!(serving.stop(), [&b"before"[..], &[b'x'; 8 << 10], b"after"]);
    let serving = Serving::start("tcp://127.0.0.1:0?oversize=refuse", |_| ());
    let mut long = serving.connect();
    long.write_all(&[b"before\n".to_vec(), vec![b'x'; 9000], b"\nafter\n".to_vec()].concat())
        .unwrap();
    // The server may have disconnected before it read everything.
    let _ = long.read(&mut [0; 1]);
    serving.wait_until(|figures| figures.refused == 1);
    assert_eq!(serving.stop(), [b"before"]);
}

#[test]
fn the_longest_message_has_room_with_its_stamp() {
    const BYTES: usize = 300 << 10;
    let post = "POST /append HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n";
    let post = format!("{post}Content-Length: {BYTES}\r\n\r\n");
    for (scheme, before, behind, answer) in [
        ("tcp", format!("{BYTES} "), "", ""),
        ("relp", format!("1 open 14 relp_version=0\n2 syslog {BYTES} "), "\n", "2 rsp 6 200"),
        ("http", post, "", "HTTP/1.1 200"),
    ] {
        let frame = if scheme == "tcp" { "&frame=octets" } else { "" };
        let url = format!("{scheme}://127.0.0.1:0?stamp=prefix{frame}");
        let serving = Serving::start(&url, |config| {
            config.limits.message_bytes = BYTES;
            config.logs[0].buffer_bytes = None;
            config.logs[0].options = wrote::Log::options();
        });
        let mut client = serving.connect();
        let message = vec![b'x'; BYTES];
        client.write_all(&[before.as_bytes(), &message, behind.as_bytes()].concat()).unwrap();
        if scheme != "http" {
            client.shutdown(Shutdown::Write).unwrap();
        }
        let mut answered = Vec::new();
        client.read_to_end(&mut answered).unwrap();
        assert!(String::from_utf8(answered).unwrap().contains(answer), "{scheme}");
        assert_eq!(serving.refused(), [], "{scheme}");
        assert_eq!(serving.stop().len(), 1, "{scheme}");
    }
}

#[test]
fn a_stamp_is_part_of_each_record_at_every_door() {
    let length = "Content-Length: 3\r\n\r\n";
    for (scheme, stream, records) in [
        ("tcp", "one\ntwo\n".to_owned(), &["one", "two"][..]),
        ("relp", "1 open 14 relp_version=0\n2 syslog 3 one\n".to_owned(), &["one"]),
        (
            "resp",
            "RPUSH l one two\r\nMULTI\r\nRPUSH l six\r\nEXEC\r\n".to_owned(),
            &["one", "two", "six"],
        ),
        ("http", format!("POST /append HTTP/1.1\r\nHost: localhost\r\n{length}one"), &["one"]),
    ] {
        let serving = Serving::start(&format!("{scheme}://127.0.0.1:0?stamp=prefix"), |_| ());
        let listen = serving.listen.to_string();
        let mut client = serving.connect();
        client.write_all(stream.as_bytes()).unwrap();
        serving.wait_until(|figures| figures.messages == records.len() as u64);
        drop(client);
        let found = serving.stop().into_iter().map(|record| String::from_utf8(record).unwrap());
        for (found, message) in found.zip(records) {
            let (time, rest) = found.split_once(' ').unwrap();
            time.parse::<jiff::Timestamp>().unwrap();
            assert_eq!(rest, format!("127.0.0.1 {listen} - {message}"));
        }
    }
}
