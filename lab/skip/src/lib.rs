//! How a test says that it could not run here, so that the gap is seen.

#![forbid(unsafe_code)]

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

/// Says that `test` could not run here, and why: a line `SKIPPED: test: reason` on standard error,
/// and the same line at the end of the file that `WROTE_SKIPS_FILE` names, where it names one.
///
/// # Panics
///
/// Where `WROTE_REQUIRE_ALL=1` forbids skipping, and where the line cannot be written: a gap that
/// nobody hears of is not to pass.
pub fn skip(test: &str, reason: &str) {
    let required = std::env::var_os("WROTE_REQUIRE_ALL").is_some_and(|value| value == "1");
    assert!(!required, "{test} was to run, but: {reason}");
    let line = line(test, reason);
    // Not `eprintln!`, whose text the test harness keeps to itself when a test passes.
    io::stderr().write_all(line.as_bytes()).expect("standard error takes a line");
    if let Some(file) = std::env::var_os("WROTE_SKIPS_FILE") {
        append(file.as_ref(), &line).expect("the file that WROTE_SKIPS_FILE names takes a line");
    }
}

fn line(test: &str, reason: &str) -> String {
    let words: Vec<&str> = reason.split_whitespace().collect();
    format!("SKIPPED: {test}: {}\n", words.join(" "))
}

/// Adds a line in one write, so that lines of tests that run at once do not mix.
fn append(file: &Path, line: &str) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).open(file)?.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_of_several_lines_is_told_on_one() {
        let told = line("a_test", "mkfs.xfs: no such\n  device\n");
        assert_eq!(told, "SKIPPED: a_test: mkfs.xfs: no such device\n");
    }

    #[test]
    fn lines_are_added_to_those_that_are_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("skips");
        append(&file, "one\n").expect("a line");
        append(&file, "two\n").expect("a line");
        assert_eq!(std::fs::read_to_string(&file).expect("the file"), "one\ntwo\n");
    }
}
