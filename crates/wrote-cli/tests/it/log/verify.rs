//! Tests of `wrote log verify` and `repair`: damage, gaps, holes and garbage.

use super::place::{
    append, append_by_command, content, damage, json, lines, log, open, place, said, segments, text,
};
use fixtures::{Finished, finish, folder, names};
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use serde_json::Value;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

#[test]
fn a_whole_log_is_verified_and_left_as_it_is_by_repair() {
    let folder = place(500);
    let before = content(folder.path());
    let verified = said(folder.path(), "verify events");
    assert!(verified.starts_with("500 records in ") && verified.ends_with("50.0 kB, intact\n"));
    assert_eq!(json(&said(folder.path(), "verify --json events"))["whole"], true);
    assert_eq!(said(folder.path(), "repair --dry-run events"), verified);
    let repaired = said(folder.path(), "repair events");
    assert_eq!(repaired, "nothing to repair: 500 records, intact\n");
    assert!(content(folder.path()) == before);
}

#[test]
fn segments_whose_names_were_swapped_are_told_and_put_back_by_repair() {
    let folder = place(500);
    let before = content(folder.path());
    let [first, second] = [1, 2].map(|number| format!("{number:020}.segment"));
    let place = |name: &str| folder.path().join("events").join(name);
    fs::rename(place(&first), place("swapped")).expect("a segment");
    fs::rename(place(&second), place(&first)).expect("a segment");
    fs::rename(place("swapped"), place(&second)).expect("a segment");
    for verb in ["verify", "repair --dry-run", "cat"] {
        let finished = finish(&mut log(folder.path(), &format!("{verb} events")));
        assert_eq!(finished.code(), Some(1), "{verb}: {finished:?}");
        let told = finished.complaint();
        assert!(told.contains("`wrote log repair events` gives it its own name back"), "{told}");
    }
    let repaired = said(folder.path(), "repair events");
    let expected = format!("renamed back to events/{second}\nrepaired: 500 records are readable\n");
    assert_eq!(repaired, expected);
    assert!(content(folder.path()) == before);
}

/// Returns the report, after asserting that damage was found.
fn found(finished: &Finished) -> &str {
    assert_eq!(finished.code(), Some(1), "{finished:?}");
    let complaint = "wrote: events: damaged in 1 place; wrote log repair events keeps every intact \
                     record\n";
    assert_eq!(finished.stderr, complaint);
    &finished.stdout
}

#[test]
fn damage_is_told_with_its_place_and_repaired_with_what_was_there_kept() {
    let folder = place(500);
    let path = damage(folder.path(), 100);
    let path = Path::new("events").join(path.file_name().expect("a name"));
    let before = content(folder.path());
    for arguments in ["verify events", "verify -q events", "repair --dry-run events"] {
        let finished = finish(&mut log(folder.path(), arguments));
        let told = found(&finished);
        let begin = format!("{}: damaged at byte ", path.display());
        assert!(told.starts_with(&begin) && told.contains("100"), "{told}");
        assert_eq!(told.lines().count(), if arguments.contains("-q") { 1 } else { 2 }, "{told}");
    }
    let verified = json(found(&finish(&mut log(folder.path(), "verify --json events"))));
    assert_eq!(
        (&verified["whole"], &verified["damage"][0]["sequence"]),
        (&false.into(), &100.into())
    );
    assert!(content(folder.path()) == before);

    // The records before the damage are printed before it is reported.
    let finished = finish(&mut log(folder.path(), "cat events"));
    assert_eq!((finished.code(), finished.stdout), (Some(1), lines(0..100)));
    let complaint = &finished.stderr;
    assert!(complaint.lines().count() == 1 && complaint.contains("wrote log"), "{complaint}");

    let repaired = said(folder.path(), "repair events");
    assert!(repaired.starts_with(&format!("{}: damaged at byte ", path.display())), "{repaired}");
    let kept = repaired.lines().find_map(|line| line.strip_prefix("original kept as "));
    let kept = fs::read(folder.path().join(kept.expect("a file is kept"))).expect("it is there");
    let (_, damaged) = before.iter().find(|(name, _)| path.ends_with(name)).expect("it was there");
    assert!(kept == *damaged);

    let left = said(folder.path(), "cat events");
    let verified = said(folder.path(), "verify events");
    assert!(left.starts_with(&lines(0..100)) && left.ends_with(&lines(400..500)), "{verified}");
    assert!(!left.contains(&text(100)));
    let records = left.lines().count();
    assert!(verified.starts_with(&format!("{records} records in ")), "{verified}");
    let sequences = said(folder.path(), "tail -n 450 --sequence events");
    let last = sequences.lines().last().expect("records");
    assert_eq!(last, format!("499\t{}", text(499)));
    assert_eq!(sequences.lines().count(), records.min(450));
}

