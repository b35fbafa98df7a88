//! `lab soak`: a log appended to, rotated, cut short by its retention and read, for hours on a
//! small disk. Memory, descriptors and files must stay flat.

#![forbid(unsafe_code)]

mod usage;

use super::Trouble;
use crate::fixtures::{record, sender};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use usage::Usage;
use wrote::{Log, LogReader, Record};

/// Appends to a log and reads it for a time.
#[derive(clap::Args)]
pub struct Arguments {
    /// The folder, on a small disk.
    folder: PathBuf,
    /// How long, in seconds.
    #[arg(long)]
    seconds: u64,
}

const SEGMENT_BYTES: u64 = 8 << 20;
const RETAIN_BYTES: u64 = 64 << 20;
const PRODUCERS: u64 = 4;
/// Records that a producer appends before it waits for the last of them.
const WINDOW: u64 = 20;
/// Samples of the usage.
const SAMPLES: u32 = 120;

/// The work that was done.
#[derive(Debug, Default)]
struct Done {
    appended: AtomicU64,
    followed: AtomicU64,
    read: AtomicU64,
    openings: AtomicU64,
    stop: AtomicBool,
}

/// Appends and reads, and fails if something grew.
pub fn run(arguments: &Arguments) -> Result<(), Trouble> {
    let (folder, time) = (&*arguments.folder.join("log"), Duration::from_secs(arguments.seconds));
    let done = Done::default();
    // The readers open a log that is there.
    open(folder)?.close()?;
    let mut samples = Vec::new();
    thread::scope(|scope| -> Result<(), Trouble> {
        let mut threads = vec![
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
            samples.push(Usage::now(folder)?);
        }
        done.stop.store(true, Ordering::Relaxed);
        threads.drain(..).try_for_each(|thread| thread.join().expect("no panic"))
    })?;
    eprintln!("{done:?}");
    // Growth of the page cache and the allocator in the first half is expected to stay.
    let (first, second) = samples.split_at(samples.len() / 2);
    let (first, second) = (Usage::greatest(first), Usage::greatest(second));
    eprintln!("first half, at most:  {first:?}\nsecond half, at most: {second:?}");
    second.is_flat_after(&first, RETAIN_BYTES + 3 * SEGMENT_BYTES)
}

fn open(folder: &Path) -> Result<Log, wrote::Error> {
    let options = Log::options().segment_bytes(SEGMENT_BYTES).retain_bytes(RETAIN_BYTES);
    options.buffers(4).buffer_bytes(256 << 10).open(folder)
}

/// Opens the log, appends from several threads, and closes it, repeatedly.
fn write(folder: &Path, done: &Done) -> Result<(), Trouble> {
    while !done.stop.load(Ordering::Relaxed) {
        let log = open(folder)?;
        done.openings.fetch_add(1, Ordering::Relaxed);
        thread::scope(|scope| {
            let append = |producer| append(log.clone(), producer, done);
            let threads: Vec<_> =
                (0..PRODUCERS).map(|producer| scope.spawn(move || append(producer))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
        })?;
        log.close()?;
    }
    Ok(())
}

/// Appends for some seconds.
fn append(log: Log, producer: u64, done: &Done) -> Result<(), Trouble> {
    let end = Instant::now() + Duration::from_secs(5);
    let mut random = Xoshiro256PlusPlus::seed_from_u64(producer);
    while Instant::now() < end && !done.stop.load(Ordering::Relaxed) {
        for number in 1..=WINDOW {
            let ticket = log.append(&record(producer, random.random()))?;
            // The last one covers the earlier ones.
            if number == WINDOW {
                ticket.wait()?;
            }
        }
        done.appended.fetch_add(WINDOW, Ordering::Relaxed);
        // A few megabytes per second: a faster log would only wear the disk.
        thread::sleep(Duration::from_millis(30));
    }
    Ok(())
}

/// Follows the log from record to record.
fn follow(folder: &Path, done: &Done) -> Result<(), Trouble> {
    let mut reader = LogReader::open(folder, 0)?.following()?;
    let mut next = None;
    while !done.stop.load(Ordering::Relaxed) {
        let Some(record) = reader.next_within(Duration::from_millis(200))? else { continue };
        check(folder, &record, &mut next)?;
        done.followed.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Reads the whole log repeatedly.
fn read(folder: &Path, done: &Done) -> Result<(), Trouble> {
    while !done.stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_secs(2));
        let mut next = None;
        for record in LogReader::open(folder, 0)? {
            match record {
                Ok(record) => check(folder, &record, &mut next)?,
                // Retention has removed the segment that comes next.
                Err(error) if error.errno() == 2 => break,
                Err(error) => return Err(error.into()),
            }
        }
        done.read.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Checks a record that a reader of the folder's log found. A reader on a busy machine may skip
/// records that retention has removed, and no others.
fn check(folder: &Path, found: &Record, next: &mut Option<u64>) -> Result<(), Trouble> {
    let sequence = found.sequence;
    if next.is_some_and(|next| next != sequence) && !are_removed_before(folder, sequence)? {
        return Err(format!("record {sequence} comes where {next:?} belongs").into());
    }
    *next = Some(sequence + 1);
    match sender(&found.bytes) {
        Some((producer, number)) if found.bytes == record(producer, number) => Ok(()),
        _ => Err(format!("record {sequence} is not as it was written").into()),
    }
}

fn are_removed_before(folder: &Path, sequence: u64) -> Result<bool, Trouble> {
    let first = LogReader::open(folder, 0)?.next().transpose()?;
    Ok(first.is_none_or(|first| first.sequence >= sequence))
}
