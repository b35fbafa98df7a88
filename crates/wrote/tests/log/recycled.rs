//! Segments in the files of removed ones.

use crate::small_log::{SEGMENT_BYTES, folder, read, record, segments, small};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use wrote::log::{Prepare, check_segment, repair, summary, verify};
use wrote::{Format, Log, LogReader};

/// The first byte after the magic of a recycled segment: the version 1, and the bit below it.
const RECYCLED: u8 = 3;
const RETAIN_BYTES: u64 = 2 * SEGMENT_BYTES;

fn open(folder: &Path) -> Log {
    let options = small(Format::Framed).prepare(Prepare::Write).retain_bytes(RETAIN_BYTES);
    options.open(folder).unwrap()
}

fn append(log: &Log, numbers: std::ops::Range<u64>) {
    for number in numbers {
        drop(log.append(&record(number)).unwrap());
    }
    log.sync().unwrap();
}

/// The byte of a segment's header with its version, 1, with the "recycled" bit below it.
fn kind(path: &Path) -> u8 {
    fs::read(path).unwrap()[8]
}

#[test]
fn a_recycled_segment_holds_its_own_records_and_no_others() {
    let (_folder, folder) = folder();
    for life in 0..3 {
        let log = open(&folder);
        append(&log, life * 2000..(life + 1) * 2000);
        let before = log.stats();
        assert!(before.recycled > 2 && before.recycled < before.removed, "{before:?}");
        let kept_from = |first| -> Vec<_> {
            (first..(life + 1) * 2000).map(|number| (number, record(number))).collect()
        };
        let found = read(&folder);
        // The log's thread may remove more; `sync` does not wait for it.
        assert!(found[0].0 >= before.first_sequence, "{} in life {life}", found[0].0);
        assert!(found == kept_from(found[0].0), "open, in life {life}");
        let verified = verify(&folder, None).unwrap();
        assert!(verified.damage.is_empty() && verified.garbage.is_empty(), "{verified:?}");
        assert_eq!(verified.torn_bytes, 0, "the bytes that were there before are not torn");
        log.close().unwrap();
        assert!(read(&folder) == kept_from(log.stats().first_sequence), "closed, in life {life}");
        let verified = verify(&folder, None).unwrap();
        assert!(verified.closed && verified.garbage.is_empty(), "{verified:?}");
        let segments = segments(&folder, Format::Framed);
        assert!(segments.iter().any(|path| kind(path) == RECYCLED), "{segments:?}");
        let names = fs::read_dir(&folder).unwrap().count();
        assert_eq!(names, segments.len() + 1, "the segments and the lock");
    }
}

#[test]
fn a_reader_in_a_removed_segment_reads_on_to_its_end() {
    let (_folder, folder) = folder();
    let log = open(&folder);
    append(&log, 0..100);
    let end = summary(&folder).unwrap().segments[1].first_sequence;
    let mut reader = LogReader::open(&folder, 0).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().sequence, 0);
    append(&log, 100..3000);
    log.close().unwrap();
    let stats = log.stats();
    assert!(stats.recycled > 2 && stats.first_sequence > 300, "{stats:?}");
    let mut read = 1;
    for (found, number) in reader.by_ref().map(Result::unwrap).zip(1..) {
        if found.sequence != number {
            assert!(found.sequence <= stats.first_sequence, "{} behind {number}", found.sequence);
            break;
        }
        assert_eq!(found.bytes, record(number));
        read += 1;
    }
    assert_eq!(read, end);
}

#[test]
fn a_reader_whose_file_became_another_segment_goes_on_with_the_first_that_is_left() {
    let (folder, log_folder) = folder();
    let log = small(Format::Framed).open(&log_folder).unwrap();
    append(&log, 0..1000);
    log.close().unwrap();
    let mut reader = LogReader::open(&log_folder, 0).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().sequence, 0);
    let begins = summary(&log_folder).unwrap().segments[1].first_sequence;
    let first = &segments(&log_folder, Format::Framed)[0];
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(first, &elsewhere).unwrap();
    let other = fs::OpenOptions::new().write(true).open(&elsewhere).unwrap();
    other.write_all_at(&vec![b'o'; SEGMENT_BYTES as usize], 0).unwrap();
    let read: Vec<u64> = reader.map(|record| record.unwrap().sequence).collect();
    // The reader has read a part of the file before.
    let skipped = read.windows(2).filter(|pair| pair[0] + 1 != pair[1]).count();
    assert!(skipped <= 1 && read.contains(&begins), "{read:?}");
    assert_eq!(read.last(), Some(&999));
}