/// Changes the content of a file.
fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).expect("a file");
    change(&mut bytes);
    fs::write(path, bytes).expect("a file");
}

#[test]
fn gaps_that_a_repair_left_are_told_by_stat_verify_and_cat() {
    let folder = place(500);
    for number in [0, 100, 101, 400] {
        damage(folder.path(), number);
    }
    said(folder.path(), "repair events");
    let told = "4 sequences have no record: 0, 100 to 101, 400\n";
    for verb in ["stat", "verify"] {
        let said = said(folder.path(), &format!("{verb} events"));
        assert!(said.contains(told), "{verb}: {said}");
    }
    let stat = json(&said(folder.path(), "stat --json events"));
    assert_eq!(stat["gaps"][1], json(r#"{"first_sequence": 100, "records": 2}"#));
    let all = said(folder.path(), "cat --json events");
    let lines: Vec<Value> = all.lines().map(json).collect();
    assert_eq!(lines.len(), 496 + 3);
    assert_eq!(lines[0], json(r#"{"sequence": 0, "missing": 1}"#));
    assert_eq!(lines[100], json(r#"{"sequence": 100, "missing": 2}"#));
    assert_eq!(lines[101]["sequence"], 102);
    let part = said(folder.path(), "cat --json --from 101 -n 1 events");
    assert_eq!(part.lines().map(json).next(), Some(json(r#"{"sequence": 101, "missing": 1}"#)));
}

/// A length that would take too long to read.
const ENDLESS_BYTES: u64 = 8 << 40;

/// Makes a file huge, with a hole. Returns `false` if the file system does not support this.
fn is_made_endless(path: &Path) -> bool {
    let file = File::options().write(true).create(true).truncate(false).open(path).expect("a file");
    let len_bytes = file.metadata().expect("a file").len();
    if file.set_len(ENDLESS_BYTES).is_err() {
        return false;
    }
    let behind = len_bytes.next_multiple_of(1 << 20);
    let is_known = seek(&file, SeekFrom::Data(behind)) == Err(Errno::NXIO);
    is_known || file.set_len(len_bytes).is_err()
}

#[test]
fn holes_are_passed_over_whatever_a_command_does() {
    for place_of in ["sealed", "sealed and damaged", "last", "next"] {
        let folder = place(1000);
        let segments = segments(folder.path());
        let path = match place_of {
            "last" => segments[segments.len() - 1].clone(),
            "next" => folder.path().join(format!("events/{:020}.segment", segments.len() + 1)),
            _ => segments[0].clone(),
        };
        if place_of == "sealed and damaged" {
            change(&path, |bytes| bytes[300] = 0);
        }
        if !is_made_endless(&path) {
            return fixtures::skip("holes_are_passed_over", "no SEEK_DATA here");
        }
        let code = |verb: &str| {
            let finished = finish(&mut log(folder.path(), &format!("{verb} events")));
            (finished.code(), finished.stdout.lines().count())
        };
        if place_of == "sealed and damaged" {
            assert_eq!(code("cat").0, Some(1), "{place_of}");
            assert_eq!(code("verify").0, Some(1), "{place_of}");
        } else {
            assert_eq!(code("cat"), (Some(0), 1000), "{place_of}");
            assert_eq!(code("tail"), (Some(0), 10), "{place_of}");
            assert_eq!(code("stat").0, Some(0), "{place_of}");
            assert_eq!(code("verify").0, Some(0), "{place_of}");
        }
        said(folder.path(), "repair events");
        assert_eq!(append_by_command(folder.path(), "-q", b"more\n").code(), Some(0));
        assert_eq!(said(folder.path(), "tail -n 1 -s events"), "1000\tmore\n", "{place_of}");
        assert_eq!(code("verify").0, Some(0), "{place_of}");
    }
}

#[test]
fn garbage_behind_a_sealed_segment_has_a_word_and_an_exit_code_and_loses_nothing() {
    let folder = place(1000);
    let sealed = &segments(folder.path())[0];
    change(sealed, |bytes| bytes.extend([0, 0, 7, 0]));
    for (verb, last_line) in [
        ("verify", "otherwise intact: 1000 records in "),
        ("verify -q", "events/00000000000000000"),
        ("repair --dry-run", "otherwise intact: 1000 records in "),
    ] {
        let finished = finish(&mut log(folder.path(), &format!("{verb} events")));
        assert_eq!(finished.code(), Some(3), "{verb}: {finished:?}");
        let complaint = "wrote: events: garbage in 1 place; no record is lost; wrote log repair \
                         events removes it\n";
        assert_eq!(finished.stderr, complaint);
        let told = finished.stdout.lines().next().expect("the place");
        assert!(told.contains(" of garbage from byte "), "{told}");
        let last = finished.stdout.lines().last().expect("a line");
        assert!(last.starts_with(last_line), "{last}");
    }
    let verified = finish(&mut log(folder.path(), "verify --json events"));
    let verified = json(&verified.stdout);
    assert_eq!((&verified["whole"], &verified["damage"]), (&false.into(), &json("[]")));
    assert_eq!(verified["garbage"].as_array().map(Vec::len), Some(1));
    assert!(said(folder.path(), "cat events") == lines(0..1000));
    said(folder.path(), "stat events");
    assert_eq!(append_by_command(folder.path(), "-q", b"more\n").code(), Some(0));
    assert!(said(folder.path(), "repair events").contains("\noriginal kept as "));
    assert!(said(folder.path(), "verify events").ends_with(", intact\n"));
    assert!(said(folder.path(), "cat events") == lines(0..1000) + "more\n");
}

#[test]
fn a_log_that_is_written_is_not_repaired_and_has_no_second_writer() {
    let folder = folder();
    let writer = open(folder.path());
    append(&writer, 0..10);
    for verb in ["repair", "append"] {
        let finished = finish(&mut log(folder.path(), &format!("{verb} events")));
        assert_eq!(finished.code(), Some(2), "{finished:?}");
        let said = finished.complaint();
        assert!(said.starts_with("wrote: events"), "{said}");
        assert!(said.contains(&std::process::id().to_string()), "{said}");
    }
    append(&writer, 10..20);
    writer.close().expect("a disk");
    assert_eq!(said(folder.path(), "cat events"), lines(0..20));
}

#[test]
fn the_end_that_a_crash_tore_is_no_damage_and_kept_by_the_next_opening() {
    let folder = folder();
    let writer = open(folder.path());
    append(&writer, 0..3);
    writer.close().expect("a disk");
    drop(writer);
    let path = segments(folder.path()).pop().expect("a segment");
    let mut file = fs::OpenOptions::new().append(true).open(path).expect("a file");
    file.write_all(b"half a li").expect("room");
    let verified = said(folder.path(), "verify events");
    assert!(verified.contains("9 B of an interrupted write follow"), "{verified}");
    assert_eq!(said(folder.path(), "cat events"), lines(0..3));
    let finished = append_by_command(folder.path(), "", b"next\n");
    assert!(
        finished.stderr.starts_with("wrote: note: the end of an interrupted write"),
        "{finished:?}"
    );
    assert_eq!(said(folder.path(), "tail -n 1 --sequence events"), "3\tnext\n");
    let kept = names(&folder.path().join("events")).into_iter().find(|name| name.contains("torn"));
    let kept = folder.path().join("events").join(kept.expect("it is kept"));
    assert_eq!(fs::read(kept).expect("a file"), b"half a li");
}
