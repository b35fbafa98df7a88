//! Tests of `wrote log append`, which appends the lines of standard input as records.

use super::place::{append_by_command, json, lines, log, said};
use fixtures::{Mounted, Running, finish, folder, names, or_skip};
use rustix::process::Signal;
use std::fs::{self, File};
use std::io::Write;

#[test]
fn each_line_of_standard_input_becomes_a_record() {
    for sync in ["always", "no", "everysec"] {
        let folder = folder();
        let arguments = format!("--sync {sync}");
        let finished = append_by_command(folder.path(), &arguments, b"one\n\nlast, without an end");
        assert_eq!((finished.code(), finished.stdout.as_str()), (Some(0), ""), "{finished:?}");
        let (made, said_of_it) = finished.stderr.split_once('\n').expect("two lines");
        assert!(made.starts_with("wrote: note: events is new: a log's folder"), "{made}");
        assert!(said_of_it.starts_with("appended 3 records (0 to 2), 23 B, in "), "{said_of_it}");
        assert!(said_of_it.ends_with("survives a power loss\n"), "{said_of_it}");
        assert_eq!(said(folder.path(), "cat events"), "one\n\nlast, without an end\n");
        let finished = append_by_command(folder.path(), "-q", b"four\n");
        assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""));
        assert_eq!(said(folder.path(), "tail -n 1 --sequence events"), "3\tfour\n");
        let stat = json(&said(folder.path(), "stat --json events"));
        assert_eq!(stat["closed"], true);
    }
}

#[test]
fn a_folder_of_other_files_does_not_become_a_log() {
    let folder = folder();
    let (events, photos) = (folder.path().join("events"), folder.path().join("photos"));
    fs::create_dir(&events).expect("a folder");
    fs::create_dir(&photos).expect("a folder");
    fs::write(photos.join("cat.jpeg"), "precious").expect("a file");
    let append = |to: &str| {
        let input = File::open(photos.join("cat.jpeg")).expect("a file");
        finish(log(folder.path(), &format!("append {to}")).stdin(input))
    };
    let refused = append("photos");
    let because = "wrote: photos: has other files (such as \"cat.jpeg\") and no log: name a new \
                   folder for the log, such as photos/log";
    assert_eq!((refused.code(), refused.complaint()), (Some(2), because));
    assert_eq!(names(&photos), ["cat.jpeg"]);
    for to in ["photos/log", "photos/lines.txt", "events", "events"] {
        assert_eq!(append(to).code(), Some(0), "{to}");
    }
    fs::write(events.join("notes"), "theirs").expect("a file");
    assert_eq!(append("events").code(), Some(0));
}

#[test]
fn a_line_that_is_no_record_is_told_with_its_number_and_all_others_are_taken() {
    let folder = folder();
    let long = [&vec![b'x'; 3 << 20][..], b"\nfour\n", &vec![b'x'; (1 << 20) + 1]].concat();
    let finished = append_by_command(folder.path(), "-q", &long);
    let said_of_it = "wrote: standard input: line 1: longer than 1 MiB; --record-max allows up to \
         63 MiB; also left out: lines 3; 1 of 3 lines appended";
    assert_eq!((finished.code(), finished.complaint()), (Some(1), said_of_it));
    assert_eq!(said(folder.path(), "cat events"), "four\n");
}

#[test]
fn a_record_is_as_long_as_was_allowed_and_no_longer() {
    for (arguments, bytes_max) in [
        ("", 1 << 20),
        ("--record-max 3MiB", 3 << 20),
        ("--record-max 63MiB", 63 << 20),
        ("--record-max 10", 10),
    ] {
        let folder = folder();
        let arguments = format!("-q --sync no {arguments}");
        let mut input = vec![b'x'; bytes_max];
        let finished = append_by_command(folder.path(), &arguments, &input);
        assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""), "{arguments}");
        assert_eq!(said(folder.path(), "cat --raw events").len(), bytes_max, "{arguments}");
        input.push(b'x');
        let finished = append_by_command(folder.path(), &arguments, &input);
        assert!(finished.complaint().contains("; --record-max allows up to 63 MiB"), "{arguments}");
    }
    let folder = folder();
    let finished = append_by_command(folder.path(), "--record-max 64MiB", b"one");
    assert_eq!(finished.code(), Some(2));
    assert!(finished.complaint().contains("is more than 63 MiB"), "{finished:?}");
}

#[test]
fn a_full_disk_ends_an_append_that_says_how_many_records_are_in() {
    let mounted = or_skip!(Mounted::tmpfs(8 << 20));
    let input = lines(0..200_000);
    let outside = folder();
    fs::write(outside.path().join("input"), input).expect("a file");
    let input = File::open(outside.path().join("input")).expect("a file");
    let mut command = log(mounted.path(), "append -q --sync no events");
    let finished = finish(command.stdin(input));
    assert_eq!(finished.code(), Some(1), "{finished:?}");
    let told = finished.complaint();
    assert!(told.contains("No space left on device"), "{told}");
    let there = said(mounted.path(), "cat events").lines().count();
    let next = there + 1;
    let stopped = format!("; stopped: {there} lines stored, none from line {next} on");
    assert!(there > 0 && told.ends_with(&stopped), "{there}: {told}");
}

#[test]
fn lines_are_there_as_they_come_and_stay_when_it_is_interrupted() {
    let folder = folder();
    let (input, mut writer) = std::io::pipe().expect("a pipe");
    let mut running = Running::start(log(folder.path(), "append events").stdin(input));
    for (number, line) in ["one\n", "two\n"].iter().enumerate() {
        writer.write_all(line.as_bytes()).expect("it reads");
        running.until("the record", || {
            let cat = finish(&mut log(folder.path(), "cat events"));
            (cat.stdout.lines().count() == number + 1).then_some(())
        });
    }
    running.send(Signal::INT);
    let finished = running.finish();
    assert_eq!(finished.code(), Some(130), "{finished:?}");
    let said_of_it: Vec<&str> = finished.stderr.lines().collect();
    assert!(said_of_it[1].starts_with("appended 2 records (0 to 1), 6 B, in "), "{said_of_it:?}");
    assert_eq!(said_of_it[2..], ["wrote: interrupted"]);
    assert_eq!(said(folder.path(), "cat events"), "one\ntwo\n");
}
