//! The background thread: drives a log while no waiting caller does, and keeps the log's timers.

use super::driver::{LogDriver, half_done};
use super::state::LogState;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The approximate maximum time that a record without a waiting caller stays in memory.
const LINGER: Duration = Duration::from_millis(10);
/// The minimum time between ticks, even if the interval of [`SyncPolicy::Interval`] is shorter.
const TICK_MIN: Duration = Duration::from_millis(1);
/// Time without a new record after which the thread sleeps until one arrives, or for [`SLEEP`].
const QUIET: Duration = Duration::from_secs(1);
/// The longest sleep. Producers read the flag `is_asleep` without a fence, so a record may miss it.
const SLEEP: Duration = Duration::from_secs(1);

/// Drives the log until `stop` is set. The caller sets it, and then wakes the thread.
pub(super) fn run(driver: &LogDriver, segment_age: Option<Duration>, stop: &AtomicBool) {
    let _panic = FailedByPanic(driver);
    let mut clock = Clock { synced_at: Instant::now(), moved_at: Instant::now(), next: None };
    while !stop.load(Ordering::SeqCst) {
        // A caller that holds the flusher wakes this thread if it leaves work behind.
        let _ = driver.drive(|| stop.load(Ordering::SeqCst));
        if driver.state.has_failed() {
            // Code called by `drive`, such as a waker or a channel, may have parked and so consumed
            // the wake-up that followed `stop`.
            if !stop.load(Ordering::SeqCst) {
                std::thread::park();
            }
            continue;
        }
        if clock.moved_at.elapsed() < QUIET || clock.has_sync_due(&driver.state) {
            let interval = driver.state.terms.interval();
            std::thread::park_timeout(interval.unwrap_or(LINGER).clamp(TICK_MIN, LINGER));
        } else {
            driver.sleep(SLEEP);
        }
        clock.tick(driver, segment_age);
    }
}

/// Fails the log if the thread panics, so that callers which sleep until it has driven do not sleep
/// forever.
struct FailedByPanic<'a>(&'a LogDriver);

impl Drop for FailedByPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.state.fail(half_done());
        }
    }
}

struct Clock {
    synced_at: Instant,
    /// When the thread last saw a new record.
    moved_at: Instant,
    /// The log's next sequence at the last tick.
    next: Option<u64>,
}

impl Clock {
    /// Returns whether written records wait for the next interval, so that the thread must not
    /// sleep long.
    fn has_sync_due(&self, state: &LogState) -> bool {
        state.terms.interval().is_some() && state.durable.done() < state.written.done()
    }

    /// Requests the records appended before the last tick: written, or durable if the log promises
    /// that.
    fn tick(&mut self, driver: &LogDriver, segment_age: Option<Duration>) {
        let state = &driver.state;
        let next = state.claims.next_start().first_sequence;
        let before = self.next.replace(next);
        if before != Some(next) {
            self.moved_at = Instant::now();
        }
        if let Some(before) = before {
            // Records may have been cut since.
            state.frontier(state.promised()).want(before.min(next));
        }
        if let Some(interval) = state.terms.interval()
            && self.synced_at.elapsed() >= interval
        {
            state.durable.want(next);
            self.synced_at = Instant::now();
        }
        driver.retain_if_released();
        if let Some(age) = segment_age {
            driver.rotate_if_older(age);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Log;
    use super::*;
    use crate::SyncPolicy;
    use std::sync::mpsc::{Sender, channel};
    use std::sync::{Arc, Mutex};
    use std::task::{Wake, Waker};
    use std::thread;

    /// Only a hang takes this long.
    const HANG: Duration = Duration::from_secs(60);

    /// A waker that fails the log, and sleeps until the thread is woken.
    struct Sleeper {
        driver: Arc<LogDriver>,
        begun: Mutex<Sender<()>>,
    }

    impl Wake for Sleeper {
        fn wake(self: Arc<Self>) {
            self.driver.state.fail(half_done());
            // Consumes an earlier wake-up.
            thread::park_timeout(Duration::ZERO);
            self.begun.lock().unwrap().send(()).unwrap();
            thread::park();
        }
    }

    #[test]
    fn a_log_is_closed_whose_thread_missed_the_wake_up_as_it_failed() {
        let folder = fixtures::folder();
        let log = Log::options().sync(SyncPolicy::No).open(folder.path()).unwrap();
        let (begun, has_begun) = channel();
        let sleeper = Sleeper { driver: Arc::clone(log.driver()), begun: Mutex::new(begun) };
        let waker = Waker::from(Arc::new(sleeper));
        log.driver().state.written.wake_at(1, None, &waker);
        // The log's thread writes the record, and calls the waker.
        drop(log.append(b"hello").unwrap());
        has_begun.recv_timeout(HANG).unwrap();
        let (closed, is_closed) = channel();
        thread::spawn(move || closed.send(log.close()));
        assert_eq!(is_closed.recv_timeout(HANG).unwrap().unwrap_err().errno(), libc::EIO);
    }
}
