//! Tests of `wrote log tail`: the last records, and new ones.

use super::place::{append, lines, log, open, place, place_with_times, read, said};
use fixtures::{Running, finish, folder};
use rustix::process::Signal;
use std::fs;
use std::io::Write;
use std::ops::Range;
use std::path::Path;
use std::process::Stdio;

#[test]
fn tail_begins_with_a_time_and_follows_from_there() {
    let (folder, times) = place_with_times();
    let first = times.iter().position(|time| *time >= times[20]).expect("a record") as u64;
    let since = format!("--since {} events", times[20]);
    assert_eq!(said(folder.path(), &format!("tail {since}")), lines(first..30));
    let (mut reader, output) = std::io::pipe().expect("a pipe");
    let mut command = log(folder.path(), &format!("tail -f {since}"));
    let mut running = Running::start(command.stdout(output));
    drop(command);
    assert_eq!(read(&mut reader, 30 - first as usize), lines(first..30));
    let writer = open(folder.path());
    append(&writer, 30..35);
    assert_eq!(read(&mut reader, 5), lines(30..35));
    running.send(Signal::INT);
    assert_eq!(running.finish().code(), Some(130));
}

#[test]
fn tail_prints_the_last_records() {
    let folder = place(500);
    let said = |arguments: &str| said(folder.path(), &format!("tail {arguments} events"));
    assert_eq!(said(""), lines(490..500));
    assert_eq!(said("-n 300"), lines(200..500));
    assert_eq!(said("-n 501"), lines(0..500));
    assert_eq!(said("-n 0"), "");
    assert_eq!(said("--from 498"), lines(498..500));
}

#[test]
fn tail_follows_what_is_appended_until_it_is_interrupted_and_says_no_word() {
    let folder = folder();
    let writer = open(folder.path());
    append(&writer, 0..20);
    let (mut reader, output) = std::io::pipe().expect("a pipe");
    let mut command = log(folder.path(), "tail -f events");
    let mut running = Running::start(command.stdout(output));
    drop(command);
    assert_eq!(read(&mut reader, 10), lines(10..20));
    // These are enough records for new segments to begin while records are read.
    append(&writer, 20..1000);
    assert!(read(&mut reader, 980) == lines(20..1000));
    append(&writer, 1000..1001);
    assert_eq!(read(&mut reader, 1), lines(1000..1001));
    running.send(Signal::INT);
    let finished = running.finish();
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(130), ""));
}

#[test]
fn tail_waits_for_a_log_that_another_process_makes_where_it_is_told_to_retry() {
    let folder = folder();
    for arguments in ["tail -f new/events", "tail new/events"] {
        assert_eq!(finish(&mut log(folder.path(), arguments)).code(), Some(2), "{arguments}");
    }
    let (mut reader, output) = std::io::pipe().expect("a pipe");
    let mut command = log(folder.path(), "tail -F -n 3 new/events");
    let mut running = Running::start(command.stdout(output));
    drop(command);
    // If the log had existed when the command started, it would print the last three records.
    let files = format!("/proc/{}/fd", running.id());
    running.until("it watches for the log", || {
        let files = fs::read_dir(&files).ok()?.flatten();
        let mut links = files.filter_map(|file| fs::read_link(file.path()).ok());
        links.any(|link| link.to_string_lossy().contains("eventfd")).then_some(())
    });
    fs::create_dir(folder.path().join("new")).expect("a folder");
    for numbers in [0..100, 100..101, 101..500] {
        append_by_process(folder.path(), "new/events", numbers.clone());
        assert_eq!(read(&mut reader, numbers.clone().count()), lines(numbers));
    }
    running.send(Signal::INT);
    let finished = running.finish();
    assert_eq!((finished.code(), finished.stderr.as_str()), (Some(130), ""));
}

#[test]
fn tail_that_retries_follows_the_next_log_when_the_folder_was_renamed_or_removed() {
    let folder = folder();
    append_by_process(folder.path(), "events", 0..10);
    let (mut reader, output) = std::io::pipe().expect("a pipe");
    let mut command = log(folder.path(), "tail -F events");
    let mut running = Running::start(command.stdout(output));
    drop(command);
    assert_eq!(read(&mut reader, 10), lines(0..10));
    fs::rename(folder.path().join("events"), folder.path().join("events.1")).expect("a name");
    append_by_process(folder.path(), "events", 10..15);
    assert_eq!(read(&mut reader, 5), lines(10..15));
    fs::remove_dir_all(folder.path().join("events")).expect("it goes");
    append_by_process(folder.path(), "events", 15..17);
    assert_eq!(read(&mut reader, 2), lines(15..17));
    running.send(Signal::INT);
    let finished = running.finish();
    let note = "wrote: note: events: removed or renamed; waiting for a log there\n";
    assert_eq!((finished.code(), finished.stderr), (Some(130), note.repeat(2)));
}

/// Appends lines to a log with a process that then exits.
fn append_by_process(folder: &Path, name: &str, numbers: Range<u64>) {
    let mut child = log(folder, &format!("append --quiet {name}"))
        .stdin(Stdio::piped())
        .spawn()
        .expect("wrote");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(lines(numbers).as_bytes()).expect("it reads");
    drop(input);
    assert!(child.wait().expect("it ends").success());
}
