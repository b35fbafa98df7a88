//! Tests that `wrote language-program` follows the protocol of `langs/README.md`, like the program
//! of any language.

use crate::support::wrote;
use fixtures::{Finished, finish, folder, names};
use serde_json::Value;
use std::fs;
use std::path::Path;

fn program(task: &str, path: &Path, more: &str) -> Finished {
    let mut command = wrote(&["language-program", task]);
    finish(command.arg(path).args(more.split(' ')))
}

/// Returns the answer of a run, which must succeed with one line with these keys, and with nothing
/// on standard error.
fn answer(finished: &Finished, keys: &[&str]) -> Value {
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    assert_eq!(finished.stdout.lines().count(), 1, "{finished:?}");
    let answer: Value = serde_json::from_str(&finished.stdout).expect("a line of JSON");
    let mut found: Vec<&String> = answer.as_object().expect("an object").keys().collect();
    found.sort();
    assert_eq!(found, keys);
    answer
}

fn timings(answer: &Value) -> usize {
    let timings = answer["elapsed_ns"].as_array().expect("a list");
    assert!(timings.iter().all(Value::is_u64), "{answer}");
    timings.len()
}

fn letters(len: usize) -> String {
    ('a'..='z').cycle().take(len).collect()
}

#[test]
fn bytes_are_written_one_at_a_time_and_all_of_them_read() {
    let folder = folder();
    let path = folder.path().join("bytes");
    for way in ["1000003 2", "1000003 2 cached"] {
        fs::write(&path, "what is there is replaced").unwrap();
        let wrote = answer(&program("bytes-write", &path, way), &["bytes", "elapsed_ns"]);
        assert_eq!((wrote["bytes"].as_u64(), timings(&wrote)), (Some(1_000_003), 2));
        let content: Vec<u8> = (0..1_000_003).map(|number| number as u8).collect();
        assert!(fs::read(&path).unwrap() == content, "{way}");

        let read = answer(&program("bytes-read", &path, "5 3"), &["bytes", "elapsed_ns", "sum"]);
        let sum = content.iter().copied().map(u64::from).sum::<u64>();
        assert_eq!((read["bytes"].as_u64(), timings(&read)), (Some(1_000_003), 3));
        assert_eq!(read["sum"].as_u64(), Some(sum));
    }
    assert_eq!(names(folder.path()), ["bytes"]);
}

#[test]
fn a_text_is_saved_in_place_of_what_is_there() {
    let folder = folder();
    let path = folder.path().join("text");
    for task in ["save", "save-sync"] {
        for len in [10_000, 500] {
            let finished = program(task, &path, &format!("{len} 5"));
            let saved = answer(&finished, &["bytes", "elapsed_ns"]);
            assert_eq!((saved["bytes"].as_u64(), timings(&saved)), (Some(len as u64), 5));
            assert_eq!(fs::read_to_string(&path).unwrap(), letters(len), "{task}");
        }
    }
    assert_eq!(names(folder.path()), ["text"]);
}

#[test]
fn lines_come_behind_what_is_there() {
    for way in ["64 3000", "64 3000 cached"] {
        let folder = folder();
        let path = folder.path().join("lines");
        fs::write(&path, "the first\n").unwrap();
        let appended = answer(&program("lines", &path, way), &["bytes", "elapsed_ns"]);
        assert_eq!((appended["bytes"].as_u64(), timings(&appended)), (Some(192_000), 1));
        let lines = (letters(63) + "\n").repeat(3000);
        assert!(fs::read_to_string(&path).unwrap() == format!("the first\n{lines}"), "{way}");
    }
}

#[test]
fn an_impossible_task_is_an_error_in_one_line() {
    let folder = folder();
    let path = folder.path().join("no/file");
    for task in ["bytes-write", "bytes-read", "save", "save-sync", "lines"] {
        let finished = program(task, &path, "10 1");
        assert_eq!(finished.code(), Some(1), "{task}");
        assert!(finished.complaint().contains("no/file: open: No such file"), "{finished:?}");
    }
    for (task, more) in
        [("fly", "1 1"), ("save", "1"), ("save", "0 1"), ("save", "1 x"), ("save", "1 1 fast")]
    {
        let finished = program(task, &path, more);
        assert_eq!(finished.code(), Some(1), "{task} {more}");
        finished.complaint();
    }
}

#[test]
fn it_is_no_part_of_what_a_person_is_offered() {
    for asked in ["--help", "man", "completions bash", "completions zsh"] {
        let words: Vec<&str> = asked.split(' ').collect();
        let finished = finish(&mut wrote(&words));
        assert!(finished.stdout.contains("bench"), "{asked}: {finished:?}");
        assert!(!finished.stdout.contains("language-program"), "{asked}");
    }
}
