//! Tests of `Log` on full file systems: the error reaches the right tickets, acknowledged records
//! remain, and the log continues once there is room again.

use crate::small_log::{FOLDER, block_on};
use fixtures::{Mounted, leave_room_for, or_skip, record, run};
use futures_util::StreamExt;
use rustix::fs::FallocateFlags;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use wrote::log::{repair, verify};
use wrote::{Error, Log, LogOptions, LogReader, Record, SyncPolicy};

const PRODUCERS: u64 = 4;
const PATIENCE: Duration = Duration::from_secs(120);

/// Returns the options of logs that run out of space while they prepare a segment.
fn ways() -> [LogOptions; 2] {
    let small = Log::options().segment_bytes(512 << 10).buffer_bytes(32 << 10);
    [small.clone().zeros(true), small.zeros(false)]
}

/// Allocates every block, including the ones reserved for root.
fn fill_up(folder: &Path) -> PathBuf {
    let path = leave_room_for(folder, 0);
    let ballast = File::options().write(true).open(&path).unwrap();
    let mut len = ballast.metadata().unwrap().len();
    for more in [1 << 20, 64 << 10, 4096] {
        while rustix::fs::fallocate(&ballast, FallocateFlags::empty(), len, more).is_ok() {
            len += more;
        }
    }
    path
}

/// Appends until an error. Returns the acknowledged records with their sequences, and the error.
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

