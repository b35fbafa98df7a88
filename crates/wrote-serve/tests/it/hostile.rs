//! Clients that tie up resources: silent or slow ones, with half a message or with unread answers.

use crate::resp::{Answer, Client};
use crate::serving::{Serving, connect, tokens};
use crate::warnings;
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Duration;
use wrote_serve::Config;

const EACH: usize = 10;

/// The first bytes of each kind of client: half a message, invalid bytes, and two beginnings that
/// [`never_reads`] and [`drips`] continue.
const BEGINNINGS: [&[u8]; 4] =
    [b"*3\r\n$5\r\nRPUSH\r\n$1\r\nl\r\n$100\r\nhalf", b"\x16\x03\x01\n", b"PING\r\n", b"*"];

/// Sends requests until disconnected, without ever reading an answer.
fn never_reads(mut stream: TcpStream) {
    stream.set_nonblocking(true).unwrap();
    let request = format!("*2\r\n$4\r\nECHO\r\n$4000\r\n{}\r\n", "x".repeat(4000));
    let mut at = 0;
    loop {
        match stream.write(&request.as_bytes()[at..]) {
            Ok(bytes) => at = (at + bytes) % request.len(),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                thread::sleep(Duration::from_millis(20));
            }
            // The client was disconnected.
            Err(_) => return,
        }
    }
}

