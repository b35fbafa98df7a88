//! Tests of `wrote log stat`: the segments of a log and its writer; folders without a log.

use super::place::{append, json, log, open, said, segments, text};
use crate::support::assert_golden;
use fixtures::{finish, folder, names};
use serde_json::Value;
use std::fs;

#[test]
fn stat_and_verify_print_the_golden_texts() {
    let folder = folder();
    let log = open(folder.path());
    // A group is a single batch, however fast its producer is.
    for first in [0, 100, 200, 300, 400] {
        let group: Vec<String> = (first..first + 100).map(text).collect();
        log.append_all(&group).expect("room").1.wait().expect("a disk");
    }
    log.close().expect("a disk");
    assert_golden("log-stat.txt", &said(folder.path(), "stat events"));
    assert_golden("log-stat.json", &said(folder.path(), "stat --json events"));
    assert_golden("log-verify.txt", &said(folder.path(), "verify events"));
    assert_golden("log-verify.json", &said(folder.path(), "verify --json events"));
    assert_eq!(said(folder.path(), "verify --quiet events"), "");
}

#[test]
fn stat_tells_who_writes_and_how_the_log_was_left() {
    let folder = folder();
    let writer = open(folder.path());
    append(&writer, 0..500);
    let stat = json(&said(folder.path(), "stat --json events"));
    assert_eq!(stat["writer_process"], std::process::id(), "{stat}");
    let table = said(folder.path(), "stat events");
    assert!(table.contains(&format!("open for writing by process {}", std::process::id())));
    writer.close().expect("a disk");
    drop(writer);

    let stat = json(&said(folder.path(), "stat --json events"));
    assert_eq!((&stat["writer_process"], &stat["path"]), (&Value::Null, &"events".into()));
    assert_eq!((&stat["records"], &stat["next_sequence"]), (&500.into(), &500.into()));
    assert_eq!(stat["segments"].as_array().map(Vec::len), Some(segments(folder.path()).len()));
    let table = said(folder.path(), "stat events");
    assert!(table.starts_with("events: 500 records in "), "{table}");
}

#[test]
fn a_folder_without_a_log_is_refused_in_one_line_and_nothing_is_made() {
    let folder = folder();
    fs::write(folder.path().join("file"), b"x").expect("a file");
    fs::create_dir(folder.path().join("empty")).expect("a folder");
    for verb in ["cat", "tail", "tail -f", "stat", "verify", "repair"] {
        // A file is taken for a line file, which only these subcommands refuse.
        let is_of_logs = ["stat", "verify", "repair"].contains(&verb);
        for path in ["empty", "nothing", "file"].into_iter().take(if is_of_logs { 3 } else { 2 }) {
            let finished = finish(&mut log(folder.path(), &format!("{verb} {path}")));
            assert!(matches!(finished.code(), Some(1 | 2)), "{verb} {path}: {finished:?}");
            let said = finished.complaint();
            assert!(said.starts_with(&format!("wrote: {path}: ")), "{verb} {path}: {said}");
        }
    }
    assert_eq!(names(folder.path()), ["empty", "file"]);
    assert_eq!(names(&folder.path().join("empty")), [""; 0]);
}