/// Closes a log as soon as the file system has freed removed files.
fn close(log: &Log) {
    let patience = Instant::now() + PATIENCE;
    while let Err(error) = log.close() {
        assert!(error.errno() == libc::ENOSPC && Instant::now() < patience, "{error}");
        thread::sleep(Duration::from_millis(10));
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
    let more = log.append(b"more").and_then(|ticket| ticket.wait());
    assert_eq!(more.unwrap_err().errno(), libc::ENOSPC);
    assert_eq!(log.sync().unwrap_err().errno(), libc::ENOSPC);
    let acknowledged = produced.iter().map(|(acknowledged, _)| acknowledged.len()).sum::<usize>();
    assert!(acknowledged > 100, "{acknowledged} records");
    for (sequence, _) in produced.iter().flat_map(|(acknowledged, _)| acknowledged) {
        log.ticket(*sequence).wait().unwrap();
    }
    // Nothing was partly written, so the records in memory can still be written while the log is
    // open.
    assert_eq!(log.close().unwrap_err().errno(), libc::ENOSPC);
    fs::remove_file(ballast).unwrap();
    close(&log);
    drop(log);

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
fn a_log_goes_on_when_a_full_disk_has_room_again() {
    let mounted = or_skip!(Mounted::image("ext4", 32 << 20));
    for zeros in [true, false] {
        let path = mounted.path().join("log");
        let ballast = leave_room_for(mounted.path(), 4 << 20);
        let options = Log::options().buffer_bytes(32 << 10).zeros(zeros);
        let log = options.open(&path).unwrap();
        let (_, error) = produce(&log, 0);
        assert_eq!(error.errno(), libc::ENOSPC);
        fs::remove_file(&ballast).unwrap();
        let patience = Instant::now() + PATIENCE;
        // Records that were appended while the disk was full are written first.
        let mut appended = log.stats().next_sequence;
        while let Err(error) = log.append(b"with room again").and_then(|ticket| ticket.wait()) {
            assert!(error.errno() == libc::ENOSPC && Instant::now() < patience, "{error}");
            appended += 1;
        }
        assert_eq!(log.stats().durable_sequence, appended + 1);
        log.close().unwrap();
        assert_eq!(log.reader(0).unwrap().map(Result::unwrap).count() as u64, appended + 1);
        drop(log);
        fs::remove_dir_all(path).unwrap();
    }
}

#[test]
fn a_log_that_comes_to_its_quota_goes_on_when_that_is_larger() {
    let mounted = or_skip!(Mounted::image("btrfs", 256 << 20));
    let path = mounted.path().join("log");
    let btrfs = |words: &[&str], folder: &Path| {
        let words = words.iter().map(OsStr::new);
        run("btrfs", &words.chain([folder.as_os_str()]).collect::<Vec<_>>())
    };
    or_skip!(btrfs(&["quota", "enable"], mounted.path()));
    or_skip!(btrfs(&["subvolume", "create"], &path));
    or_skip!(btrfs(&["qgroup", "limit", "16M"], &path));
    let options = Log::options().segment_bytes(1 << 20).buffer_bytes(32 << 10);
    let log = options.open(&path).unwrap();
    let (acknowledged, error) = produce(&log, 0);
    assert_eq!(error.errno(), libc::EDQUOT, "{error}");
    assert!(error.to_string().contains("Disk quota exceeded"), "{error}");
    let appended = log.stats().next_sequence;
    or_skip!(btrfs(&["qgroup", "limit", "64M"], &path));
    let ticket = log.append(b"with room again").unwrap();
    wait_with_room(&log, ticket.sequence());
    log.close().unwrap();
    let found: Vec<Record> = log.reader(0).unwrap().map(Result::unwrap).collect();
    assert_eq!(found.len() as u64, appended + 1);
    for (sequence, number) in acknowledged {
        assert_eq!(found[sequence as usize].bytes, record(0, number));
    }
}

#[test]
fn a_stream_and_a_follower_go_on_when_a_full_disk_has_room_again() {
    let mounted = or_skip!(Mounted::image("ext4", 32 << 20));
    let path = mounted.path().join("log");
    let ballast = leave_room_for(mounted.path(), 4 << 20);
    let log = Log::options().buffer_bytes(32 << 10).open(&path).unwrap();
    let (stream, mut follower) = (
        log.reader(0).unwrap().following().unwrap().into_stream().unwrap(),
        LogReader::open(&path, 0).unwrap().following().unwrap(),
    );
    let streaming = thread::spawn(|| block_on(stream.map(Result::unwrap).collect::<Vec<_>>()));
    let is_over = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&is_over);
    let following = thread::spawn(move || {
        let mut found: Vec<Record> = Vec::new();
        loop {
            let is_last = ended.load(Ordering::SeqCst);
            let before = found.len();
            found.extend(follower.next_within(Duration::from_millis(10)).unwrap());
            if is_last && found.len() == before {
                return found;
            }
        }
    });
    let (_, error) = produce(&log, 0);
    assert!(error.errno() == libc::ENOSPC && log.is_waiting_for_room());
    assert_eq!(log.check().unwrap_err().errno(), libc::ENOSPC);
    fs::remove_file(&ballast).unwrap();
    // The log continues without any call.
    let patience = Instant::now() + PATIENCE;
    while log.is_waiting_for_room() {
        assert!(Instant::now() < patience);
        thread::sleep(Duration::from_millis(10));
    }
    log.check().unwrap();
    close(&log);
    let streamed = streaming.join().unwrap();
    is_over.store(true, Ordering::SeqCst);
    let found: Vec<Record> = log.reader(0).unwrap().map(Result::unwrap).collect();
    assert!(streamed == found && following.join().unwrap() == found);
    assert_eq!(found.len() as u64, log.stats().next_sequence);
}

#[test]
fn a_log_that_is_dropped_on_a_full_disk_ends_what_waits_for_it_with_the_error() {
    let mounted = or_skip!(Mounted::image("ext4", 32 << 20));
    let path = mounted.path().join("log");
    leave_room_for(mounted.path(), 4 << 20);
    let log = Log::options().buffer_bytes(32 << 10).open(&path).unwrap();
    let mut stream = log.reader(0).unwrap().following().unwrap().into_stream().unwrap();
    let (acknowledged, error) = produce(&log, 0);
    assert_eq!(error.errno(), libc::ENOSPC);
    let unwritten = log.ticket(log.stats().next_sequence - 1).into_owned();
    drop(log);
    assert_eq!(block_on(unwritten).unwrap_err().errno(), libc::ENOSPC);
    let mut records = 0;
    let ended = loop {
        match block_on(stream.next()).expect("an error before the end") {
            Ok(_) => records += 1,
            Err(error) => break error,
        }
    };
    assert!(ended.errno() == libc::ENOSPC && records >= acknowledged.len(), "{ended}");
    assert!(block_on(stream.next()).is_none());
}

#[test]
fn a_log_opens_with_two_mebibytes_free() {
    let mounted = or_skip!(Mounted::image("ext4", 32 << 20));
    let path = mounted.path().join("log");
    leave_room_for(mounted.path(), 2 << 20);
    for number in 0..20 {
        let log = Log::open(&path).unwrap();
        let ticket = log.append(b"an event").unwrap();
        assert_eq!(ticket.sequence(), number);
        ticket.wait().unwrap();
        // Some space is prepared ahead, but no segment of 64 MiB.
        let taken = taken_bytes(&path);
        assert!(taken < 512 << 10, "{taken} bytes");
        log.close().unwrap();
    }
}

/// Returns the number of bytes of disk space that a log's files use.
fn taken_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().metadata().unwrap().blocks() * 512).sum()
}

#[test]
fn a_log_prepares_three_times_its_records_at_most_until_it_is_closed() {
    let mounted = or_skip!(Mounted::image("ext4", 32 << 20));
    let path = mounted.path().join("log");
    let log = Log::open(&path).unwrap();
    let mut records_bytes = 0;
    for number in 1..=2000 {
        log.append(b"an event").unwrap().wait().unwrap();
        // Each record is flushed alone, so it takes up a block.
        records_bytes = number * 4096;
        let taken = taken_bytes(&path);
        let most = records_bytes * 4 + (128 << 10);
        assert!(taken <= most, "{taken} bytes for {number} records");
    }
    log.close().unwrap();
    let taken = taken_bytes(&path);
    // Files of up to 4 MiB have room for two batches after the last one.
    assert!(taken <= records_bytes + (128 << 10), "{taken} bytes for {records_bytes}");
}

