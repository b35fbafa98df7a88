//! Threads produce events while another counts them, until the log is closed.
//!
//! `cargo run --release -p wrote --example follower -- FOLDER [EVENTS]`

use std::collections::BTreeMap;
use std::error::Error;
use std::thread;
use wrote::{Log, SyncPolicy};

const PRODUCERS: u64 = 4;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let folder = arguments.next().ok_or("usage: follower FOLDER [EVENTS]")?;
    let events = arguments.next().map_or(Ok(100_000), |events| events.to_string_lossy().parse())?;
    // The oldest events are removed beyond one gigabyte.
    let log = Log::options().sync(SyncPolicy::EverySec).retain_bytes(1 << 30).open(folder)?;
    let mut tail = log.reader(log.next_sequence())?.following()?;
    let counting = thread::spawn(move || {
        let mut counts: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
        // Waits for the next event, and ends after the last one of a closed log.
        while let Some(event) = tail.next_lent()? {
            *counts.entry(event.bytes.to_owned()).or_default() += 1;
        }
        Ok::<_, wrote::Error>((counts, tail.passed_over()))
    });
    thread::scope(|scope| {
        let produce = |producer: u64| {
            let kind = format!("event of producer {producer}");
            (0..events / PRODUCERS).try_for_each(|_| log.append(kind.as_bytes()).map(drop))
        };
        let producers = (0..PRODUCERS).map(|producer| scope.spawn(move || produce(producer)));
        let producers: Vec<_> = producers.collect();
        producers.into_iter().try_for_each(|producer| producer.join().expect("no panic"))
    })?;
    log.close()?;
    let (counts, passed_over) = counting.join().expect("no panic")?;
    for (event, count) in counts {
        println!("{count:8} {}", String::from_utf8_lossy(&event));
    }
    println!("{passed_over:8} were removed before they were read");
    Ok(())
}
