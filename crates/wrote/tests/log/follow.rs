//! Tests of a following `LogReader`, on a log that another handle writes, that does not exist yet,
//! or that is moved.

use crate::small_log::{PATIENCE, block_on, folder, read, record, small};
use futures_util::StreamExt;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use wrote::{Error, Log, LogReader};

const RECORDS: u64 = 1000;

/// Follows a log that need not exist yet, and returns its first records.
fn following(folder: &Path, records: u64) -> thread::JoinHandle<Vec<(u64, Vec<u8>)>> {
    let mut reader = LogReader::expect(folder, 0).unwrap().following().unwrap();
    thread::spawn(move || {
        let mut next = |_| {
            let found = reader.next_within(PATIENCE).unwrap().expect("a record in time");
            (found.sequence, found.bytes)
        };
        (0..records).map(&mut next).collect()
    })
}

fn append(log: &Log, numbers: std::ops::Range<u64>) {
    for number in numbers {
        log.append(&record(number)).unwrap().wait().unwrap();
    }
}

#[test]
fn a_log_that_is_not_there_yet_is_followed_from_its_first_record_on() {
    let (_folder, folder) = folder();
    // The folder above the log is missing, too.
    let path = folder.join("events");
    let followers = [following(&path, RECORDS), following(&path, RECORDS)];
    fs::create_dir(&folder).unwrap();
    let log = small().open(&path).unwrap();
    append(&log, 0..RECORDS);
    log.close().unwrap();
    for follower in followers {
        assert!(follower.join().unwrap() == read(&path));
    }
}

#[test]
fn a_log_that_is_renamed_to_the_name_that_is_followed_is_read() {
    let (_folder, folder) = folder();
    fs::create_dir_all(folder.join("elsewhere")).unwrap();
    let log = small().open(folder.join("elsewhere/log")).unwrap();
    append(&log, 0..10);
    log.close().unwrap();
    let mut reader = LogReader::expect(folder.join("here/log"), 0).unwrap().following().unwrap();
    assert_eq!(reader.next_within(Duration::from_millis(1)).unwrap(), None);
    fs::rename(folder.join("elsewhere"), folder.join("here")).unwrap();
    for number in 0..10 {
        let found = reader.next_within(PATIENCE).unwrap().expect("a record in time");
        assert_eq!((found.sequence, found.bytes), (number, record(number)));
    }
}

#[test]
fn a_log_that_is_not_there_is_an_error_to_a_reader_that_does_not_expect_it_later() {
    let (_folder, folder) = folder();
    let error = LogReader::open(&folder, 0).and_then(LogReader::following).unwrap_err();
    assert_eq!(error.errno(), libc::ENOENT, "{error}");
    fs::create_dir(&folder).unwrap();
    assert!(matches!(
        LogReader::open(&folder, 0).and_then(LogReader::following),
        Err(Error::Refused { .. })
    ));
    File::create(folder.join("file")).unwrap();
    let error =
        LogReader::expect(folder.join("file/log"), 0).and_then(LogReader::following).unwrap_err();
    assert_eq!(error.errno(), libc::ENOTDIR, "{error}");
}

#[test]
fn a_reader_that_begins_later_than_it_was_asked_to_tells_by_how_much() {
    let (_folder, folder) = folder();
    let log = small().open(&folder).unwrap();
    append(&log, 0..RECORDS);
    let first = log.trim_before(RECORDS / 2).unwrap();
    assert!(first > 10);
    let mut reader = log.reader(10).unwrap();
    assert_eq!(reader.passed_over(), 0, "it has not come there yet");
    assert_eq!(reader.next().unwrap().unwrap().sequence, first);
    assert_eq!(reader.passed_over(), first - 10);
    assert_eq!(reader.by_ref().count() as u64, RECORDS - first - 1);
    assert_eq!(reader.passed_over(), first - 10);
    // A reader that begins after the end has skipped nothing.
    let mut behind = log.reader(RECORDS + 5).unwrap().following().unwrap();
    assert!(behind.next_within(Duration::from_millis(1)).unwrap().is_none());
    assert_eq!(behind.passed_over(), 0);
    log.close().unwrap();
}

#[test]
fn the_tail_of_a_log_ends_with_it_however_it_is_closed() {
    for is_dropped in [false, true] {
        let (_folder, folder) = folder();
        let log = small().open(&folder).unwrap();
        append(&log, 0..10);
        let tails: Vec<_> = (0..3).map(|_| log.reader(0).unwrap().following().unwrap()).collect();
        let stream = log.reader(0).unwrap().following().unwrap().into_stream().unwrap();
        let reading: Vec<_> = tails
            .into_iter()
            .map(|mut tail| {
                thread::spawn(move || {
                    let count = tail.by_ref().map(Result::unwrap).count();
                    // The reader has ended permanently.
                    assert!(tail.next_within(PATIENCE).unwrap().is_none());
                    tail.seek(5).unwrap();
                    (count, tail.count())
                })
            })
            .collect();
        // By now, some readers have read everything and are waiting.
        thread::sleep(Duration::from_millis(20));
        append(&log, 10..20);
        if is_dropped {
            drop(log);
        } else {
            log.close().unwrap();
            let mut late = log.reader(15).unwrap().following().unwrap();
            assert_eq!(late.by_ref().count(), 5);
            assert!(late.next().is_none());
        }
        for reading in reading {
            assert_eq!(reading.join().unwrap(), (20, 15));
        }
        assert_eq!(block_on(stream.count()), 20);
    }
}

#[test]
fn more_events_than_the_kernel_keeps_hide_no_record() {
    let (_folder, folder) = folder();
    let log = small().open(&folder).unwrap();
    append(&log, 0..1);
    let mut reader = LogReader::open(&folder, 0).unwrap().following().unwrap();
    assert_eq!(reader.next_within(PATIENCE).unwrap().unwrap().sequence, 0);
    assert_eq!(reader.next_within(Duration::from_millis(1)).unwrap(), None);
    let kept = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let kept: u64 = kept.trim().parse().unwrap();
    // inotify merges equal consecutive events.
    let mut files = ["one", "two"].map(|name| File::create(folder.join(name)).unwrap());
    for number in 0..kept.min(50_000) + 10 {
        files[number as usize % 2].write_all(b"x").unwrap();
    }
    append(&log, 1..2);
    let found = reader.next_within(PATIENCE).unwrap().expect("a record in time");
    assert_eq!((found.sequence, found.bytes), (1, record(1)));
    log.close().unwrap();
}

#[test]
fn a_flag_ends_the_wait_for_a_log_that_is_not_there() {
    let (_folder, folder) = folder();
    let stop = Arc::new(AtomicBool::new(false));
    let reader =
        wrote::log::until(&stop, || LogReader::expect(&folder, 0).and_then(LogReader::following))
            .unwrap();
    let waiting = thread::spawn(|| reader.last());
    stop.store(true, Ordering::Relaxed);
    assert!(matches!(waiting.join().unwrap(), Some(Err(Error::Interrupted))));
}
