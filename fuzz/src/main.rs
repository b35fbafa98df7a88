//! Damages a log in every way that a fuzzer comes upon, and holds what is read against what was written.
//!
//! The fuzzer's input is not the log: it says how long a valid one is, and what is then done to its files.
//! Whatever is done, a record that comes out must be the one that was written with its sequence, none may
//! be missing between two, and the end may be silent only where nothing behind it says that the next
//! record was durable. Headers with wild contents and right checksums are tried too; of those only the
//! first half holds: no panic, no memory without bound, no end that is never reached.
//!
//! `cargo xtask fuzz` builds and runs it.

#![no_main]

mod check;
mod edit;
mod folder;
mod layout;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

/// What the fuzzer's bytes say.
#[derive(Arbitrary, Debug)]
struct Input {
    shape: layout::Shape,
    edits: Vec<edit::Edit>,
    /// Whether the log is opened for writing afterwards, or repaired.
    then: Then,
}

/// What is done with a damaged log after it was read.
#[derive(Arbitrary, Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Nothing,
    Open,
    Repair,
}

fuzz_target!(|input: Input| {
    if std::env::var_os("WROTE_FUZZ_SHOW").is_some() {
        eprintln!("{input:#?}");
    }
    // The smallest block there may be, so that much happens in few bytes; the one that is written where the
    // log is to go on.
    let block_bytes = if input.then == Then::Open { 4096 } else { 512 };
    let log = layout::build(&input.shape, block_bytes);
    let mut files = log.files.clone();
    let is_forged = edit::apply(&mut files, &log, &input.edits);
    let truth = check::Truth::new(&log, &files, is_forged);
    folder::with(&files, |folder| {
        check::read(folder, &truth);
        match input.then {
            Then::Nothing => {}
            Then::Open => check::open(folder, &truth),
            Then::Repair => check::repair_and_read(folder, &truth),
        }
    });
});
