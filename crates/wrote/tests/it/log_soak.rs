//! A test that appends to a log, rotates it, shortens it by retention and reads it for a long time
//! on a small disk (W8). The use of memory, descriptors, threads and files must not grow.
//!
//! `WROTE_SOAK_SECONDS` is the duration (120 by default).

use fixtures::{Mounted, or_skip, record, sender};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use wrote::{Log, LogReader, Record};

const DISK_BYTES: u64 = 320 << 20;
const SEGMENT_BYTES: u64 = 8 << 20;
const RETAIN_BYTES: u64 = 64 << 20;
const PRODUCERS: u64 = 4;
/// The number of records that a producer appends before it waits for the last of them.
const WINDOW: u64 = 20;
/// The number of samples of the resource usage.
const SAMPLES: u32 = 120;

/// The counts of the work done so far.
#[derive(Debug, Default)]
struct Done {
    appended: AtomicU64,
    followed: AtomicU64,
    read: AtomicU64,
    openings: AtomicU64,
    stop: AtomicBool,
}

#[test]
#[ignore = "nightly"]
fn a_log_in_use_for_a_time_takes_no_more_memory_descriptors_threads_and_files() {
    let seconds = std::env::var("WROTE_SOAK_SECONDS").map_or(120, |time| time.parse().unwrap());
    let (disk, time) = (or_skip!(Mounted::image("ext4", DISK_BYTES)), Duration::from_secs(seconds));
    let (folder, done) = (&*disk.path().join("log"), Done::default());
    // The readers need an existing log.
    open(folder).close().unwrap();
    let mut samples = Vec::new();
    thread::scope(|scope| {
        let threads = [
            scope.spawn(|| write(folder, &done)),
            scope.spawn(|| follow(folder, &done)),
            scope.spawn(|| read(folder, &done)),
        ];
        let begun = Instant::now();
        for number in 1..=SAMPLES {
            while begun.elapsed() < time * number / SAMPLES
                && !threads.iter().any(thread::ScopedJoinHandle::is_finished)
            {
                thread::sleep(Duration::from_millis(20));
            }
            samples.push(usage(folder));
        }
        done.stop.store(true, Ordering::Relaxed);
    });
    eprintln!("{done:?}");
    // The page cache and the allocator are expected to grow in the first half, and not to shrink
    // again.
    let (first, second) = samples.split_at(samples.len() / 2);
    let (first, second) = (greatest(first), greatest(second));
    eprintln!("{COUNTED:?}, at most: first half {first:?}, second half {second:?}");
    for (((what, slack), now), before) in COUNTED.into_iter().zip(second).zip(first) {
        assert!(now <= before + slack, "the {what} grew from {before} to {now}");
    }
    assert!(second[4] <= RETAIN_BYTES + 3 * SEGMENT_BYTES, "{} bytes on the disk", second[4]);
}

fn open(folder: &Path) -> Log {
    let options = Log::options().segment_bytes(SEGMENT_BYTES).retain_bytes(RETAIN_BYTES);
    options.buffers(4).buffer_bytes(256 << 10).open(folder).unwrap()
}

/// Opens the log, appends from several threads, and closes it, repeatedly.
fn write(folder: &Path, done: &Done) {
    while !done.stop.load(Ordering::Relaxed) {
        let log = open(folder);
        done.openings.fetch_add(1, Ordering::Relaxed);
        thread::scope(|scope| {
            let log = &log;
            (0..PRODUCERS)
                .for_each(|producer| drop(scope.spawn(move || append(log, producer, done))));
        });
        log.close().unwrap();
    }
}

/// Appends for five seconds, or until the test ends.
fn append(log: &Log, producer: u64, done: &Done) {
    let end = Instant::now() + Duration::from_secs(5);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(producer);
    while Instant::now() < end && !done.stop.load(Ordering::Relaxed) {
        for number in 1..=WINDOW {
            let ticket = log.append(&record(producer, random.random())).unwrap();
            // The last record covers the earlier ones.
            if number == WINDOW {
                ticket.wait().unwrap();
            }
        }
        done.appended.fetch_add(WINDOW, Ordering::Relaxed);
        // This limits the log to a few megabytes per second. A higher rate would only wear out the
        // disk.
        thread::sleep(Duration::from_millis(30));
    }
}

/// Follows the log, and checks each record.
fn follow(folder: &Path, done: &Done) {
    let mut reader = LogReader::open(folder, 0).unwrap().following().unwrap();
    let mut next = None;
    while !done.stop.load(Ordering::Relaxed) {
        let found = reader.next_within(Duration::from_millis(200)).unwrap();
        let Some(record) = found else { continue };
        check(folder, &record, &mut next);
        done.followed.fetch_add(1, Ordering::Relaxed);
    }
}

/// Reads the whole log repeatedly.
fn read(folder: &Path, done: &Done) {
    while !done.stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_secs(2));
        let mut next = None;
        for record in LogReader::open(folder, 0).unwrap() {
            match record {
                Ok(record) => check(folder, &record, &mut next),
                // Retention has removed the next segment.
                Err(error) if error.errno() == 2 => break,
                Err(error) => panic!("{error}"),
            }
        }
        done.read.fetch_add(1, Ordering::Relaxed);
    }
}

/// Checks a record that a reader of the log in `folder` has found. A reader on a busy system may
/// skip records that retention has removed, but no others.
fn check(folder: &Path, found: &Record, next: &mut Option<u64>) {
    let sequence = found.sequence;
    if next.is_some_and(|next| next != sequence) {
        let first = LogReader::open(folder, 0).unwrap().next().transpose().unwrap();
        let are_removed = first.is_none_or(|first| first.sequence >= sequence);
        assert!(are_removed, "record {sequence} comes where {next:?} belongs");
    }
    *next = Some(sequence + 1);
    let is_whole = sender(&found.bytes)
        .is_some_and(|(producer, number)| found.bytes == record(producer, number));
    assert!(is_whole, "record {sequence} is not as it was written");
}

/// The counted resources, each with the growth that is accepted. An allocator keeps some memory,
/// and a reader opens a segment before it closes the previous one.
const COUNTED: [(&str, u64); 5] = [
    ("bytes of memory", 8 << 20),
    ("descriptors", 6),
    ("threads", 1),
    ("files", 2),
    ("bytes on the disk", u64::MAX / 2),
];

/// Returns the resource usage of this process and of the log's `folder`, in the order of
/// [`COUNTED`].
fn usage(folder: &Path) -> [u64; COUNTED.len()] {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let memory = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    let memory: u64 = memory.split_whitespace().next().unwrap().parse().unwrap();
    let descriptors = fs::read_dir("/proc/self/fd").unwrap().count() as u64;
    // The kernel adds workers to a busy ring (`iou-wrk-`), and stops them later. A thread that has
    // exited has no name.
    let names = fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = names.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    let threads = names.filter(|name| !name.starts_with("iou-")).count() as u64;
    // A file of the log may be removed at this moment.
    let files = fs::read_dir(folder).unwrap().flatten().filter_map(|file| file.metadata().ok());
    let blocks: Vec<u64> = files.map(|file| file.blocks()).collect();
    let disk_bytes = blocks.iter().sum::<u64>() * 512;
    [memory << 10, descriptors, threads, blocks.len() as u64, disk_bytes]
}

/// Returns the maximum of each count.
fn greatest(samples: &[[u64; COUNTED.len()]]) -> [u64; COUNTED.len()] {
    std::array::from_fn(|place| samples.iter().map(|sample| sample[place]).max().unwrap_or(0))
}