/// Sends the rest of a request byte by byte until disconnected.
fn drips(mut stream: TcpStream) {
    let request = format!("3\r\n$5\r\nRPUSH\r\n$1\r\nl\r\n$8000\r\n{}", "x".repeat(8000));
    for byte in request.as_bytes() {
        if stream.write_all(&[*byte]).is_err() {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn each_is_let_go_with_its_reason_and_the_others_are_served() {
    let impatient = |config: &mut Config| {
        config.limits.message_time = Duration::from_secs(1);
        config.limits.unread_time = Duration::from_secs(1);
    };
    let (mut hostile, mut good) = (Vec::new(), None);
    // The first bytes of these clients arrive before the server starts its timers.
    let serving = Serving::start_after("resp://127.0.0.1:0", impatient, |listen, _| {
        hostile.extend(BEGINNINGS.map(|beginning| {
            let begun = |_| {
                let mut stream = connect(listen);
                stream.write_all(beginning).unwrap();
                stream
            };
            (0..EACH).map(begun).collect::<Vec<_>>()
        }));
        good.insert(Client::on(connect(listen))).send(b"RPUSH l 1\r\n").unwrap();
    });
    let mut good = good.expect("it is connected");
    thread::scope(|scope| {
        for hold in [drips, never_reads] {
            hostile.pop().into_iter().flatten().for_each(|stream| {
                scope.spawn(move || hold(stream));
            });
        }
        assert_eq!(good.answer(), Some(Answer::Number(1)));
        for number in 2..=500 {
            assert_eq!(good.ask(&format!("RPUSH l {number}")), Answer::Number(number));
        }
        serving.wait_until(|figures| figures.connections == 1);
        assert_eq!(good.ask("RPUSH l 501"), Answer::Number(501));
    });
    let refused: BTreeMap<_, _> = serving.refused().into_iter().collect();
    let each = EACH as u64;
    // These are the half messages, and the messages sent byte by byte.
    assert_eq!(refused["message_time"], 2 * each);
    assert_eq!(refused["unread_time"], each);
    assert_eq!(refused["malformed"], each);
    assert_eq!(serving.stop().len(), 501);
}

#[test]
fn a_client_that_connects_early_is_kept_and_silent_ones_go_where_connections_are_short() {
    let serving = Serving::start("resp://127.0.0.1:0", |config| {
        config.limits.connections = 8;
        config.limits.first_byte = Duration::from_millis(50);
    });
    let mut early = Client::connect(&serving);
    thread::sleep(Duration::from_millis(300));
    assert_eq!(early.ask("RPUSH l 1"), Answer::Number(1));
    let silent: Vec<_> = (0..6).map(|_| serving.connect()).collect();
    // Seven of eight connections are in use until the first of these clients is disconnected.
    serving.wait_until(|figures| figures.refused > 0 && figures.connections < 7);
    assert_eq!(serving.refused().first().map(|(reason, _)| *reason), Some("first_byte"));
    assert_eq!(early.ask("RPUSH l 2"), Answer::Number(2));
    drop(silent);
    assert_eq!(serving.stop().len(), 2);
}

#[test]
fn connections_above_the_limit_are_closed_and_counted_and_the_others_stay() {
    warnings::collect();
    let serving = Serving::start("resp://127.0.0.1:0", |config| config.limits.connections = 5);
    let mut clients: Vec<_> = (0..5).map(|_| Client::connect(&serving)).collect();
    for client in &mut clients {
        assert_eq!(client.ask("PING"), Answer::Line("+PONG".into()));
    }
    for _ in 0..20 {
        assert_eq!(serving.connect().read(&mut [0; 1]).unwrap_or(0), 0);
    }
    serving.wait_until(|figures| figures.refused == 20);
    assert_eq!(serving.refused(), [("connections", 20)]);
    // At most one line is logged every five seconds.
    let line = format!("{}: 127.0.0.1: too many connections (connections: 5)", serving.listen);
    let lines = warnings::about(&serving.listen.to_string());
    assert!(lines[0] == line && lines.len() < 20, "{lines:?}");
    for client in &mut clients {
        assert_eq!(client.ask("PING"), Answer::Line("+PONG".into()));
    }
    clients.pop();
    serving.wait_until(|figures| figures.connections == 4);
    assert_eq!(Client::connect(&serving).ask("PING"), Answer::Line("+PONG".into()));
}

// W8
#[test]
fn bytes_of_unfinished_messages_are_bounded_in_all() {
    let serving = Serving::start("tcp://127.0.0.1:0", |config| {
        config.limits.in_flight_bytes = 64 << 10;
    });
    let half = || {
        let mut stream = serving.connect();
        stream.write_all(&[b'x'; 4 << 10]).unwrap();
        stream
    };
    let halves: Vec<_> = (0..50).map(|_| half()).collect();
    // There is room for 16 of these clients.
    serving.wait_until(|figures| figures.refused == 34 && figures.connections == 16);
    assert_eq!(serving.refused(), [("in_flight_bytes", 34)]);
    drop(halves);
    serving.wait_until(|figures| figures.connections == 0);
    let before = serving.figures().messages;
    let mut good = serving.connect();
    good.write_all(b"with room again\n").unwrap();
    serving.wait_until(|figures| figures.messages == before + 1);
    assert_eq!(serving.stop().last().unwrap(), b"with room again");
}

// W8
#[test]
fn the_places_of_the_words_of_a_request_are_bytes_in_flight_and_none_are_kept() {
    const WORDS: usize = 20_000;
    let serving = Serving::start("resp://127.0.0.1:0", |_| ());
    let mut client = Client::connect(&serving);
    let head = format!("*{}\r\n$3\r\nFOO\r\n", WORDS + 1);
    let words = "$0\r\n\r\n".repeat(WORDS - 1);
    client.send(&[head, words].concat().into_bytes()).unwrap();
    // Each word needs two numbers in addition to its bytes.
    let bytes = (WORDS * (6 + 16)) as u64;
    serving.wait_until(|figures| figures.in_flight_bytes > bytes);
    client.send(b"$0\r\n\r\n").unwrap();
    assert!(matches!(client.answer(), Some(Answer::Line(line)) if line.starts_with("-ERR")));
    serving.wait_until(|figures| figures.in_flight_bytes == 0);
    assert_eq!(client.ask("PING"), Answer::Line("+PONG".into()));
    serving.stop();
}

#[test]
fn a_client_that_is_gone_or_a_server_that_ends_waits_for_no_answer() {
    const PINGS: usize = 60_000;
    let serving = Serving::start("resp://127.0.0.1:0", |_| ());
    let block = b"XREAD BLOCK 0 STREAMS log $\r\n";
    let mut full = serving.connect();
    full.write_all(&[&block[..], &b"PING\r\n".repeat(PINGS)].concat()).unwrap();
    // The second read, of 128 KiB, is the last one.
    serving.wait_until(|figures| figures.in_flight_bytes > 140_000);
    drop(full);
    serving.wait_until(|figures| figures.connections == 0);
    let mut full = serving.connect();
    full.write_all(&[&block[..], &b"PING\r\n".repeat(PINGS)].concat()).unwrap();
    serving.wait_until(|figures| figures.in_flight_bytes > 140_000);
    let reader = thread::spawn(move || {
        let mut answers = Vec::new();
        full.read_to_end(&mut answers).unwrap();
        answers
    });
    serving.stop();
    assert_eq!(reader.join().unwrap(), b"+PONG\r\n".repeat(PINGS));
}

#[test]
fn clients_without_a_token_keep_out_none_that_has_one() {
    let (_folder, tokens) = tokens("secret\n");
    let serving = Serving::start("resp://127.0.0.1:0", |config| {
        config.access.token_file = Some(tokens);
        config.limits.in_flight_bytes = 64 << 10;
    });
    let mut good = Client::connect(&serving);
    assert_eq!(good.ask("AUTH secret"), Answer::Line("+OK".into()));
    let strangers: Vec<_> = (0..40)
        .map(|_| {
            let mut stream = serving.connect();
            let half = format!("*2\r\n$4\r\nAUTH\r\n$4000\r\n{}", "x".repeat(2000));
            stream.write_all(half.as_bytes()).unwrap();
            stream
        })
        .collect();
    // Such clients may use a sixteenth of the memory.
    serving.wait_until(|figures| figures.refused == 38 && figures.connections == 3);
    assert!(serving.figures().in_flight_bytes <= 4 << 10);
    good.send(format!("RPUSH l {}", "y".repeat(7000)).as_bytes()).unwrap();
    serving.wait_until(|figures| figures.in_flight_bytes > 7000);
    good.send(b"\r\n").unwrap();
    assert_eq!(good.answer(), Some(Answer::Number(1)));
    drop(strangers);
    serving.stop();
}

#[test]
fn each_kind_of_refusal_is_a_line_that_names_the_client_and_the_limit() {
    warnings::collect();
    let serving = Serving::start("tcp://127.0.0.1:0", |_| ());
    let listen = serving.listen.to_string();
    let mut stream = serving.connect();
    stream.write_all(&[b"\n".as_slice(), &[b'x'; 9000], b"\nGET\n"].concat()).unwrap();
    serving.wait_until(|figures| figures.messages == 2);
    assert_eq!(
        warnings::about(&listen),
        [format!("{listen}: 127.0.0.1: a message was cut (message_bytes: 8192)")]
    );
    let mut page = serving.connect();
    page.write_all(b"POST / HTTP/1.1\r\n").unwrap();
    serving.wait_until(|figures| figures.refused == 1);
    let lines = warnings::about("HTTP came to a listener of frames; it holds 17 bytes");
    assert!(lines.iter().any(|line| line.starts_with(&listen)), "{lines:?}");
    serving.stop();
}

#[test]
fn a_counted_message_that_its_client_cut_is_told_with_the_bytes_that_came() {
    warnings::collect();
    let serving = Serving::start("tcp://127.0.0.1:0", |_| ());
    let mut cut = serving.connect();
    cut.write_all(b"5 <13>a17 <13>cut").unwrap();
    cut.shutdown(Shutdown::Write).unwrap();
    serving.wait_until(|figures| figures.refused == 1);
    let lines = warnings::about("the stream ended inside a message; it holds 10 bytes");
    let listen = serving.listen.to_string();
    assert!(lines.iter().any(|line| line.starts_with(&listen)), "{lines:?}");
    assert_eq!(serving.stop(), [b"<13>a"]);
}
