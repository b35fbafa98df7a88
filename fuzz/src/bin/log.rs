//! A fuzz target: damages a log, and judges what the library does with it.
//!
//! The fuzzer's input is not the log but a trial of `lab::damage`: the shape of a valid log, the
//! edits of its files, and the step after reading it. Headers with wild contents and valid
//! checksums are tried too. For those only three things hold: no panic, no memory without bound, no
//! endless loop.
//!
//! `cargo xtask fuzz` builds and runs it.

#![no_main]

use lab::damage::{Original, Trial, written};
use libfuzzer_sys::fuzz_target;
use std::path::Path;
use std::sync::LazyLock;
use tempfile::TempDir;

/// A folder, in memory where the machine has such a file system, and the logs that the library
/// wrote.
static PREPARED: LazyLock<(TempDir, Vec<Original>)> = LazyLock::new(|| {
    let memory = tempfile::tempdir_in(Path::new("/dev/shm"));
    let folder = memory.or_else(|_| tempfile::tempdir()).expect("a temporary folder");
    let written = written(folder.path()).expect("logs");
    (folder, written)
});

fuzz_target!(|trial: Trial| {
    if std::env::var_os("WROTE_FUZZ_SHOW").is_some() {
        eprintln!("{trial:#?}");
    }
    let (folder, written) = &*PREPARED;
    if let Err(because) = trial.run(&folder.path().join("log"), written) {
        panic!("{because}");
    }
});
