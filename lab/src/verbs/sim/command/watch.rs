//! The seed of every thread, so that a hanging one is reported.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A program takes a millisecond, and its reduction some hundred programs. A program that takes
/// this long hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// The seed of each thread, and the time at which it began.
static BEGUN: Mutex<BTreeMap<usize, (u64, Instant)>> = Mutex::new(BTreeMap::new());

/// Records that a thread begins with a seed.
pub fn begin(thread: usize, seed: u64) {
    begun().insert(thread, (seed, Instant::now()));
}

/// Records that a thread has ended.
pub fn end(thread: usize) {
    begun().remove(&thread);
}

/// Starts a watcher that calls `lost` with any seed that takes too long.
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
