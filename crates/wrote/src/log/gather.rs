//! The only feedback loop of a log. If flushes are long, it lets the producers whose records just
//! became durable share the next flush.
//!
//! Callers that arrive during a flush share the next one. If producers append again as soon as
//! their record is durable, they form two halves that take turns: two flushes do the work of one.
//! On a disk that performs few operations per second, this halves the number of records per second.
//! So after a flush of at least 50 us that made n records durable, the next flush waits for n more
//! records, but for at most a quarter of that flush's duration plus 10 us. If the wait did not
//! bring at least half of n, the next 1, 2, 4 .. 64 flushes do not wait. No wait is needed if half
//! of the producers use the processor for as long as a flush lasts: then the processor and the disk
//! both stay busy.

use std::time::{Duration, Instant};

/// The minimum duration of a flush after which a wait is worth it.
const FLUSH_MIN: Duration = Duration::from_micros(50);
/// The time from a producer's wake-up to its next record. It does not depend on the disk.
const WAKE: Duration = Duration::from_micros(10);
/// The maximum duration of a wait, however long the flush took.
const WAIT_MAX: Duration = Duration::from_millis(20);
/// The minimum length of a wait in which the waiting thread sleeps instead of yielding.
const SLEEPS_FROM: Duration = Duration::from_micros(500);
const SLEEP: Duration = Duration::from_micros(20);
/// The maximum number of flushes without a wait, after waits that were not worth it.
const PASSED_OVER_MAX: u32 = 64;

#[derive(Debug, Default)]
pub(crate) struct Gathering {
    wait: Option<Wait>,
    /// The remaining number of flushes that begin without a wait.
    passed_over: u32,
    /// The last number to which `passed_over` was set; 0 if the last wait was worth it.
    penalty: u32,
}

/// A wait for producers to append again.
#[derive(Debug)]
struct Wait {
    /// The number of records that the last flush made durable.
    durable: u64,
    /// The number of waiting records at which the wait ends, because as many have arrived as were
    /// flushed.
    expected: u64,
    longest: Duration,
    until: Instant,
    /// The number of waiting records when the wait began; `None` until it has begun.
    first: Option<u64>,
}

impl Gathering {
    /// Records a flush that took `time` and made `durable` records durable, while `waiting` later
    /// records wait for the next flush.
    pub(crate) fn note_flush(&mut self, time: Duration, durable: u64, waiting: u64, now: Instant) {
        self.wait = None;
        if time < FLUSH_MIN {
            return;
        }
        if self.passed_over > 0 {
            self.passed_over -= 1;
            return;
        }
        let (expected, longest) = (waiting + durable, (time / 4 + WAKE).min(WAIT_MAX));
        self.wait = Some(Wait { durable, expected, longest, until: now + longest, first: None });
    }

    pub(super) fn is_armed(&self) -> bool {
        self.wait.is_some()
    }

    /// Returns whether the next flush must wait for more records than the `waiting` ones. If not,
    /// ends the wait and judges whether it was worth it.
    pub(crate) fn is_waiting(&mut self, waiting: u64, now: Instant) -> bool {
        let Some(wait) = &mut self.wait else { return false };
        let is_over = waiting >= wait.expected || now >= wait.until;
        if !is_over {
            wait.first.get_or_insert(waiting);
            return true;
        }
        // Only a wait that has begun shows whether waits are worth it.
        if let Some(first) = wait.first {
            let brought = waiting.saturating_sub(first);
            let was_worth_it = brought > 0 && 2 * brought >= wait.durable;
            let more = (2 * self.penalty).clamp(1, PASSED_OVER_MAX);
            self.penalty = if was_worth_it { 0 } else { more };
            self.passed_over = self.penalty;
        }
        self.wait = None;
        false
    }

    /// Returns whether a wait has brought all expected records, so that the next flush can start.
    pub(crate) fn is_complete(&self, waiting: u64) -> bool {
        self.wait.as_ref().is_some_and(|wait| waiting >= wait.expected)
    }

    /// Returns the maximum remaining time of the wait.
    pub(crate) fn rest(&self, now: Instant) -> Duration {
        self.wait.as_ref().map_or(Duration::ZERO, |wait| wait.until.saturating_duration_since(now))
    }

    /// Returns the function that gives way to the awaited producers, by sleeping or yielding.
    pub(super) fn pause(&self) -> fn() {
        match &self.wait {
            Some(wait) if wait.longest >= SLEEPS_FROM => || std::thread::sleep(SLEEP),
            _ => std::thread::yield_now,
        }
    }