#[test]
fn a_repair_that_finds_the_disk_full_leaves_nothing_and_can_be_made_later() {
    let mounted = or_skip!(Mounted::image("ext4", 32 << 20));
    let path = mounted.path().join("log");
    let options = Log::options().sync(SyncPolicy::No).buffer_bytes(32 << 10);
    let log = options.segment_bytes(512 << 10).open(&path).unwrap();
    for number in 0..2000 {
        drop(log.append(&record(0, number)).unwrap());
    }
    log.close().unwrap();
    let first = fixtures::names(&path).into_iter().find(|name| name != "lock").unwrap();
    let mut bytes = fs::read(path.join(&first)).unwrap();
    bytes[100_000..100_100].fill(0);
    fs::write(path.join(&first), &bytes).unwrap();
    let names = fixtures::names(&path);

    let ballast = fill_up(mounted.path());
    assert_eq!(repair(&path).unwrap_err().errno(), libc::ENOSPC);
    assert_eq!(fixtures::names(&path), names);
    assert!(fs::read(path.join(&first)).unwrap() == bytes);
    fs::remove_file(ballast).unwrap();
    assert_eq!(repair(&path).unwrap().kept_aside.len(), 1);
    assert!(verify(&path, None).unwrap().damage.is_empty());
}

#[test]
fn a_log_for_which_there_is_no_room_at_all_is_not_begun_and_can_be_later() {
    let mounted = or_skip!(Mounted::image("ext4", 32 << 20));
    let path = mounted.path().join("log");
    let ballast = fill_up(mounted.path());
    let options = Log::options().segment_bytes(4 << 20).zeros(false);
    let refused = options.open(&path).and_then(|log| log.append(b"first")?.wait());
    assert_eq!(refused.unwrap_err().errno(), libc::ENOSPC);
    fs::remove_file(ballast).unwrap();
    let log = reopen(&options, &path);
    assert_eq!(log.append(b"first").unwrap().sequence(), 0);
    log.close().unwrap();
    assert_eq!(log.reader(0).unwrap().count(), 1);
}

/// Appends records until a wait reports that a record may still be written. Returns the number of
/// that record.
fn append_until_not_yet(
    log: &Log,
    mut numbers: impl Iterator<Item = u64>,
    errno: i32,
) -> Option<u64> {
    numbers.find(|number| {
        let Err(error) = log.append(&record(0, *number)).unwrap().wait() else { return false };
        assert!(matches!(error, Error::NotYet { .. }), "{error}");
        assert_eq!(error.errno(), errno, "{error}");
        assert!(matches!(log.check(), Err(Error::NotYet { .. })));
        assert!(log.is_waiting_for_room());
        true
    })
}

/// Waits for a record that could not be written earlier. A write that began before there was room
/// may still fail.
fn wait_with_room(log: &Log, number: u64) {
    loop {
        match log.ticket(number).wait() {
            Err(Error::NotYet { .. }) => {}
            written => return written.unwrap(),
        }
    }
}

/// Opens files until the process has no more descriptors, and returns them.
fn take_descriptors() -> Vec<File> {
    std::iter::from_fn(|| File::open("/dev/null").ok()).collect()
}

#[test]
fn a_log_without_a_descriptor_or_at_the_limit_of_lengths_waits_and_writes_each_record_once() {
    let test = "\
        a_log_without_a_descriptor_or_at_the_limit_of_lengths_waits_and_writes_each_record_once";
    let Some(folder) = std::env::var_os(FOLDER) else {
        let folder = fixtures::folder();
        return fixtures::again(module_path!(), test, FOLDER, folder.path());
    };
    // SAFETY: the signal is ignored, so no handler is installed.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let path = Path::new(&folder).join("log");
    let options = Log::options().segment_bytes(128 << 10).buffers(2);
    let log = options.buffer_bytes(32 << 10).open(&path).unwrap();
    let whole = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(100), ..whole }).unwrap();
    let taken = take_descriptors();
    let mut number = append_until_not_yet(&log, 0.., libc::EMFILE).unwrap();
    drop(taken);
    wait_with_room(&log, number);
    number += 1;
    // One descriptor is left, and opening needs two. If a segment is closed first, there are two.
    let mut taken = take_descriptors();
    taken.pop();
    let until = number + 1000;
    let waited = append_until_not_yet(&log, number..until, libc::EMFILE);
    drop(taken);
    waited.into_iter().for_each(|waited| wait_with_room(&log, waited));
    number = waited.map_or(until, |waited| waited + 1);
    setrlimit(Resource::Nofile, whole).unwrap();
    let whole = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: Some(64 << 10), ..whole }).unwrap();
    number = append_until_not_yet(&log, number.., libc::EFBIG).unwrap();
    setrlimit(Resource::Fsize, whole).unwrap();
    wait_with_room(&log, number);
    number += 1;
    log.close().unwrap();
    let found: Vec<Record> = log.reader(0).unwrap().map(Result::unwrap).collect();
    assert_eq!(found.len() as u64, number);
    assert!((0..).zip(found).all(|(number, found)| found.bytes == record(0, number)));
}