#[test]
fn a_segment_with_a_second_name_is_never_written_over() {
    // W7
    let (_folder, folder) = folder();
    let log = open(&folder);
    let mut copies = Vec::new();
    for round in 0..30 {
        append(&log, round * 100..(round + 1) * 100);
        for path in segments(&folder, Format::Framed) {
            let copy = folder.join("..").join(path.file_name().unwrap());
            if !copy.exists() {
                fs::hard_link(&path, &copy).unwrap();
                copies.push(copy);
            }
        }
    }
    log.close().unwrap();
    assert!(log.stats().removed > 5, "{:?}", log.stats());
    let mut end = 0;
    for copy in copies {
        if kind(&copy) == 0 {
            // The file was prepared, and no segment began in it.
            continue;
        }
        let sealed = check_segment(&copy).unwrap();
        assert_eq!(sealed.end_sequence - sealed.records, end, "{}", copy.display());
        end = sealed.end_sequence;
    }
    assert_eq!(end, 3000);
}

#[test]
fn damage_in_a_recycled_segment_is_repaired_and_costs_one_record() {
    let (_folder, folder) = folder();
    let log = open(&folder);
    append(&log, 0..2000);
    log.close().unwrap();
    let first = log.stats().first_sequence;
    let segments = segments(&folder, Format::Framed);
    let damaged = segments.iter().find(|path| kind(path) == RECYCLED).unwrap();
    let mut bytes = fs::read(damaged).unwrap();
    bytes[5000] ^= 1;
    fs::write(damaged, bytes).unwrap();
    assert_eq!(repair(&folder).unwrap().damage.len(), 1);
    assert_eq!(kind(damaged), 2, "a file of its own");
    let verified = verify(&folder, None).unwrap();
    assert!(verified.damage.is_empty() && verified.garbage.is_empty(), "{verified:?}");
    assert_eq!((verified.records, verified.first_sequence), (2000 - first - 1, first));
}

#[test]
fn the_file_behind_a_link_in_place_of_a_segment_stays_as_it_is() {
    // W7
    let (place, folder) = folder();
    let log = open(&folder);
    append(&log, 0..50);
    let first = &segments(&folder, Format::Framed)[0];
    let archived = place.path().join("archived");
    fs::rename(first, &archived).unwrap();
    std::os::unix::fs::symlink(&archived, first).unwrap();
    let before = fs::read(&archived).unwrap();
    append(&log, 50..2000);
    assert!(log.stats().recycled > 2 && !first.exists(), "{:?}", log.stats());
    log.close().unwrap();
    assert!(fs::read(&archived).unwrap() == before);
}

#[test]
fn a_repair_without_any_header_brings_no_removed_record_back() {
    let (_folder, folder) = folder();
    let is_whole = |path: &PathBuf| {
        kind(path) == RECYCLED && fs::metadata(path).unwrap().len() == SEGMENT_BYTES
    };
    // On a busy machine a log may find no file to write over in its first thousand records.
    let mut lives = (0..20).map(|life| {
        let log = open(&folder);
        append(&log, life * 1000..(life + 1) * 1000);
        log.close().unwrap();
        segments(&folder, Format::Framed)
    });
    let mut left =
        lives.find(|files| files.iter().any(is_whole)).expect("a whole segment in a recycled file");
    let last = left.iter().rposition(is_whole).unwrap();
    let last = left.remove(last);
    let kept = read(&folder);
    left.iter().for_each(|path| fs::remove_file(path).unwrap());
    let mut bytes = fs::read(&last).unwrap();
    bytes[..512].fill(0xee);
    fs::write(&last, bytes).unwrap();
    repair(&folder).unwrap();
    let repaired = read(&folder);
    assert!(repaired.len() > 20, "{} records", repaired.len());
    assert!(repaired.iter().all(|record| kept.contains(record)));
}
