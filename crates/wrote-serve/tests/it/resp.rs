//! RESP over sockets: acknowledged messages are kept, and can be read from any sequence on.

use crate::serving::{Serving, socket_path};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use wrote::{Log, SyncPolicy};

/// An answer of RESP2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Line(String),
    Number(i64),
    Bytes(Vec<u8>),
    Nothing,
    List(Vec<Answer>),
}

/// A connection to a server.
pub struct Client(BufReader<TcpStream>);

impl Client {
    pub fn connect(serving: &Serving) -> Client {
        Client::on(serving.connect())
    }

    /// Returns a client that uses an existing connection.
    pub fn on(stream: TcpStream) -> Client {
        Client(BufReader::new(stream))
    }

    /// Sends requests.
    pub fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.get_mut().write_all(bytes)
    }

    /// Reads an answer; `None` after the last one.
    pub fn answer(&mut self) -> Option<Answer> {
        let mut line = String::new();
        if self.0.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        let (kind, rest) = line.trim_end().split_at(1);
        let len = || usize::try_from(rest.parse::<i64>().unwrap()).ok();
        Some(match kind {
            ":" => Answer::Number(rest.parse().unwrap()),
            "$" => len().map_or(Answer::Nothing, |len| {
                let mut bytes = vec![0; len + 2];
                self.0.read_exact(&mut bytes).unwrap();
                bytes.truncate(len);
                Answer::Bytes(bytes)
            }),
            "*" => len().map_or(Answer::Nothing, |len| {
                Answer::List((0..len).map(|_| self.answer().unwrap()).collect())
            }),
            _ => Answer::Line(line.trim_end().to_owned()),
        })
    }

    /// Sends a request of words without spaces, and returns its answer.
    pub fn ask(&mut self, words: &str) -> Answer {
        self.send(format!("{words}\r\n").as_bytes()).unwrap();
        self.answer().unwrap()
    }
}

/// Returns the sequences and records of an XRANGE answer.
fn entries(answer: Answer) -> Vec<(u64, Vec<u8>)> {
    let Answer::List(entries) = answer else { panic!("{answer:?}") };
    let entry = |entry| {
        let Answer::List(parts) = entry else { panic!("{entry:?}") };
        let [Answer::Bytes(id), Answer::List(fields)] = &parts[..] else { panic!("{parts:?}") };
        let Answer::Bytes(value) = &fields[1] else { panic!("{fields:?}") };
        let id = str::from_utf8(id).unwrap().strip_suffix("-1").unwrap();
        (id.parse().unwrap(), value.clone())
    };
    entries.into_iter().map(entry).collect()
}

#[test]
fn every_answered_message_is_there_in_order_after_the_server_ends() {
    const CLIENTS: usize = 8;
    let mut serving = Serving::start("resp://127.0.0.1:0", |config| config.workers = 3);
    let answered = std::thread::scope(|scope| {
        let load = |client: usize| {
            let mut stream = Client::connect(&serving);
            move || {
                let mut answered = 0;
                // The server closes the stream while the client is still sending.
                for window in 0.. {
                    let requests =
                        (0..20).map(|at| format!("RPUSH l {client}:{}\r\n", window * 20 + at));
                    if stream.send(requests.collect::<String>().as_bytes()).is_err() {
                        break;
                    }
                    let answers = (0..20).map_while(|_| stream.answer());
                    let count =
                        answers.filter(|answer| matches!(answer, Answer::Number(_))).count();
                    answered += count;
                    if count < 20 {
                        break;
                    }
                }
                answered
            }
        };
        let clients: Vec<_> = (0..CLIENTS).map(|client| scope.spawn(load(client))).collect();
        serving.wait_until(|figures| figures.acks > 2_000);
        serving.handle().stop();
        clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>()
    });
    serving.end().unwrap();
    let mut next = [0; CLIENTS];
    for record in serving.records() {
        let (client, number) = str::from_utf8(&record).unwrap().split_once(':').unwrap();
        let next = &mut next[client.parse::<usize>().unwrap()];
        assert_eq!(number, next.to_string(), "of client {client}");
        *next += 1;
    }
    assert!(next.iter().zip(&answered).all(|(there, answered)| there >= answered));
}

