//! Idempotency keys: resent messages are in the log once.

use crate::http::client::{Answer as Response, Client as Http};
use crate::resp::{Answer, Client as Resp};
use crate::serving::{Serving, address};
use std::io::Write;
use wrote::Format;

const LINES: &str = "one\ntwo\nthree\nfour\n";

fn header(key: &str) -> String {
    format!("Idempotency-Key: {key}\r\n")
}

/// Sends lines with a key on a new connection.
fn post(serving: &Serving, key: &str, lines: &str) -> Response {
    let mut client = Http::connect(serving.address());
    client.post("/append?by=lines&producer=web-1", &header(key), lines.as_bytes())
}

/// Sends the head of a request, and the start of its lines.
fn begin(serving: &Serving, key: &str, lines: &str, sent: &str) -> Http {
    let mut client = Http::connect(serving.address());
    let path = "/append?by=lines&producer=web-1";
    let (key, len) = (header(key), lines.len());
    let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len}\r\n{key}");
    client.send(format!("{head}\r\n{sent}").as_bytes());
    client
}

/// Reads the log over HTTP.
fn read(serving: &Serving) -> String {
    Http::connect(serving.address()).get("/records?from=0&as=lines").text().to_owned()
}

fn id(sequence: u64) -> Answer {
    Answer::Bytes(format!("{sequence}-1").into_bytes())
}

fn error(text: &str) -> Answer {
    Answer::Line(format!("-ERR {text}"))
}

#[test]
fn a_request_that_was_cut_off_is_resumed_by_its_retry() {
    let serving = Serving::http();
    drop(begin(&serving, "a", LINES, "one\ntwo\nthr"));
    serving.wait_until(|figures| figures.messages == 2 && figures.connections == 0);
    let answer = post(&serving, "a", LINES);
    assert_eq!(answer.text(), "{\"appended\":4,\"first\":0,\"next\":4}\n");
    assert_eq!(post(&serving, "a", LINES).text(), answer.text());
    assert_eq!(read(&serving), LINES);
    assert_eq!(serving.figures().messages, 4);
    let first = serving.stop().remove(0);
    let head = b"\x1d[\"web-1\",\"a\",1,";
    assert!(first.starts_with(head) && first.ends_with(b"] one"), "{first:?}");
}

#[test]
fn a_retry_after_a_restart_appends_what_is_missing_and_nothing_else() {
    let serving = Serving::http();
    let answer = post(&serving, "\"whole\"", LINES);
    drop(begin(&serving, "part", "five\nsix\n", "five\nsi"));
    serving.wait_until(|figures| figures.messages == 5 && figures.connections == 0);
    let serving = serving.restart();
    // The key is the same with and without quotes.
    assert_eq!(post(&serving, "whole", LINES).text(), answer.text());
    let answer = post(&serving, "part", "five\nsix\n");
    assert_eq!(answer.text(), "{\"appended\":2,\"first\":4,\"next\":6}\n");
    assert_eq!(serving.figures().messages, 1);
    assert_eq!(read(&serving), format!("{LINES}five\nsix\n"));
}

#[test]
fn other_lines_with_a_key_that_was_used_are_refused_and_more_lines_are_appended() {
    let serving = Serving::http();
    assert_eq!(post(&serving, "a", LINES).code, 200);
    for lines in ["other\n", "one\ntwo\nthree\nother\n", "one\ntwo\n"] {
        let answer = post(&serving, "a", lines);
        assert_eq!(answer.code, 422, "{lines}");
        let because = "the idempotency key was used for other messages";
        assert!(answer.text().contains(because), "{}", answer.text());
    }
    assert_eq!(read(&serving), LINES);
    // As if the first request had been interrupted.
    let answer = post(&serving, "a", &format!("{LINES}five\n"));
    assert_eq!(answer.text(), "{\"appended\":5,\"first\":0,\"next\":5}\n");
    let mut other = Http::connect(serving.address());
    let answer = other.post("/append?producer=web-2", &header("a"), b"of another producer");
    assert_eq!(answer.text(), "{\"appended\":1,\"first\":5,\"next\":6}\n");
}

