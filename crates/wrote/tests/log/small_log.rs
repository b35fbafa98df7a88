//! Small logs for tests, and their records.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;
use wrote::{Error, Log, LogOptions, LogReader, Record, SyncPolicy, Ticket};

pub const SYNCS: [SyncPolicy; 4] = [
    SyncPolicy::Always,
    SyncPolicy::EverySec,
    SyncPolicy::Interval(Duration::from_millis(1)),
    SyncPolicy::No,
];
pub const SEGMENT_BYTES: u64 = 256 << 10;
pub const BUFFER_BYTES: usize = 16 << 10;
/// The maximum wait for an event in the background.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The environment variable with the log's folder, for a test that runs itself again in another
/// process.
pub const FOLDER: &str = "WROTE_TEST_FOLDER";

/// Creates a folder on a disk. Returns it with the path of a log in it.
pub fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = fixtures::folder();
    let path = folder.path().join("log");
    (folder, path)
}

/// Returns the options of a small log, which fills buffers and segments often.
pub fn small() -> LogOptions {
    Log::options()
        .sync(SyncPolicy::No)
        .segment_bytes(SEGMENT_BYTES)
        .buffers(4)
        .buffer_bytes(BUFFER_BYTES)
}

/// Returns the record with this number, which has up to 3000 letters.
pub fn record(number: u64) -> Vec<u8> {
    let len = number * 7919 % 3001;
    (0..len).map(|place| b'a' + ((number + place) % 26) as u8).collect()
}

/// Appends a record as a task does, by awaiting room without blocking its thread.
pub async fn append_when_room<'log>(log: &'log Log, bytes: &[u8]) -> Result<Ticket<'log>, Error> {
    loop {
        if let Some(ticket) = log.try_append(&[bytes])? {
            return Ok(ticket);
        }
        log.room().await?;
    }
}

/// Reads all records of a log, without a lock.
pub fn read(folder: &Path) -> Vec<(u64, Vec<u8>)> {
    let reader = LogReader::open(folder, 0).unwrap();
    reader
        .map(|record| record.unwrap())
        .map(|Record { sequence, bytes, .. }| (sequence, bytes))
        .collect()
}

/// Returns the files of all segments, in order.
pub fn segments(folder: &Path) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|other| other == "segment")).collect();
    paths.sort();
    paths
}

struct Unparker(Thread);

impl Wake for Unparker {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future on a minimal executor, which sleeps until it is woken.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unparker(thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => thread::park(),
        }
    }
}
