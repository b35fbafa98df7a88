//! A fuzz target: parses arbitrary bytes as frames. Splitting the stream into reads differently
//! must give the same messages.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

/// The fuzzer's input.
#[derive(Arbitrary, Debug)]
struct Input {
    /// The length of each piece, and the number of messages for which the log then has room.
    cuts: Vec<(u8, u8)>,
    stream: Vec<u8>,
}

fuzz_target!(|input: Input| {
    let cuts: Vec<_> =
        input.cuts.iter().map(|&(bytes, room)| (usize::from(bytes), usize::from(room))).collect();
    wrote_serve::fuzzing::frames(&input.stream, &cuts);
});
