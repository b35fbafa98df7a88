//! A fuzz target: parses any bytes as frames, and compares the messages of one stream however it is
//! cut into reads.

#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

/// The fuzzer's bytes.
#[derive(Arbitrary, Debug)]
struct Input {
    /// Lengths of the pieces, and the messages for which the log has room then.
    cuts: Vec<(u8, u8)>,
    stream: Vec<u8>,
}

fuzz_target!(|input: Input| {
    let cuts: Vec<_> =
        input.cuts.iter().map(|&(bytes, room)| (usize::from(bytes), usize::from(room))).collect();
    wrote_serve::fuzzing::frames(&input.stream, &cuts);
});
