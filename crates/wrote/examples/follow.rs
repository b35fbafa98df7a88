//! Measures how soon after a write a follower has the record, what an idle follower costs, and how
//! fast a stream catches up.
//!
//! ```sh
//! cargo run --release -p wrote --example follow -- /mnt/data/new-folder
//! ```

use futures_util::{Stream, StreamExt};
use std::error::Error;
use std::future::Future;
use std::path::Path;
use std::pin::pin;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};
use std::time::{Duration, Instant, SystemTime};
use wrote::{Log, LogReader, Record, SyncPolicy};

const RECORDS: usize = 1000;
const DISTANCE: Duration = Duration::from_millis(1);
const MANY: usize = 1_000_000;
const IDLE: Duration = Duration::from_secs(10);

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (folder, is_writer) = match arguments.as_slice() {
        [folder] => (Path::new(folder), false),
        [folder, mode] if mode == "write" => (Path::new(folder), true),
        _ => return Err("usage: follow FOLDER, which is made and removed".into()),
    };
    if is_writer {
        return write_apart(folder);
    }
    std::fs::create_dir(folder)?;
    let measured = measure(folder);
    std::fs::remove_dir_all(folder)?;
    measured
}

fn measure(folder: &Path) -> Outcome<()> {
    for sync in [SyncPolicy::No, SyncPolicy::Always] {
        let log = Log::options().sync(sync).open(folder.join(format!("stream {sync:?}")))?;
        let stream = log.reader(0)?.following()?.into_stream()?;
        let arrivals = thread::spawn(|| arrivals(blocking(stream)));
        let written = write(&log)?;
        log.close()?;
        report(&format!("stream, {sync:?}"), &written, &arrivals.join().expect("no panic"));
    }
    let apart = folder.join("apart");
    let reader = LogReader::expect(&apart, 0)?.following()?;
    let arrivals = thread::spawn(|| arrivals(reader.take(RECORDS)));
    let child = Command::new(std::env::current_exe()?)
        .arg(&apart)
        .arg("write")
        .stdout(Stdio::piped())
        .spawn()?;
    let printed = String::from_utf8(child.wait_with_output()?.stdout)?;
    let written: Vec<u128> = printed.lines().map(str::parse).collect::<Result<_, _>>()?;
    report("reader of another process's log, No", &written, &arrivals.join().expect("no panic"));

    idle("a closed log", LogReader::open(&apart, RECORDS as u64)?.following()?)?;

    let many = folder.join("many");
    let log = Log::options().sync(SyncPolicy::Always).open(&many)?;
    for _ in 0..MANY {
        drop(log.append(&[b'x'; 128])?);
    }
    log.sync()?;
    for round in 0..3 {
        rate(&format!("LogReader, round {round}"), log.reader(0)?);
        rate(
            &format!("stream, round {round}"),
            blocking(log.reader(0)?.following()?.into_stream()?.take(MANY)),
        );
    }
    idle("an open log", LogReader::open(&many, MANY as u64)?.following()?)?;
    Ok(log.close()?)
}

/// Waits at the end of a log, and prints the cost.
fn idle(name: &str, mut follower: LogReader) -> Outcome<()> {
    let (before, began) = (processor_time()?, Instant::now());
    while began.elapsed() < IDLE {
        follower.next_within(IDLE)?;
    }
    let cost = processor_time()? - before;
    println!("an idle follower of {name}: {cost:?} of processor time in {IDLE:?}");
    Ok(())
}

/// Appends records with pauses, and returns when each was written.
fn write(log: &Log) -> Outcome<Vec<u128>> {
    let mut written = Vec::new();
    for _ in 0..RECORDS {
        thread::sleep(DISTANCE);
        log.append(&[b'x'; 128])?.until_written().wait()?;
        written.push(now_ns());
    }
    Ok(written)
}

/// Writes from another process, which prints the times.
fn write_apart(folder: &Path) -> Outcome<()> {
    let log = Log::options().sync(SyncPolicy::No).open(folder)?;
    write(&log)?.iter().for_each(|time| println!("{time}"));
    Ok(log.close()?)
}

fn arrivals(records: impl Iterator<Item = Result<Record, wrote::Error>>) -> Vec<u128> {
    records.map(|record| record.map(|_| now_ns()).expect("a record")).collect()
}

fn report(name: &str, written: &[u128], arrived: &[u128]) {
    assert_eq!(written.len(), arrived.len(), "every record arrives");
    let mut delays: Vec<i128> = written
        .iter()
        .zip(arrived)
        .map(|(&written, &arrived)| arrived as i128 - written as i128)
        .collect();
    delays.sort_unstable();
    let at = |percent: usize| delays[(delays.len() - 1) * percent / 100] / 1000;
    println!("{name}: delay P50 {} us, P99 {} us, most {} us", at(50), at(99), at(100));
}

fn rate(name: &str, records: impl Iterator<Item = Result<Record, wrote::Error>>) {
    let began = Instant::now();
    let bytes: usize = records.map(|record| record.expect("a record").bytes.len()).sum();
    let elapsed = began.elapsed();
    println!(
        "{name}: {bytes} bytes in {elapsed:?}, {:.2} M records/s",
        MANY as f64 / elapsed.as_secs_f64() / 1e6
    );
}

fn now_ns() -> u128 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.expect("the clock is after 1970").as_nanos()
}

/// Returns this thread's user and system time (`/proc/pid/schedstat`).
fn processor_time() -> Outcome<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let ns = text.split(' ').next().unwrap_or_default();
    Ok(Duration::from_nanos(ns.parse()?))
}

struct Unparker(Thread);

impl Wake for Unparker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Iterates over a stream with a minimal executor.
fn blocking<S: Stream>(stream: S) -> impl Iterator<Item = S::Item> {
    let mut stream = Box::pin(stream);
    std::iter::from_fn(move || {
        let waker = Arc::new(Unparker(thread::current())).into();
        loop {
            let mut next = pin!(stream.next());
            match next.as_mut().poll(&mut Context::from_waker(&waker)) {
                Poll::Ready(item) => return item,
                Poll::Pending => thread::park(),
            }
        }
    })
}
