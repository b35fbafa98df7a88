//! Tests of readers on a log that is being written, and on a damaged log.

use std::time::Duration;
use wrote::log::{summary, verify};
use wrote::{Log, LogOptions, LogReader, SyncPolicy};

fn options() -> LogOptions {
    Log::options().sync(SyncPolicy::No).buffer_bytes(16 << 10).segment_bytes(64 << 10)
}

fn record(number: u64) -> Vec<u8> {
    let mut bytes = format!("record {number} ").into_bytes();
    bytes.resize(20 + (number % 700) as usize, b'.');
    bytes
}

#[test]
fn a_reader_follows_a_writer_through_its_segments() {
    const RECORDS: u64 = 3000;
    let folder = tempfile::tempdir().unwrap();
    let log = options().open(folder.path()).unwrap();
    let follower = LogReader::open(folder.path(), 0).unwrap().following().unwrap();
    let reading = std::thread::spawn(move || {
        for (number, found) in (0..RECORDS).zip(follower) {
            let found = found.unwrap();
            assert_eq!((found.sequence, found.bytes), (number, record(number)));
        }
    });
    for number in 0..RECORDS {
        log.append(&record(number)).unwrap().wait().unwrap();
    }
    reading.join().unwrap();
    log.close().unwrap();
    let found = verify(folder.path(), None).unwrap();
    assert!(found.damage.is_empty() && found.torn_bytes == 0, "{:?}", found.damage);
    assert_eq!(found.records, RECORDS);
    let summary = summary(folder.path()).unwrap();
    assert!(summary.segments.len() > 5);
    assert_eq!(summary.next_sequence, RECORDS);
    assert_eq!(summary.segments.iter().map(|segment| segment.records).sum::<u64>(), RECORDS);
    // Now a reader starts in the middle of the closed log.
    let mut reader = LogReader::open(folder.path(), 1500).unwrap();
    assert_eq!(reader.next_within(Duration::ZERO).unwrap().unwrap().sequence, 1500);
    assert_eq!(reader.count() as u64, RECORDS - 1501);
}

#[test]
fn a_log_is_looked_at_while_retention_removes_its_segments() {
    let folder = tempfile::tempdir().unwrap();
    let log = options().retain_bytes(200 << 10).open(folder.path()).unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..40_000 {
                drop(log.append(&record(number)).unwrap());
            }
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
            let summary = summary(folder.path()).unwrap();
            assert!(summary.first_sequence <= summary.next_sequence);
            let verified = verify(folder.path(), None).unwrap();
            assert!(verified.damage.is_empty(), "{:?}", verified.damage);
        }
    });
    log.close().unwrap();
    assert!(log.stats().removed > 10);
}

#[test]
fn records_written_meanwhile_are_no_damage_and_damage_is_found_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let log = options().sync(SyncPolicy::Always).open(folder.path()).unwrap();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..20_000 {
                let ticket = log.append(&record(number)).unwrap();
                if number % 20 == 0 {
                    ticket.wait().unwrap();
                }
            }
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
            let verified = verify(folder.path(), None).unwrap();
            assert!(verified.damage.is_empty(), "{:?}", verified.damage);
        }
    });
    log.sync().unwrap();
    // The first segments are shorter, so a later one is damaged.
    let segments = summary(folder.path()).unwrap().segments;
    let path = segments[segments.len() / 2].path.clone();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[9000] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let verified = verify(folder.path(), None).unwrap();
    assert_eq!(verified.damage.len(), 1, "{:?}", verified.damage);
    log.close().unwrap();
}
