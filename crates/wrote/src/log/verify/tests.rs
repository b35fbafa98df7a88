//! What is said of logs, damaged in each way, and what repair makes of them.

use super::super::testing::{Built, assert_begins, read_all, two_segments};
use super::super::{Format, LogReader, segment};
use super::*;
use std::collections::BTreeMap;

fn written(files: &[(PathBuf, Vec<u8>)]) {
    for (path, bytes) in files {
        std::fs::write(path, bytes).unwrap();
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn verified(folder: &Path) -> Verified {
    verify(folder, |_, _| true).unwrap()
}

/// Ten records in two segments, and a third segment that says that all of them were durable.
fn durable() -> Built {
    two_segments().segment().batch(10, &[b"ten", b"eleven"]).closed()
}

#[test]
fn a_whole_log_is_told_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let built = durable().prepared(5000);
    written(&built.files(folder.path()));
    std::fs::write(folder.path().join("lock"), b"1\n").unwrap();
    let Verified { summary: verified, records, record_bytes, torn_bytes, damage } =
        verified(folder.path());
    assert!(damage.is_empty() && torn_bytes == 0);
    assert_eq!(records, 12);
    assert_eq!(record_bytes, built.records.iter().map(Vec::len).sum::<usize>() as u64);
    for summary in [summary(folder.path()).unwrap(), verified] {
        assert_eq!((summary.first_sequence, summary.next_sequence), (0, 12));
        assert!(summary.closed && summary.writer.is_none());
        let shapes: Vec<_> =
            summary.segments.iter().map(|one| (one.first_sequence, one.records)).collect();
        assert_eq!(shapes, [(0, 5), (5, 5), (10, 2)]);
        for segment in &summary.segments {
            assert!(segment.used_bytes <= segment.file_bytes);
        }
        assert_eq!(summary.segments[2].used_bytes, 512 + 48);
    }
}

#[test]
fn a_torn_end_is_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = two_segments().files(folder.path());
    let end = files[1].1.iter().rposition(|&byte| byte != 0).unwrap();
    files[1].1[end] ^= 1;
    written(&files);
    let found = verified(folder.path());
    assert_eq!((found.records, found.torn_bytes, found.damage.len()), (9, 12, 0));
    assert_eq!((found.summary.next_sequence, found.summary.closed), (9, false));
    assert_eq!(repair(folder.path()).unwrap().kept_aside.len(), 0);
}

#[test]
fn every_byte_that_is_damaged_is_named_and_repaired_with_all_that_is_whole() {
    let built = durable();
    let folder = tempfile::tempdir().unwrap();
    let files = built.files(folder.path());
    for file in 0..2 {
        for byte in (0..files[file].1.len()).step_by(19) {
            let mut damaged = files.clone();
            damaged[file].1[byte] ^= 0x40;
            written(&damaged);
            check_repair(&built, folder.path(), &files[file].0, &format!("{file}, byte {byte}"));
            for name in names(folder.path()) {
                std::fs::remove_file(folder.path().join(name)).unwrap();
            }
        }
    }
}

/// Verifies and repairs a log of which one file is damaged.
fn check_repair(built: &Built, folder: &Path, path: &Path, what: &str) {
    let found = verified(folder);
    assert_eq!(found.torn_bytes, 0, "{what}");
    assert!(found.damage.iter().all(|damage| damage.path == path), "{what}");
    let lost: u64 = found.damage.iter().map(|damage| damage.records.unwrap()).sum();
    assert_eq!(found.records + lost, 12, "{what}: {:?}", found.damage);
    assert!(lost <= 3, "{what}: a batch has at most 3 records");
    let repaired = repair(folder).unwrap();
    assert_eq!(repaired.damage.len(), found.damage.len(), "{what}");
    assert_eq!(repaired.kept_aside.len(), usize::from(!found.damage.is_empty()), "{what}");
    assert_eq!(repaired.records, found.records, "{what}");
    assert!(verified(folder).damage.is_empty(), "{what}");
    let records: Vec<_> = LogReader::open(folder, 0).unwrap().map(Result::unwrap).collect();
    assert_eq!(records.len() as u64, found.records, "{what}");
    for record in records {
        assert_eq!(record.bytes, built.records[record.sequence as usize], "{what}");
    }
}

