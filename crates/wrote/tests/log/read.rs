//! Readers of a log being written, and of a damaged log.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use wrote::log::{repair, summary, verify};
use wrote::{Error, Format, Log, LogOptions, LogReader, SyncPolicy};

fn options(format: Format) -> LogOptions {
    Log::options()
        .sync(SyncPolicy::No)
        .format(format)
        .buffer_bytes(16 << 10)
        .segment_bytes(64 << 10)
}

fn record(number: u64) -> Vec<u8> {
    let mut bytes = format!("record {number} ").into_bytes();
    bytes.resize(20 + (number % 700) as usize, b'.');
    bytes
}

#[test]
fn a_reader_follows_a_writer_through_its_segments() {
    const RECORDS: u64 = 3000;
    for format in [Format::Framed, Format::Lines] {
        let folder = tempfile::tempdir().unwrap();
        let log = options(format).open(folder.path()).unwrap();
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
        // From the middle of the closed log.
        let mut reader = LogReader::open(folder.path(), 1500).unwrap();
        assert_eq!(reader.next_within(Duration::ZERO).unwrap().unwrap().sequence, 1500);
        assert_eq!(reader.count() as u64, RECORDS - 1501);
    }
}

#[test]
fn a_log_that_is_written_meanwhile_is_not_called_damaged() {
    for (format, sync, retain_bytes) in [
        (Format::Framed, SyncPolicy::Always, 4 << 20),
        (Format::Framed, SyncPolicy::Always, 512 << 10),
        (Format::Framed, SyncPolicy::No, 512 << 10),
        (Format::Lines, SyncPolicy::No, 512 << 10),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let options = options(format).sync(sync).retain_bytes(retain_bytes);
        let log = options.open(folder.path()).unwrap();
        log.append(&record(0)).unwrap().wait().unwrap();
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in (1..).take_while(|_| !ended.load(Ordering::Relaxed)) {
                    drop(log.append(&record(number)).unwrap());
                }
            });
            // After any failure the writer must end.
            let looked = std::panic::catch_unwind(|| {
                for look in 0..40 {
                    let found = verify(folder.path(), None).unwrap();
                    assert!(found.damage.is_empty(), "{format}, {look}: {:?}", found.damage);
                    summary(folder.path()).unwrap();
                }
            });
            ended.store(true, Ordering::Relaxed);
            looked.unwrap();
        });
        log.close().unwrap();
        assert!(verify(folder.path(), None).unwrap().damage.is_empty());
    }
}

#[test]
fn a_log_that_was_repaired_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let log = options(Format::Framed).open(folder.path()).unwrap();
    for number in 0..1000 {
        log.append(&record(number)).unwrap().wait().unwrap();
    }
    log.close().unwrap();
    drop(log);
    let segment = summary(folder.path()).unwrap().segments[2].clone();
    let mut bytes = std::fs::read(&segment.path).unwrap();
    let at = bytes.windows(7).position(|window| window == b"record ").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&segment.path, bytes).unwrap();

    let failed = LogReader::open(folder.path(), 0).unwrap().find_map(Result::err).unwrap();
    assert!(matches!(&failed, Error::Damaged { path, .. } if *path == segment.path), "{failed}");
    let repaired = repair(folder.path()).unwrap();
    assert_eq!((repaired.damage.len(), repaired.records), (1, 999));
    let lost = repaired.damage[0].sequence;

    let log = options(Format::Framed).open(folder.path()).unwrap();
    let sequence = log.append(b"after the repair").unwrap().sequence();
    assert_eq!(sequence, 1000);
    log.close().unwrap();
    let found: BTreeSet<u64> =
        LogReader::open(folder.path(), 0).unwrap().map(|found| found.unwrap().sequence).collect();
    let expected: BTreeSet<u64> = (0..=1000).filter(|&sequence| sequence != lost).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_log_is_looked_at_while_retention_removes_its_segments() {
    for format in [Format::Framed, Format::Lines] {
        let folder = tempfile::tempdir().unwrap();
        let log = options(format).retain_bytes(200 << 10).open(folder.path()).unwrap();
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
}

#[test]
fn what_is_written_meanwhile_is_no_damage_and_damage_is_found_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let log = options(Format::Framed).sync(SyncPolicy::Always).open(folder.path()).unwrap();
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
    // The first segments are shorter.
    let segments = summary(folder.path()).unwrap().segments;
    let path = segments[segments.len() / 2].path.clone();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[9000] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let verified = verify(folder.path(), None).unwrap();
    assert_eq!(verified.damage.len(), 1, "{:?}", verified.damage);
    log.close().unwrap();
}

#[test]
fn a_log_whose_first_records_come_meanwhile_is_not_called_damaged() {
    const READERS: usize = 12;
    for _ in 0..40 {
        let folder = tempfile::tempdir().unwrap();
        let log = Log::options().sync(SyncPolicy::Always).open(folder.path()).unwrap();
        let ready = Barrier::new(READERS + 1);
        std::thread::scope(|scope| {
            for _ in 0..READERS {
                scope.spawn(|| {
                    ready.wait();
                    for _ in 0..5 {
                        let reader = LogReader::open(folder.path(), 0).unwrap();
                        reader.for_each(|record| drop(record.unwrap()));
                    }
                });
            }
            ready.wait();
            for number in 0..10 {
                log.append(&record(number)).unwrap().wait().unwrap();
            }
        });
        log.close().unwrap();
    }
}
