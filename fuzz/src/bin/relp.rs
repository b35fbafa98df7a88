//! A fuzz target: parses RELP sessions, most of them nearly valid. Splitting a session into reads
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
    /// Whether the session begins with a valid opening.
    is_opened: bool,
    pieces: Vec<Piece>,
}

/// A part of a session.
#[derive(Arbitrary, Debug)]
enum Piece {
    /// A message with the next number.
    Message(Vec<u8>),
    /// A frame with arbitrary number and length, and a command that may be a known one.
    Frame { number: u32, command: u8, length: Option<u32>, data: Vec<u8> },
    /// Arbitrary bytes.
    Bytes(Vec<u8>),
}

const COMMANDS: [&str; 6] = ["open", "syslog", "close", "rsp", "starttls", "serverclose"];

fuzz_target!(|input: Input| {
    let mut stream = Vec::new();
    let mut next = 1;
    if input.is_opened {
        stream.extend_from_slice(b"1 open 14 relp_version=0\n");
        next = 2;
    }
    for piece in &input.pieces {
        match piece {
            Piece::Message(data) => {
                put(&mut stream, next, "syslog", data.len(), data);
                next += 1;
            }
            Piece::Frame { number, command, length, data } => {
                let command = COMMANDS[usize::from(*command) % COMMANDS.len()];
                let length = length.map_or(data.len(), |length| length as usize);
                put(&mut stream, *number, command, length, data);
            }
            Piece::Bytes(bytes) => stream.extend_from_slice(bytes),
        }
    }
    let cuts: Vec<_> =
        input.cuts.iter().map(|&(bytes, room)| (usize::from(bytes), usize::from(room))).collect();
    wrote_serve::fuzzing::relp(&stream, &cuts);
});

fn put(stream: &mut Vec<u8>, number: u32, command: &str, length: usize, data: &[u8]) {
    write!(stream, "{number} {command} {length}").expect("memory takes it");
    if !data.is_empty() {
        stream.push(b' ');
    }
    stream.extend_from_slice(data);
    stream.push(b'\n');
}
