//! Tests of segments that reuse the files of removed segments.

use crate::small_log::{SEGMENT_BYTES, folder, record, segments, small};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use wrote::log::{Segment, summary};
use wrote::{Log, LogReader};

const RETAIN_BYTES: u64 = 2 * SEGMENT_BYTES;

fn open(folder: &Path) -> Log {
    let options = small().zeros(true).retain_bytes(RETAIN_BYTES);
    options.open(folder).unwrap()
}

fn append(log: &Log, numbers: std::ops::Range<u64>) {
    for number in numbers {
        drop(log.append(&record(number)).unwrap());
    }
    log.sync().unwrap();
}

/// Returns the byte of a segment's header that contains the version, 1, and the "recycled" bit
/// below it.
fn kind(path: &Path) -> u8 {
    fs::read(path).unwrap()[8]
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
    let log = small().open(&log_folder).unwrap();
    append(&log, 0..1000);
    log.close().unwrap();
    let mut reader = LogReader::open(&log_folder, 0).unwrap();
    assert_eq!(reader.next().unwrap().unwrap().sequence, 0);
    let begins = summary(&log_folder).unwrap().segments[1].first_sequence;
    let first = &segments(&log_folder)[0];
    let elsewhere = folder.path().join("elsewhere");
    fs::rename(first, &elsewhere).unwrap();
    let other = fs::OpenOptions::new().write(true).open(&elsewhere).unwrap();
    other.write_all_at(&vec![b'o'; SEGMENT_BYTES as usize], 0).unwrap();
    let read: Vec<u64> = reader.map(|record| record.unwrap().sequence).collect();
    // The reader has already read a part of the file.
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
        for path in segments(&folder) {
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
            // The file was prepared, but no segment has begun in it.
            continue;
        }
        let sealed = Segment::examine(&copy).unwrap();
        assert_eq!(sealed.end_sequence - sealed.records, end, "{}", copy.display());
        end = sealed.end_sequence;
    }
    assert_eq!(end, 3000);
}

#[test]
fn the_file_behind_a_link_in_place_of_a_segment_stays_as_it_is() {
    // W7
    let (place, folder) = folder();
    let log = open(&folder);
    append(&log, 0..50);
    let first = &segments(&folder)[0];
    let archived = place.path().join("archived");
    fs::rename(first, &archived).unwrap();
    std::os::unix::fs::symlink(&archived, first).unwrap();
    let before = fs::read(&archived).unwrap();
    append(&log, 50..2000);
    assert!(log.stats().recycled > 2 && !first.exists(), "{:?}", log.stats());
    log.close().unwrap();
    assert!(fs::read(&archived).unwrap() == before);
}
