//! Sends a burst of records from four threads that do not wait for the disk, to a log and to a
//! thread that writes what it receives from a channel.
//!
//! `cargo run --release -p wrote --example burst -- NEW_FOLDER [MEGABYTES]`

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};
use wrote::{Log, SyncPolicy};

const THREADS: u64 = 4;

/// Calls `take` with records of 300 to 2000 bytes from each thread. Returns their number, and the
/// time until all were accepted.
fn send(bytes: u64, take: impl Fn(&[u8]) + Sync) -> (u64, Duration) {
    let (record, begin) = ([b'r'; 2000], Instant::now());
    let sender = || {
        let (mut sent, mut records) = (0, 0);
        while sent < bytes / THREADS {
            let len = 300 + (records * 7919 % 1701) as usize;
            take(&record[..len]);
            (sent, records) = (sent + len as u64, records + 1);
        }
        records
    };
    let records = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(sender)).collect();
        threads.into_iter().map(|thread| thread.join().expect("it does not panic")).sum()
    });
    (records, begin.elapsed())
}

fn by_log(folder: &Path, bytes: u64) -> Result<(u64, Duration), Box<dyn Error>> {
    let log = Log::options().sync(SyncPolicy::No).open(folder)?;
    let taken = send(bytes, |record| drop(log.append(record).expect("the log is open")));
    log.close()?;
    Ok(taken)
}

fn by_channel(path: &Path, bytes: u64) -> Result<(u64, Duration), Box<dyn Error>> {
    let (sender, receiver) = sync_channel::<Vec<u8>>(4096);
    let mut file = BufWriter::with_capacity(1 << 20, File::create_new(path)?);
    let writer = thread::spawn(move || {
        receiver.iter().try_for_each(|record| file.write_all(&record))?;
        file.into_inner()?.sync_data()
    });
    let taken = send(bytes, |record| sender.send(record.to_vec()).expect("the thread receives"));
    drop(sender);
    writer.join().expect("it does not panic")?;
    Ok(taken)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("usage: burst NEW_FOLDER [MEGABYTES]")?);
    let megabytes = arguments.next().map_or(Ok(1000), |size| size.to_string_lossy().parse())?;
    fs::create_dir(&folder)?;
    for (name, take) in [("log", by_log as fn(&Path, u64) -> _), ("channel", by_channel)] {
        let begin = Instant::now();
        let (records, taken) = take(&folder.join(name), megabytes * 1_000_000)?;
        let rate = |time: Duration| records as f64 / time.as_secs_f64() / 1000.0;
        let (taken, durable) = (rate(taken), rate(begin.elapsed()));
        println!("{name:8} {taken:6.0} thousand records a second taken, {durable:6.0} durable");
    }
    Ok(())
}
