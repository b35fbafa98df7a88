//! `Log` on full file systems: the error reaches the right tickets, acknowledged records stay, and
//! with room again the log goes on.

use fixtures::{Mounted, or_skip};
use rustix::fs::FallocateFlags;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use wrote::log::Prepare;
use wrote::{Error, Format, Log, LogOptions, Record, Sync};

const PRODUCERS: u64 = 4;
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns options of logs that run out of space while they prepare a segment, or in a write.
fn ways() -> [LogOptions; 4] {
    let small = Log::options().segment_bytes(512 << 10).buffer_bytes(32 << 10);
    [
        small.clone().prepare(Prepare::Write),
        small.clone().prepare(Prepare::Allocate),
        small.clone().format(Format::Lines),
        small.format(Format::Lines).sync(Sync::No),
    ]
}

fn record(producer: u64, number: u64) -> Vec<u8> {
    let mut bytes = format!("{producer} {number} ").into_bytes();
    let len = number * 7919 % 3001;
    bytes.extend((0..len).map(|place| b'a' + ((number + place) % 26) as u8));
    bytes
}

/// Fills a file system, but for `bytes` bytes.
fn leave_room_for(folder: &Path, bytes: u64) -> PathBuf {
    let free = rustix::fs::statvfs(folder).unwrap();
    let path = folder.join("ballast");
    let ballast = File::create(&path).unwrap();
    let len = (free.f_bavail * free.f_frsize).saturating_sub(bytes);
    rustix::fs::fallocate(&ballast, FallocateFlags::empty(), 0, len).unwrap();
    path
}

/// Appends until an error comes; returns the acknowledged records with their sequences, and the
/// error.
fn produce(log: &Log, producer: u64) -> (Vec<(u64, u64)>, Error) {
    let mut acknowledged = Vec::new();
    for number in 0.. {
        let ticket = match log.append(&record(producer, number)) {
            Ok(ticket) => ticket,
            Err(error) => return (acknowledged, error),
        };
        let sequence = ticket.sequence();
        match ticket.wait() {
            Ok(()) => acknowledged.push((sequence, number)),
            Err(error) => return (acknowledged, error),
        }
    }
    unreachable!("a disk without end")
}

/// Opens the log as soon as the file system has freed removed files.
fn reopen(options: &LogOptions, folder: &Path) -> Log {
    let patience = Instant::now() + PATIENCE;
    loop {
        match options.open(folder) {
            Ok(log) => return log,
            Err(error) => {
                assert!(error.errno() == libc::ENOSPC && Instant::now() < patience, "{error}");
                thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

/// Fills the file system with a log's records, and checks the log.
fn fill(options: &LogOptions, folder: &Path) {
    let path = folder.join("log");
    let ballast = leave_room_for(folder, 4 << 20);
    let log = options.open(&path).unwrap();
    let produced: Vec<_> = thread::scope(|scope| {
        let log = &log;
        let threads: Vec<_> =
            (0..PRODUCERS).map(|producer| scope.spawn(move || produce(log, producer))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (_, error) in &produced {
        assert_eq!(error.errno(), libc::ENOSPC, "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
    }
    // W2
    assert_eq!(log.append(b"more").unwrap_err().errno(), libc::ENOSPC);
    assert_eq!(log.sync().unwrap_err().errno(), libc::ENOSPC);
    let acknowledged = produced.iter().map(|(acknowledged, _)| acknowledged.len()).sum::<usize>();
    assert!(acknowledged > 100, "{acknowledged} records");
    for (sequence, _) in produced.iter().flat_map(|(acknowledged, _)| acknowledged) {
        log.ticket(*sequence).wait().unwrap();
    }
    drop(log);

    fs::remove_file(ballast).unwrap();
    let log = reopen(options, &path);
    let found: Vec<Record> = log.reader(0).unwrap().map(|record| record.unwrap()).collect();
    assert!(found.iter().zip(0..).all(|(record, sequence)| record.sequence == sequence));
    for (producer, (acknowledged, _)) in (0..).zip(&produced) {
        for (sequence, number) in acknowledged {
            let there = found.get(usize::try_from(*sequence).unwrap());
            let there = there.map(|record| record.bytes.as_slice());
            assert!(there == Some(&record(producer, *number)), "record {sequence} of {options:?}");
        }
    }
    let next = log.stats().next_sequence;
    assert_eq!(next, found.len() as u64);
    for number in 0..200 {
        let ticket = log.append(&record(PRODUCERS, number)).unwrap();
        assert_eq!(ticket.sequence(), next + number);
        ticket.wait().unwrap();
    }
    log.close().unwrap();
    assert_eq!(log.reader(next).unwrap().count(), 200);
    drop(log);
    fs::remove_dir_all(path).unwrap();
}

#[test]
fn a_full_disk_is_an_error_of_those_that_are_not_safe_and_with_room_the_log_goes_on() {
    let mounted = or_skip!(Mounted::image("ext4", 32 << 20));
    ways().iter().for_each(|options| fill(options, mounted.path()));
}

#[test]
fn a_log_for_which_there_is_no_room_at_all_is_not_begun_and_can_be_later() {
    let mounted = or_skip!(Mounted::image("ext4", 32 << 20));
    let path = mounted.path().join("log");
    let ballast = leave_room_for(mounted.path(), 64 << 10);
    let options = Log::options().segment_bytes(4 << 20).prepare(Prepare::Allocate);
    let refused = options.open(&path).and_then(|log| log.append(b"first")?.wait());
    assert_eq!(refused.unwrap_err().errno(), libc::ENOSPC);
    fs::remove_file(ballast).unwrap();
    let log = reopen(&options, &path);
    assert_eq!(log.append(b"first").unwrap().sequence(), 0);
    log.close().unwrap();
    assert_eq!(log.reader(0).unwrap().count(), 1);
}
