//! The thread that drives a log while nobody who waits does, and does what is due by the clock.

use super::shared::Shared;
use crate::Sync;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long a record that nobody waits for stays in memory at most, about, before it is written.
const LINGER: Duration = Duration::from_millis(10);
/// However short the interval is that was asked for, the clock is looked at no more often than this.
const TICK_MIN: Duration = Duration::from_millis(1);
/// So long after the last record the thread sleeps until one comes...
const QUIET: Duration = Duration::from_secs(1);
/// ... or until so much time has passed: the flag that it sleeps is read without a fence, so that a
/// record may miss it.
const SLEEP: Duration = Duration::from_secs(1);

/// Drives until `stop`.
pub(super) fn run(shared: &Arc<Shared>, segment_age: Option<Duration>, stop: &AtomicBool) {
    let mut clock = Clock { synced_at: Instant::now(), moved_at: Instant::now(), next: None };
    while !stop.load(Ordering::SeqCst) {
        // Who has the flusher wakes us when they leave something behind.
        let _ = shared.drive(|_| stop.load(Ordering::SeqCst));
        if shared.check().is_err() {
            std::thread::park();
            continue;
        }
        if clock.moved_at.elapsed() < QUIET || clock.is_something_due_later(shared) {
            std::thread::park_timeout(Clock::tick_after(shared));
        } else {
            sleep(shared);
        }
        clock.tick(shared, segment_age);
    }
}

fn sleep(shared: &Shared) {
    shared.is_asleep.store(true, Ordering::SeqCst);
    if !shared.claims.has_open_records() && !shared.has_work() {
        std::thread::park_timeout(SLEEP);
    }
    shared.is_asleep.store(false, Ordering::SeqCst);
}

/// What the thread knows of the time.
struct Clock {
    synced_at: Instant,
    /// When a record was last seen to have come.
    moved_at: Instant,
    /// The sequence of the next record, when that was looked at last.
    next: Option<u64>,
}

impl Clock {
    fn interval(shared: &Shared) -> Option<Duration> {
        match shared.sync {
            Sync::EverySec => Some(Duration::from_secs(1)),
            Sync::Interval(interval) => Some(interval),
            Sync::Always | Sync::No => None,
        }
    }

    /// How long until the next look at the clock.
    fn tick_after(shared: &Shared) -> Duration {
        Clock::interval(shared).unwrap_or(LINGER).clamp(TICK_MIN, LINGER)
    }

    /// Whether something waits for its time, so that the thread must not sleep for long.
    fn is_something_due_later(&self, shared: &Shared) -> bool {
        Clock::interval(shared).is_some() && shared.durable.done() < shared.written.done()
    }

    /// Asks for what is due: what was appended before the last tick is written, or made durable where that is
    /// the log's promise.
    fn tick(&mut self, shared: &Shared, segment_age: Option<Duration>) {
        let next = shared.claims.next_start().first_sequence;
        let before = self.next.replace(next);
        if before != Some(next) {
            self.moved_at = Instant::now();
        }
        if let Some(before) = before {
            shared.asked().want(before);
        }
        if let Some(interval) = Clock::interval(shared)
            && self.synced_at.elapsed() >= interval
        {
            shared.durable.want(next);
            self.synced_at = Instant::now();
        }
        if let Some(age) = segment_age {
            shared.rotate_if_older(age);
        }
    }
}
