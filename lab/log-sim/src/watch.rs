//! Which seed every thread is at, so that one that never comes to its end is told.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A program takes a millisecond, and to find the smallest part of one takes some hundred programs. One
/// that takes so long waits for what never comes.
const LIMIT: Duration = Duration::from_secs(60);

/// By thread: its seed, and since when it is at it.
static BEGUN: Mutex<BTreeMap<usize, (u64, Instant)>> = Mutex::new(BTreeMap::new());

/// The thread with this number begins with the seed.
pub fn begin(thread: usize, seed: u64) {
    begun().insert(thread, (seed, Instant::now()));
}

/// The thread with this number has ended.
pub fn end(thread: usize) {
    begun().remove(&thread);
}

/// From now on `lost` is called with any seed that takes too long.
pub fn start(lost: impl Fn(u64) + Send + 'static) {
    thread::spawn(move || {
        loop {
            thread::sleep(Duration::from_secs(1));
            begun()
                .values()
                .filter(|(_, since)| since.elapsed() > LIMIT)
                .for_each(|(seed, _)| lost(*seed));
        }
    });
}

fn begun() -> MutexGuard<'static, BTreeMap<usize, (u64, Instant)>> {
    BEGUN.lock().unwrap_or_else(PoisonError::into_inner)
}