#[test]
fn reading_from_a_sequence_gives_the_log_across_segments_retention_and_a_restart() {
    let serving = Serving::start("resp://127.0.0.1:0?ack=written", |config| {
        let options = Log::options().sync(SyncPolicy::No).buffers(3);
        config.logs[0].options = options.segment_bytes(64 << 10).retain_bytes(512 << 10);
    });
    let value = |number: u64| format!("{number}-{}", "x".repeat(4000));
    let append = |client: &mut Client, numbers: std::ops::Range<u64>| {
        for number in numbers {
            let answer = client.ask(&format!("XADD log * message {}", value(number)));
            assert_eq!(answer, Answer::Bytes(format!("{number}-1").into_bytes()));
        }
    };
    append(&mut Client::connect(&serving), 0..300);
    let serving = serving.restart();
    let mut client = Client::connect(&serving);
    append(&mut client, 300..500);
    // Retention works in the background, and is complete once the log is closed.
    let serving = serving.restart();
    let mut client = Client::connect(&serving);
    let all = entries(client.ask("XRANGE log - +"));
    let first = all[0].0;
    assert!(first > 0, "retention removed nothing");
    assert_eq!(all.len() as u64, 500 - first);
    assert_eq!(client.ask("XLEN log"), Answer::Number(500 - first as i64));
    for (at, (sequence, record)) in (first..).zip(&all) {
        assert_eq!((*sequence, record), (at, &value(at).into_bytes()));
    }
    // The answer begins with the record after the ID or, if that record was removed, with the first
    // remaining one.
    for (after, expected) in [("0-0".to_owned(), first), (format!("{}-1", first + 7), first + 8)] {
        let answer = client.ask(&format!("XREAD COUNT 5 STREAMS log {after}"));
        let Answer::List(mut streams) = answer else { panic!("{answer:?}") };
        let Some(Answer::List(mut stream)) = streams.pop() else { panic!("{streams:?}") };
        let read = entries(stream.pop().unwrap());
        let sequences: Vec<_> = read.iter().map(|(sequence, _)| *sequence).collect();
        assert_eq!(sequences, (expected..expected + 5).collect::<Vec<_>>());
    }
    assert_eq!(client.ask("XREAD STREAMS log 499-1"), Answer::Nothing);
}

#[test]
fn a_reader_gets_only_what_is_as_safe_as_answers_promise() {
    let (_folder, path) = socket_path();
    // The log does not flush on its own.
    let serving = Serving::start("resp://127.0.0.1:0", |config| {
        config.logs[0].listeners.push(format!("unix://{}", path.display()).parse().unwrap());
    });
    let mut writer = UnixStream::connect(&path).unwrap();
    let mut client = Client::connect(&serving);
    for number in 0..20 {
        writeln!(writer, "{number}").unwrap();
        let answer = client.ask(&format!("XREAD BLOCK 0 STREAMS log {number}-0"));
        assert!(matches!(answer, Answer::List(_)), "{answer:?}");
        let (_, _, durable) = serving.logs().remove(0);
        assert!(durable > number, "{durable}");
    }
    serving.stop();
}

#[test]
fn the_fields_of_an_entry_come_back_with_their_names() {
    let serving = Serving::start("resp://127.0.0.1:0", |_| ());
    let mut client = Client::connect(&serving);
    assert_eq!(client.ask("XADD log * a 1 b 2 a 3"), Answer::Bytes(b"0-1".to_vec()));
    assert_eq!(client.ask("XADD log * only value"), Answer::Bytes(b"1-1".to_vec()));
    let words = |words: &str| {
        Answer::List(words.split(' ').map(|word| Answer::Bytes(word.into())).collect())
    };
    let entry = |id: &str, fields| Answer::List(vec![Answer::Bytes(id.into()), words(fields)]);
    let entries = vec![entry("0-1", "a 1 b 2 a 3"), entry("1-1", "message value")];
    assert_eq!(client.ask("XRANGE log - +"), Answer::List(entries));
    assert_eq!(serving.stop(), [&b"\x1e[\"a\",\"1\",\"b\",\"2\",\"a\",\"3\"]"[..], b"value"]);
}