#[test]
fn a_request_and_its_retry_at_the_same_time_append_each_line_once() {
    let serving = Serving::http();
    let mut slow = begin(&serving, "a", LINES, "one\ntwo\n");
    serving.wait_until(|figures| figures.messages == 2);
    let answer = post(&serving, "a", LINES);
    slow.send(b"three\nfour\n");
    assert_eq!(slow.answer().text(), answer.text());
    let lines: String = (0..2000).map(|number| format!("line {number}\n")).collect();
    let all = std::thread::scope(|scope| {
        let senders: Vec<_> =
            (0..8).map(|_| scope.spawn(|| post(&serving, "b", &lines).text().to_owned())).collect();
        senders.into_iter().map(|sender| sender.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(all.iter().all(|text| *text == "{\"appended\":2000,\"first\":4,\"next\":2004}\n"));
    assert_eq!(read(&serving), format!("{LINES}{lines}"));
    serving.wait_until(|figures| figures.acks == 2004 && figures.unacked == 0);
    assert_eq!((serving.figures().messages, serving.figures().repeated), (2004, 4 + 7 * 2000));
}

#[test]
fn the_last_keys_of_each_producer_are_remembered_also_by_the_next_server() {
    let mut serving = Serving::start("resp://127.0.0.1:0", |config| {
        config.logs[0].idempotent_keys = 3;
    });
    let add = |serving: &Serving, producer: &str, key: u64| {
        let request = format!("XADD log IDMP {producer} {key} * message {producer}-{key}");
        Resp::connect(serving).ask(&request)
    };
    for key in 0..5 {
        assert_eq!(add(&serving, "web", key), id(key));
    }
    assert_eq!(add(&serving, "db", 1), id(5));
    for _ in 0..2 {
        for key in 2..5 {
            assert_eq!(add(&serving, "web", key), id(key));
        }
        serving = serving.restart();
    }
    // Key 1 was forgotten, and now displaces 2.
    assert_eq!((add(&serving, "web", 1), add(&serving, "web", 2)), (id(6), id(7)));
    assert_eq!((add(&serving, "web", 4), add(&serving, "db", 1)), (id(4), id(5)));
    assert_eq!(serving.stop().len(), 8);
}

#[test]
fn a_bad_key_has_one_line_and_appends_nothing() {
    let serving = Serving::http();
    let long = "x".repeat(129);
    let sizes = "a key has 1 to 128 printable ASCII characters, a producer 128 at most";
    for (key, because) in [
        ("", sizes),
        ("\"\"", sizes),
        (&*long, sizes),
        ("a\u{e4}", sizes),
        ("\"open", "Idempotency-Key: the quotes are not closed"),
        ("\"", "Idempotency-Key: the quotes are not closed"),
        ("\"a\\\"b\"", "Idempotency-Key: quotes and backslashes are not taken"),
        ("a\r\nIdempotency-Key: b", "a request has one Idempotency-Key"),
    ] {
        let answer = post(&serving, key, LINES);
        let found: serde_json::Value = serde_json::from_str(answer.text()).unwrap();
        assert_eq!((answer.code, found["error"].as_str()), (400, Some(because)), "{key:?}");
    }
    let path = format!("/append?producer={long}");
    assert_eq!(Http::connect(serving.address()).post(&path, &header("a"), b"b").code, 400);
    assert_eq!(serving.stop().len(), 0);

    let serving = Serving::start("resp://127.0.0.1:0", |_| ());
    let sizes = error("a producer and a key have 1 to 128 printable ASCII characters each");
    let mut client = Resp::connect(&serving);
    assert_eq!(client.ask(&format!("XADD log IDMP web {long} * message a")), sizes);
    assert_eq!(client.ask(&format!("XADD log IDMPAUTO {long} * message a")), sizes);
    let once = error("IDMP and IDMPAUTO stand once");
    assert_eq!(client.ask("XADD log IDMP a b IDMPAUTO a * message a"), once);
    client.send(b"*8\r\n$4\r\nXADD\r\n$1\r\nl\r\n$4\r\nIDMP\r\n$0\r\n\r\n$1\r\nk\r\n").unwrap();
    client.send(b"$1\r\n*\r\n$1\r\nm\r\n$1\r\nv\r\n").unwrap();
    assert_eq!(client.answer(), Some(error("IDMP needs a producer")));
    let id_is_own = "the ID must be *: the log gives the next sequence";
    assert_eq!(client.ask("XADD log IDMP a b 5-1 message a"), error(id_is_own));
    client.ask("MULTI");
    let in_transaction = error("IDMP is not taken in a transaction");
    assert_eq!(client.ask("XADD log IDMP a b * message a"), in_transaction);
    assert_eq!(serving.stop().len(), 0);
}

#[test]
fn a_log_without_keys_refuses_them() {
    for (format, keys) in [(Format::Framed, 0), (Format::Lines, 10)] {
        let change = |config: &mut wrote_serve::Config| {
            config.logs[0].idempotent_keys = keys;
            config.logs[0].options = config.logs[0].options.clone().format(format);
            config.logs[0].listeners.push("resp://127.0.0.1:0".parse().unwrap());
        };
        let serving = Serving::start("http://127.0.0.1:0", change);
        let answer = post(&serving, "a", LINES);
        let because = "this log takes no idempotency keys";
        assert!(answer.code == 400 && answer.text().contains(because), "{answer:?}");
        let stream = crate::serving::connect(&serving.others[0]);
        let answer = Resp::on(stream).ask("XADD log IDMP web 1 * message a");
        assert_eq!(answer, error(because));
        assert_eq!(serving.stop().len(), 0);
    }
}

#[test]
fn a_message_that_looks_like_a_record_with_a_key_is_read_as_it_was_sent() {
    let messages =
        [&b"\x1d[] x"[..], b"\x1d[\"web\",\"1\",1,0] y", b"\x1d", b"\x1d[] \x1d[] ", b"z"];
    let frame = |message: &[u8]| [&(message.len() as u32).to_be_bytes()[..], message].concat();
    for (format, keys) in [(Format::Framed, 10), (Format::Framed, 0), (Format::Lines, 10)] {
        let serving = Serving::start("http://127.0.0.1:0", |config| {
            config.logs[0].idempotent_keys = keys;
            config.logs[0].options = config.logs[0].options.clone().format(format);
            let others = ["resp://127.0.0.1:0", "tcp://127.0.0.1:0?frame=u32", "udp://127.0.0.1:0"];
            config.logs[0].listeners.extend(others.map(|url| url.parse().unwrap()));
        });
        let mut http = Http::connect(serving.address());
        let mut resp = Resp::on(crate::serving::connect(&serving.others[0]));
        let mut tcp = std::net::TcpStream::connect(address(&serving.others[1])).unwrap();
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        for (done, message) in (1..).zip(messages) {
            assert_eq!(http.post("/append", "", message).code, 200);
            let head = format!("*3\r\n$5\r\nRPUSH\r\n$1\r\nl\r\n${}\r\n", message.len());
            resp.send(&[head.as_bytes(), message, b"\r\n"].concat()).unwrap();
            assert!(matches!(resp.answer(), Some(Answer::Number(_))));
            tcp.write_all(&frame(message)).unwrap();
            udp.send_to(message, address(&serving.others[2])).unwrap();
            serving.wait_until(|figures| figures.messages == 4 * done);
        }
        let count = 4 * messages.len() as u64;
        let expected = messages.iter().flat_map(|message| [*message; 4]);
        let answer = http.get(&format!("/records?from=0&limit={count}&as=u32"));
        assert_eq!(answer.body, expected.clone().flat_map(frame).collect::<Vec<_>>());
        let Answer::List(entries) = resp.ask("XRANGE log - +") else { panic!("no entries") };
        let value = |entry: &Answer| match entry {
            Answer::List(parts) => match &parts[1] {
                Answer::List(fields) => fields[1].clone(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        let values = entries.iter().map(value);
        assert!(values.eq(expected.map(|message| Answer::Bytes(message.to_vec()))));
        if keys > 0 && format == Format::Framed {
            // The forged key is new.
            let answer = resp.ask("XADD log IDMP web 1 * message mine");
            assert_eq!(answer, id(count));
        }
    }
}

#[test]
fn xadd_with_a_key_of_its_own_or_made_of_the_message_answers_the_first_id() {
    let serving = Serving::start("resp://127.0.0.1:0", |_| ());
    let ask = |serving: &Serving, words: &str| Resp::connect(serving).ask(words);
    assert_eq!(ask(&serving, "XADD log IDMPAUTO web * message hello"), id(0));
    assert_eq!(ask(&serving, "XADD log * message hello"), id(1));
    assert_eq!(ask(&serving, "XADD log KEEPREF IDMP web 7 MAXLEN ~ 5 * a 1 b 2"), id(2));
    let serving = serving.restart();
    assert_eq!(ask(&serving, "XADD log IDMPAUTO web MAXLEN 5 * message hello"), id(0));
    // As in Redis, messages with the same key count as equal.
    assert_eq!(ask(&serving, "XADD log IDMP web 7 * message other"), id(2));
    assert_eq!(ask(&serving, "XADD log IDMPAUTO web * message other"), id(3));
    assert_eq!(ask(&serving, "XADD log IDMPAUTO db * message hello"), id(4));
    assert_eq!((serving.figures().messages, serving.figures().repeated), (2, 2));
    let fields = ["a", "1", "b", "2"].map(|word| Answer::Bytes(word.into()));
    let entry = Answer::List(vec![id(2), Answer::List(fields.to_vec())]);
    assert_eq!(ask(&serving, "XRANGE log 2 2"), Answer::List(vec![entry]));
}

#[test]
fn a_buffer_that_lacks_room_for_a_key_refuses_the_longest_messages_with_one_alone() {
    let serving = Serving::start("http://127.0.0.1:0", |config| {
        config.limits.message_bytes = (16 << 10) - 200;
    });
    let message = vec![b'x'; (16 << 10) - 200];
    let mut client = Http::connect(serving.address());
    let answer = client.post("/append?by=body", &header(&"k".repeat(128)), &message);
    assert!(answer.code == 400 && answer.text().contains("buffer"), "{}", answer.text());
    let mut client = Http::connect(serving.address());
    assert_eq!(client.post("/append?by=body", "", &message).code, 200);
    assert_eq!(serving.stop(), [message]);
}
