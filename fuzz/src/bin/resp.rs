//! A fuzz target: parses RESP requests, most of them nearly valid. Splitting a stream into reads
//! differently must give the same messages and responses.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use std::io::Write;

/// The fuzzer's input.
#[derive(Arbitrary, Debug)]
struct Input {
    /// The length of each piece, and the number of messages for which the log then has room.
    cuts: Vec<(u8, u8)>,
    pieces: Vec<Piece>,
}

/// A part of a stream.
#[derive(Arbitrary, Debug)]
enum Piece {
    /// A record, added by XADD.
    Add(Vec<u8>),
    /// Records, added by RPUSH.
    Push(Vec<Vec<u8>>),
    /// A command that may be a known one, with its words and a count that may be wrong.
    Command { name: u8, words: Vec<Vec<u8>>, count: Option<u32>, is_typed: bool },
    /// Arbitrary bytes.
    Bytes(Vec<u8>),
}

const COMMANDS: [&[u8]; 20] = [
    b"XADD", b"RPUSH", b"lpush", b"XLEN", b"LLEN", b"XRANGE", b"XREAD", b"PING", b"ECHO", b"HELLO",
    b"SELECT", b"CLIENT", b"COMMAND", b"CONFIG", b"INFO", b"RESET", b"QUIT", b"AUTH", b"POST",
    b"HOST:",
];

fuzz_target!(|input: Input| {
    let mut stream = Vec::new();
    for piece in &input.pieces {
        match piece {
            Piece::Add(value) => {
                put(&mut stream, &[b"XADD", b"key", b"*", b"field", value], None);
            }
            Piece::Push(values) => {
                let values = values.iter().map(Vec::as_slice);
                let words: Vec<_> = [&b"RPUSH"[..], b"key"].into_iter().chain(values).collect();
                put(&mut stream, &words, None);
            }
            Piece::Command { name, words, count, is_typed } => {
                let name = COMMANDS[usize::from(*name) % COMMANDS.len()];
                let words = words.iter().map(Vec::as_slice);
                let words: Vec<_> = [name].into_iter().chain(words).collect();
                if *is_typed {
                    stream.extend_from_slice(&words.join(&b' '));
                    stream.extend_from_slice(b"\r\n");
                } else {
                    put(&mut stream, &words, *count);
                }
            }
            Piece::Bytes(bytes) => stream.extend_from_slice(bytes),
        }
    }
    let cuts: Vec<_> =
        input.cuts.iter().map(|&(bytes, room)| (usize::from(bytes), usize::from(room))).collect();
    wrote_serve::fuzzing::resp(&stream, &cuts);
});

fn put(stream: &mut Vec<u8>, words: &[&[u8]], count: Option<u32>) {
    let count = count.unwrap_or(words.len() as u32);
    write!(stream, "*{count}\r\n").expect("memory takes it");
    for word in words {
        write!(stream, "${}\r\n", word.len()).expect("memory takes it");
        stream.extend_from_slice(word);
        stream.extend_from_slice(b"\r\n");
    }
}