#[test]
fn a_log_of_which_no_header_is_left_keeps_its_records() {
    let built = two_segments().batch(10, &[b"ten"]);
    for both in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let mut files = built.files(folder.path());
        files[0].1[30] ^= 1;
        files[1].1[20] ^= if both { 1 } else { 0 };
        written(&files);
        assert!(LogReader::open(folder.path(), 0).is_err());
        let repaired = repair(folder.path()).unwrap();
        assert_eq!((repaired.records, repaired.kept_aside.len()), (11, if both { 2 } else { 1 }));
        let records: Vec<_> =
            LogReader::open(folder.path(), 0).unwrap().map(Result::unwrap).collect();
        assert_eq!(assert_begins(&built, &records, "without headers"), 11);
    }
}

#[test]
fn a_segment_that_is_not_there_becomes_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let built = durable();
    let mut files = built.files(folder.path());
    let (missing, _) = files.remove(1);
    written(&files);
    let found = verified(folder.path());
    let [damage] = &found.damage[..] else { panic!("{:?}", found.damage) };
    assert_eq!((&damage.path, damage.sequence, damage.records), (&missing, 5, Some(5)));
    assert_eq!(repair(folder.path()).unwrap().records, 7);
    let sequences: BTreeMap<u64, usize> = read_all(folder.path());
    assert_eq!(sequences.into_keys().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 10, 11]);
}

#[test]
fn a_log_that_is_open_for_writing_is_not_repaired_and_a_folder_without_one_is_no_log() {
    let folder = tempfile::tempdir().unwrap();
    for error in [
        summary(folder.path()).unwrap_err(),
        verify(folder.path(), |_, _| true).unwrap_err(),
        repair(folder.path()).unwrap_err(),
    ] {
        assert!(error.to_string().ends_with("there is no log here"), "{error}");
    }
    assert!(names(folder.path()).is_empty());
    let lock = Lock::take(folder.path()).unwrap();
    assert_eq!(summary(folder.path()).unwrap().writer, Some(std::process::id()));
    assert!(repair(folder.path()).unwrap_err().to_string().contains("open for writing"));
    drop(lock);
}

#[test]
fn who_watches_can_stop_it() {
    let folder = tempfile::tempdir().unwrap();
    written(&durable().files(folder.path()));
    let mut told = Vec::new();
    verify(folder.path(), |read, all| {
        told.push((read, all));
        true
    })
    .unwrap();
    assert_eq!(told.last().map(|(read, all)| read == all), Some(true));
    assert!(matches!(verify(folder.path(), |_, _| false), Err(Error::Interrupted)));
}

#[test]
fn lines_are_verified_and_lost_ones_become_empty() {
    let folder = tempfile::tempdir().unwrap();
    let path = |number| segment::path(folder.path(), Format::Lines, number);
    std::fs::write(path(0), b"zero\no\0e\ntwo\n").unwrap();
    std::fs::write(path(4), b"four\nfi").unwrap();
    std::fs::write(path(6), b"six\n").unwrap();
    std::fs::write(path(7), b"seven\nei").unwrap();
    let found = verified(folder.path());
    let shapes: Vec<_> =
        found.damage.iter().map(|one| (one.offset_bytes, one.sequence, one.records)).collect();
    assert_eq!(shapes, [(5, 1, Some(2)), (5, 5, Some(1))]);
    assert_eq!((found.records, found.torn_bytes, found.summary.next_sequence), (5, 2, 8));
    assert_eq!(summary(folder.path()).unwrap().next_sequence, 8);
    let repaired = repair(folder.path()).unwrap();
    assert_eq!((repaired.kept_aside.len(), repaired.records), (2, 8));
    assert_eq!(std::fs::read(path(0)).unwrap(), b"zero\n\n\ntwo\n");
    assert_eq!(std::fs::read(path(4)).unwrap(), b"four\n\n");
    assert!(verified(folder.path()).damage.is_empty());
    assert_eq!(read_all(folder.path()).len(), 8);
}

#[test]
fn records_read_after_a_repair_are_those_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let long = vec![7; 600_000];
    let built = Built::default().segment().batch(0, &[b"zero", &long]).batch(2, &[&long, b"three"]);
    let built = built.segment().batch(4, &[b"four"]);
    let mut files = built.files(folder.path());
    let end = files[0].1.len();
    files[0].1[end - 512..].fill(1);
    written(&files);
    repair(folder.path()).unwrap();
    let records: Vec<_> =
        LogReader::open(folder.path(), 0).unwrap().take(2).map(Result::unwrap).collect();
    assert_begins(&built, &records, "before the damage");
}
