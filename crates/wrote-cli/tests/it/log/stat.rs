//! `wrote log stat`: the parts of a log and its writer; folders that hold no log.

use super::place::{FORMATS, append, json, log, open, place, said, segments, text};
use crate::support::assert_golden;
use fixtures::{finish, folder, names};
use serde_json::Value;
use std::fs;
use wrote::Format;

#[test]
fn stat_and_verify_of_lines_print_the_golden_texts() {
    // Written by hand, because the start of a log's next file depends on the pace of its producers.
    let folder = place(Format::Lines, 0);
    for lines in [0..324, 324..500] {
        let name = format!("events/{:020}.log", lines.start);
        let text: String = lines.map(|line| text(line) + "\n").collect();
        fs::write(folder.path().join(name), text).expect("a file");
    }
    assert_golden("log-stat.txt", &said(folder.path(), "stat events"));
    assert_golden("log-stat.json", &said(folder.path(), "stat --json events"));
    assert_golden("log-verify.txt", &said(folder.path(), "verify events"));
    assert_golden("log-verify.json", &said(folder.path(), "verify --json events"));
    assert_eq!(said(folder.path(), "verify --quiet events"), "");
}

#[test]
fn stat_tells_who_writes_and_how_the_log_was_left() {
    for format in FORMATS {
        let folder = folder();
        let writer = open(folder.path(), format);
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
        assert_eq!(stat["format"], format.to_string());
        assert_eq!(stat["segments"].as_array().map(Vec::len), Some(segments(folder.path()).len()));
        let table = said(folder.path(), "stat events");
        assert!(table.starts_with(&format!("events: {format}, 500 records in ")), "{table}");
    }
}

#[test]
fn a_folder_without_a_log_is_refused_in_one_line_and_nothing_is_made() {
    let folder = folder();
    fs::write(folder.path().join("file"), b"x").expect("a file");
    fs::create_dir(folder.path().join("empty")).expect("a folder");
    for verb in ["cat", "tail", "tail -f", "stat", "verify", "repair"] {
        for path in ["file", "empty", "nothing"] {
            let finished = finish(&mut log(folder.path(), &format!("{verb} {path}")));
            assert!(matches!(finished.code(), Some(1 | 2)), "{verb} {path}: {finished:?}");
            let said = finished.complaint();
            assert!(said.starts_with(&format!("wrote: {path}: ")), "{verb} {path}: {said}");
        }
    }
    assert_eq!(names(folder.path()), ["empty", "file"]);
    assert_eq!(names(&folder.path().join("empty")), [""; 0]);
}