    /// Ends the wait, because the write of a batch has begun.
    pub(super) fn end(&mut self) {
        self.wait = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Duration = Duration::from_micros(1);

    /// Producers that each append one record at a time, some time after the previous one became
    /// durable.
    struct Producers {
        number: u32,
        /// The interval between the times at which consecutive producers are ready.
        apart: Duration,
        /// Whether the producers append at times that do not depend on their last record being
        /// durable.
        are_independent: bool,
    }

    /// Simulates `flushes` consecutive flushes of the same length. Returns the mean number of
    /// records in the second half of them, and the fraction of the time for which records waited
    /// although no flush was in flight.
    fn run(producers: &Producers, flush_time: Duration, flushes: u32) -> (f64, f64) {
        let Producers { number, apart, are_independent } = *producers;
        let mut gathering = Gathering::default();
        let (begun_at, mut now) = (Instant::now(), Instant::now());
        let mut arrivals: Vec<Instant> = (0..number).map(|n| now + apart * n).collect();
        let (mut records, mut idle) = (0, Duration::ZERO);
        for flush in 0..flushes {
            let arrived = |arrivals: &[Instant], now| arrivals.partition_point(|at| *at <= now);
            now = now.max(arrivals[0]);
            let ready_at = now;
            while gathering.is_armed() && gathering.is_waiting(arrived(&arrivals, now) as u64, now)
            {
                now += US;
            }
            idle += now - ready_at;
            let group = arrived(&arrivals, now);
            records += if flush >= flushes / 2 { group } else { 0 };
            now += flush_time;
            let last = *arrivals.last().expect("there are producers");
            let after = if are_independent { last } else { now };
            arrivals.drain(..group);
            arrivals.extend((1..).take(group).map(|n| after + apart * n));
            arrivals.sort();
            let waiting = arrived(&arrivals, now) as u64;
            gathering.note_flush(flush_time, group as u64, waiting, now);
        }
        let mean = records as f64 / f64::from(flushes - flushes / 2);
        (mean, idle.as_secs_f64() / (now - begun_at).as_secs_f64())
    }

    #[test]
    fn producers_that_return_soon_share_each_flush() {
        for (flush_time, most) in [(80 * US, 8), (667 * US, 64), (13_333 * US, 64)] {
            for number in [2, 4, 8, 16, 64].into_iter().filter(|number| *number <= most) {
                let producers = Producers { number, apart: 2 * US, are_independent: false };
                let (records, _) = run(&producers, flush_time, 1000);
                assert!(records > 0.95 * f64::from(number), "{number} {flush_time:?}: {records}");
            }
        }
    }

    #[test]
    fn one_producer_waits_for_nobody() {
        let producers = Producers { number: 1, apart: 50 * US, are_independent: false };
        assert_eq!(run(&producers, 667 * US, 1000), (1.0, 0.0));
    }

    #[test]
    fn producers_that_return_late_are_not_awaited() {
        let producers = Producers { number: 64, apart: 20 * US, are_independent: false };
        let (_, idle) = run(&producers, 667 * US, 3000);
        assert!(idle < 0.02, "{idle}");
    }

    #[test]
    fn records_that_come_at_their_own_pace_wait_for_the_disk_alone() {
        for apart in [10, 100, 600, 5000] {
            let producers = Producers { number: 4000, apart: apart * US, are_independent: true };
            let (_, idle) = run(&producers, 667 * US, 3000);
            assert!(idle < 0.02, "{apart} us: {idle}");
        }
    }

    #[test]
    fn short_flushes_begin_at_once() {
        let producers = Producers { number: 64, apart: US, are_independent: false };
        assert_eq!(run(&producers, 40 * US, 1000).1, 0.0);
    }

    #[test]
    fn commits_of_one_producer_that_differ_in_size_do_not_wait_for_long() {
        let (mut gathering, mut now, mut waits) = (Gathering::default(), Instant::now(), 0);
        for commit in 0..1000 {
            let (records, before) = if commit % 2 == 0 { (8, 10) } else { (10, 8) };
            gathering.note_flush(667 * US, before, 0, now);
            waits += u32::from(gathering.is_waiting(records, now));
            while gathering.is_waiting(records, now) {
                now += US;
            }
        }
        assert!(waits < 25, "{waits}");
    }

    #[test]
    fn a_record_that_comes_later_than_a_flush_takes_waits_for_nobody() {
        let (mut gathering, now) = (Gathering::default(), Instant::now());
        gathering.note_flush(667 * US, 64, 0, now);
        assert!(!gathering.is_waiting(1, now + 700 * US));
        gathering.note_flush(667 * US, 64, 0, now);
        assert!(gathering.is_waiting(1, now + 100 * US));
        assert!(!gathering.is_waiting(1, now + 230 * US), "at most a quarter of a flush");
        gathering = Gathering::default();
        // No wait is long, even after a flush that took seconds.
        gathering.note_flush(20_000_000 * US, 64, 0, now);
        assert!(gathering.is_waiting(1, now) && !gathering.is_waiting(1, now + 21_000 * US));
    }
}
