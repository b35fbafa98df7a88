//! Tests of `wrote log cat`: records in order, as lines, as JSON and by their times.

use super::place::{json, lines, log, open, place, place_with_times, read, said, segments};
use fixtures::{Running, finish, folder};
use jiff::Timestamp;
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;

#[test]
fn cat_prints_all_records_or_those_that_were_asked_for() {
    let folder = place(1000);
    let said = |arguments: &str| said(folder.path(), &format!("cat {arguments} events"));
    assert!(said("") == lines(0..1000));
    assert!(segments(folder.path()).len() > 1);
    assert_eq!(said("--from 998"), lines(998..1000));
    assert_eq!(said("--from 997 --to 998"), lines(997..999));
    assert_eq!(said("--to 1"), lines(0..2));
    assert_eq!(said("--from 400 -n 2"), lines(400..402));
    assert_eq!(said("--count 0"), "");
    assert_eq!(said("--from 1000"), "");
}

#[test]
fn records_of_any_bytes_are_told_apart_as_json() {
    let folder = folder();
    let log = open(folder.path());
    for bytes in [&b"plain"[..], b"", b"two\nlines", b"\xff\0"] {
        log.append(bytes).expect("room").wait().expect("a disk");
    }
    log.close().expect("a disk");
    let all = said(folder.path(), "cat --json events");
    let mut records: Vec<Value> = all.lines().map(json).collect();
    assert_eq!(records.len(), 4, "{all}");
    for record in &mut records {
        let written_at = record.as_object_mut().expect("an object").remove("written_at");
        let written_at = written_at.expect("a time");
        written_at.as_str().expect("a text").parse::<Timestamp>().expect("a time");
    }
    assert_eq!(records[0], json(r#"{"sequence": 0, "text": "plain"}"#));
    assert_eq!(records[1]["text"], "");
    assert_eq!(records[2]["text"], "two\nlines");
    assert_eq!(records[3], json(r#"{"sequence": 3, "bytes_base64": "/wA="}"#));
    let first = said(folder.path(), "cat --sequence --to 2 events");
    assert_eq!(first, "0\tplain\n1\t\n2\ttwo\nlines\n");
    let raw = log_bytes(folder.path(), "cat --raw events");
    assert_eq!(raw, b"plaintwo\nlines\xff\0");
}

#[test]
fn cat_prints_the_records_of_a_time_on_and_up_to_one() {
    let (folder, times) = place_with_times();
    let said = |arguments: &str| said(folder.path(), &format!("cat {arguments} events"));
    let first = |at: Timestamp| times.iter().position(|time| *time >= at).unwrap_or(30) as u64;
    let end = |at: Timestamp| times.iter().position(|time| *time > at).unwrap_or(30) as u64;
    let (one, two) = (times[10], times[20]);
    assert!(first(one) > 0 && end(one) < 30, "{times:?}");
    assert_eq!(said(&format!("--since {one}")), lines(first(one)..30));
    assert_eq!(said(&format!("--until {one}")), lines(0..end(one)));
    assert_eq!(said(&format!("--since {one} --until {two}")), lines(first(one)..end(two)));
    assert_eq!(said(&format!("--from 5 --until {one}")), lines(5..end(one)));
    assert_eq!(said(&format!("--since {one} -n 2")), lines(first(one)..first(one) + 2));
    assert_eq!(said("--since 1d"), lines(0..30));
    assert_eq!(said("--until 1d"), "");
    assert_eq!(said("--since 2999-01-01T00:00Z"), "");
    // Records before the requested time are not a gap.
    let json = said(&format!("--json --since {one}"));
    assert!(json.starts_with(&format!("{{\"sequence\":{}", first(one))), "{json}");
    assert!(!json.contains("missing"), "{json}");
}

#[test]
fn a_word_in_place_of_a_time_is_refused_in_one_line() {
    let folder = place(3);
    let finished = finish(&mut log(folder.path(), "cat --since yesterday events"));
    let line = "wrote: --since \"yesterday\": must be a time, as 2026-11-24T07:00Z or \
                2026-11-24T07:00, or an age, as 10m";
    assert_eq!((finished.code(), finished.stderr.trim_end()), (Some(2), line));
}

fn log_bytes(folder: &Path, arguments: &str) -> Vec<u8> {
    log(folder, arguments).output().expect("the program runs").stdout
}

#[test]
fn a_reader_that_goes_away_ends_cat_and_a_log_that_is_followed() {
    let folder = place(2000);
    for arguments in ["cat events", "tail -f events", "tail -f -n 2000 events"] {
        let (mut reader, output) = std::io::pipe().expect("a pipe");
        let mut command = log(folder.path(), arguments);
        let running = Running::start(command.stdout(output));
        drop(command);
        read(&mut reader, 1);
        drop(reader);
        let finished = running.finish();
        assert_eq!((finished.code(), finished.stderr.as_str()), (Some(0), ""), "{arguments}");
    }
}

#[test]
fn cat_is_interrupted_while_nobody_reads() {
    let folder = place(2000);
    let (mut reader, output) = std::io::pipe().expect("a pipe");
    let mut running = Running::start(log(folder.path(), "cat events").stdout(output));
    read(&mut reader, 1);
    running.send(Signal::INT);
    let finished = running.finish();
    assert_eq!(finished.code(), Some(130), "{finished:?}");
    assert_eq!(finished.stderr, "wrote: interrupted\n");
}
