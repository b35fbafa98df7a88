//! A fuzz target: damages a log, and compares the records read with the written ones.
//!
//! The fuzzer's input is not the log. It describes the length of a valid log and the edits of its
//! files. After any edit, a record read must be the one written with its sequence. No record may be
//! missing between two. The end may be silent only if no later byte shows that the next record was
//! durable. Headers with wild contents and valid checksums are tried too. For those only three
//! things hold: no panic, no memory without bound, no endless loop.
//!
//! `cargo xtask fuzz` builds and runs it.

#![no_main]

mod check;
mod edit;
mod folder;
mod layout;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

/// The fuzzer's bytes.
#[derive(Arbitrary, Debug)]
struct Input {
    shape: layout::Shape,
    edits: Vec<edit::Edit>,
    /// Whether the log is then opened for writing, or repaired.
    then: NextStep,
}

/// The action on a damaged log after reading it.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
enum NextStep {
    Nothing,
    Open,
    Repair,
}

fuzz_target!(|input: Input| {
    if std::env::var_os("WROTE_FUZZ_SHOW").is_some() {
        eprintln!("{input:#?}");
    }
    // The smallest possible block, so that much happens in few bytes. A log that continues needs
    // the block size of a writer.
    let block_bytes = if input.then == NextStep::Open { 4096 } else { 512 };
    let log = layout::build(&input.shape, block_bytes);
    let mut files = log.files.clone();
    let is_forged = edit::apply(&mut files, &log, &input.edits);
    let truth = check::Truth::new(&log, &files, is_forged);
    folder::with(&files, |folder| check::check(folder, &truth, &files, input.then));
});
