//! Tests that no subcommand prints a file name's escape or line feed to a terminal.

use crate::support::wrote;
use fixtures::{finish, folder};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs;
use std::path::Path;

/// The second line of the name. No other text contains a line that begins with this.
const SECOND_LINE: &str = "^second";
/// The minimum width to which text is wrapped.
const WRAPPED_MIN: usize = 70;
const NAME: &str = "a\u{1b}[2J\u{7}\n^second";

/// Creates a folder in which everything has such a name.
fn place() -> tempfile::TempDir {
    let folder = folder();
    let hostile = folder.path().join(NAME);
    fs::create_dir(&hostile).expect("a folder");
    mknodat(CWD, hostile.join(NAME), FileType::Fifo, Mode::RUSR, 0).expect("a pipe");
    fs::create_dir(hostile.join(".wrote-dead00")).expect("a folder");
    let log = wrote::Log::options().open(hostile.join("log")).expect("a log");
    log.append(b"one").expect("room").wait().expect("durable");
    log.close().expect("closed");
    let job = format!("[{}]\nrw=write\nsize=64k\nbs=4k\n", NAME.replace('\n', ""));
    fs::write(hostile.join("jobs.fio"), job).expect("a file");
    let result = serde_json::to_string(&fixtures::samples::document()).expect("JSON");
    fs::write(hostile.join("result.json"), result).expect("a file");
    folder
}

/// Asserts that neither stream contains a character that a terminal obeys, and that each error,
/// note and announcement is a single line.
fn assert_harmless(folder: &Path, arguments: &str) {
    let words = arguments.split(' ').map(|word| word.replace('@', NAME));
    let words: Vec<String> = words.collect();
    let finished = finish(wrote(&words).current_dir(folder));
    let is_obeyed = |letter: char| letter.is_control() && letter != '\n';
    for text in [&finished.stdout, &finished.stderr] {
        assert!(!text.contains(is_obeyed), "{arguments}: {finished:?}");
        let mut pairs = text.lines().zip(text.lines().skip(1));
        assert!(!pairs.any(is_broken_by_the_name), "{arguments}: {finished:?}");
    }
    assert!(finished.stdout.len() + finished.stderr.len() > 0, "{arguments}");
}

/// Returns whether a line ended at the line feed of the name. Text that was wrapped at this point
/// would have had no room for the next word.
fn is_broken_by_the_name((before, line): (&str, &str)) -> bool {
    let word = line.split(' ').next().unwrap_or_default();
    line.starts_with(SECOND_LINE) && before.len() + " ".len() + word.len() <= WRAPPED_MIN
}

#[test]
fn no_verb_sends_a_name_to_the_terminal_that_the_terminal_would_obey() {
    let folder = place();
    for arguments in [
        "copy @/none to",
        "copy @/result.json @/log",
        "run --check @/jobs.fio --directory @",
        "run --section none @/jobs.fio",
        "run @/jobs.fio --directory @",
        "run @/jobs.fio --directory @ --format csv",
        "run --check @/jobs.fio --directory @",
        "run @",
        "run @/jobs.fio --directory @/none",
        "compare @/result.json @/result.json",
        "compare @/result.json @/result.json --format csv",
        "compare @/none @/result.json",
        "compare @ @/result.json",
        "bench @/result.json",
        "bench --within 3s @/none",
        "bench --only @ .",
        "bench --output @/result.json .",
        "doctor @",
        "doctor @/none",
        "langs @/result.json",
        "langs --add @ .",
        "log stat @/log",
        "log stat @",
        "log cat @",
        "log verify @/log",
        "log verify @",
        "log append @/result.json",
        "log repair @/none",
        "clean @",
        "clean @/none",
        "@",
    ] {
        assert_harmless(folder.path(), arguments);
    }
}
