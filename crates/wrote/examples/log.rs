//! Appends from many threads at once; each goes on when its record survives a power loss.
//!
//! `cargo run --release -p wrote --example log -- FOLDER`

use std::error::Error;
use std::thread;
use std::time::Instant;
use wrote::{Log, SyncPolicy};

const THREADS: u64 = 64;
const RECORDS_PER_THREAD: u64 = 1000;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: log FOLDER")?;
    let log = Log::options().sync(SyncPolicy::Always).open(&folder)?;
    let began = Instant::now();

    thread::scope(|scope| {
        let appending = |thread: u64| {
            let log = log.clone();
            scope.spawn(move || -> Result<(), wrote::Error> {
                for number in 0..RECORDS_PER_THREAD {
                    let ticket = log.append(format!("{thread}: {number}").as_bytes())?;
                    ticket.wait()?; // it survives a power loss; so do all before it in the log
                }
                Ok(())
            })
        };
        let threads: Vec<_> = (0..THREADS).map(appending).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
    })?;

    let records = THREADS * RECORDS_PER_THREAD;
    let (elapsed_s, flushes) = (began.elapsed().as_secs_f64(), log.stats().flushes);
    println!("{records} durable records in {elapsed_s:.2} s, by {flushes} flushes");
    log.close()?;

    // By sequence, in the order of the appends.
    for record in log.reader(0)?.take(3) {
        let record = record?;
        println!("{}: {}", record.sequence, String::from_utf8_lossy(&record.bytes));
    }
    Ok(())
}
