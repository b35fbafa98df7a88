//! The rate of the disk: whether it is slower than the page cache while producers wait, and too
//! slow to make records durable within an interval.

use std::time::{Duration, Instant};

/// A disk is slow if producers wait at a lower rate than this. One thread writes 1 to 2 GB/s to the
/// page cache, so a faster disk gains little from it, and costs CPU time.
const SLOW_BYTES_PER_S: u64 = 200_000_000;
/// The bytes over which waits are measured: more than a hiccup of a fast disk delays.
const WINDOW_BYTES: u64 = 8 << 20;

/// How long beyond their interval records may be overdue before later ones are held up, as in
/// Redis, or slowed down, if the disk's rate is known.
const OVERDUE: Duration = Duration::from_secs(1);
/// A flush that was faster than the disk's rate raises it by at most half of this fraction (an
/// inverse): the kernel may have written most of its bytes before.
const RISE: u64 = 16;
/// The part of the disk's rate, in quarters, to which late records are slowed down. The rest is
/// left to the flushes to catch up.
const SLOWED_QUARTERS: u64 = 3;
/// A smaller flush does not concern the rate of a disk.
const FLUSH_BYTES_MIN: u64 = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct DiskPace {
    /// Bytes of records written to the kernel in this window.
    written_bytes: u64,
    /// The time in it for which producers waited.
    waited: Duration,
    /// The start of their current wait, if any.
    waits_since: Option<Instant>,
}

impl DiskPace {
    pub(super) fn note_written(&mut self, bytes: u64) {
        self.written_bytes += bytes;
    }

    /// Records that producers wait for something else.
    pub(super) fn end_wait(&mut self) {
        self.waits_since = None;
    }

    /// Records at `now` whether producers wait. Returns the disk's rate in bytes per second, if
    /// they wait for a slow one.
    pub(super) fn slow_rate(&mut self, do_wait: bool, now: Instant) -> Option<u64> {
        let since = std::mem::replace(&mut self.waits_since, do_wait.then_some(now));
        self.waited += since.map_or(Duration::ZERO, |since| now - since);
        if self.written_bytes < WINDOW_BYTES {
            return None;
        }
        let DiskPace { written_bytes, waited, .. } =
            std::mem::replace(self, DiskPace { waits_since: self.waits_since, ..Self::default() });
        Some(rate(written_bytes, waited)).filter(|rate| is_slow(*rate))
    }
}

/// Returns whether a disk of this rate is slower than the page cache.
pub(super) fn is_slow(bytes_per_s: u64) -> bool {
    bytes_per_s < SLOW_BYTES_PER_S
}

/// How to continue writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    Free,
    /// At this rate in bytes per second, below the disk's.
    Slowed(u64),
    Held,
}

/// Returns how to continue while `behind_bytes` are pending, so that a disk of this rate can flush
/// them before the oldest record's interval ends. A record waits for the flush of its whole
/// segment, so the bytes before it must leave time for that; a segment that takes most of the time
/// gets half of it. Beyond that, later records are slowed down, because the rate varies and one
/// that stops would stop each producer. They are held up where the disk has a segment more to
/// flush, or its rate is not known.
pub(super) fn admission(
    interval: Duration,
    age: Duration,
    behind_bytes: u64,
    segment_bytes: u64,
    bytes_per_s: Option<u64>,
) -> Admission {
    let bound = interval + OVERDUE;
    let Some(rate) = bytes_per_s else {
        return if age >= bound { Admission::Held } else { Admission::Free };
    };
    let bytes = transferred(rate, bound);
    let late_bytes = transferred(rate, age.saturating_sub(bound));
    if behind_bytes >= bytes || late_bytes >= segment_bytes.min(bytes / 2) {
        Admission::Held
    } else if behind_bytes >= bytes.saturating_sub(segment_bytes).max(bytes / 2) || age >= bound {
        Admission::Slowed(rate / 4 * SLOWED_QUARTERS)
    } else {
        Admission::Free
    }
}

/// Returns the time after which the next batch may follow one of `bytes`, at this rate.
pub(super) fn distance(bytes: u64, bytes_per_s: u64) -> Duration {
    let ns = u128::from(bytes) * 1_000_000_000 / u128::from(bytes_per_s.max(1));
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

/// Returns how much of a flush of `bytes` a disk of this rate has done after `time`.
pub(super) fn flushed(bytes: u64, time: Duration, bytes_per_s: u64) -> u64 {
    transferred(bytes_per_s, time).min(bytes)
}

/// Returns the bytes that a disk of this rate transfers in `time`.
fn transferred(bytes_per_s: u64, time: Duration) -> u64 {
    let bytes = u128::from(bytes_per_s) * time.as_nanos() / 1_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Updates the rate of a slow disk after a flush, in bytes per second. One flush may have been
/// unlucky, so the rate rises again, but not above `found`, at which producers waited.
pub(super) fn after_flush(bytes_per_s: u64, found: u64, bytes: u64, time: Duration) -> u64 {
    match bytes {
        FLUSH_BYTES_MIN.. => {
            let most = bytes_per_s.saturating_add(bytes_per_s / RISE).min(found);
            bytes_per_s.midpoint(rate(bytes, time).min(most))
        }
        _ => bytes_per_s,
    }
}

/// Returns the rate of `bytes` in `time`, in bytes per second.
fn rate(bytes: u64, time: Duration) -> u64 {
    let rate = u128::from(bytes) * 1_000_000_000 / time.as_nanos().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the slow rate of a disk that writes 8 MiB in 100 ms, during which producers wait for
    /// `waited`.
    fn slow_rate(waited: Duration) -> Option<u64> {
        let (mut pace, begin) = (DiskPace::default(), Instant::now());
        assert_eq!(pace.slow_rate(false, begin), None);
        pace.note_written(4 << 20);
        let from = begin + Duration::from_millis(50);
        assert_eq!(pace.slow_rate(true, from), None);
        pace.note_written(4 << 20);
        let slow = pace.slow_rate(false, from + waited);
        assert_eq!(pace.slow_rate(true, from + waited), None, "a new window begins");
        slow
    }

    #[test]
    fn a_disk_is_slow_if_producers_wait_longer_than_at_200_mb_a_second() {
        assert_eq!(slow_rate(Duration::from_millis(43)), Some((8 << 20) * 1000 / 43));
        assert_eq!(slow_rate(Duration::from_millis(41)), None);
        assert_eq!(slow_rate(Duration::ZERO), None);
    }

    #[test]
    fn a_hold_does_not_count_as_a_wait_for_the_disk() {
        let (mut pace, begin) = (DiskPace::default(), Instant::now());
        assert_eq!(pace.slow_rate(true, begin), None);
        pace.end_wait();
        pace.note_written(8 << 20);
        assert_eq!(pace.slow_rate(false, begin + Duration::from_secs(10)), None);
    }

    #[test]
    fn records_are_slowed_down_and_then_held_once_the_oldest_or_the_bytes_behind_it_are_late() {
        let (second, rate) = (Duration::from_secs(1), 100_000_000);
        let after = |age, bytes, segment| admission(second, age, bytes, segment, Some(rate));
        let slowed = Admission::Slowed(rate / 4 * SLOWED_QUARTERS);
        for (segment, room) in [(60_000_000, 140_000_000), (180_000_000, 100_000_000)] {
            assert_eq!(after(Duration::ZERO, room - 1, segment), Admission::Free);
            assert_eq!(after(Duration::ZERO, room, segment), slowed);
            assert_eq!(after(Duration::ZERO, 199_999_999, segment), slowed);
            assert_eq!(after(Duration::ZERO, 200_000_000, segment), Admission::Held);
        }
        assert_eq!(after(2 * second, 1, 60_000_000), slowed);
        assert_eq!(after(2 * second + second * 6 / 10, 1, 60_000_000), Admission::Held);
        assert_eq!(after(3 * second, 1, 180_000_000), Admission::Held);
    }

    #[test]
    fn records_on_a_disk_of_unknown_rate_are_held_by_their_age_alone() {
        let second = Duration::from_secs(1);
        let after = |age| admission(second, age, u64::MAX, 1, None);
        assert_eq!([second, 2 * second].map(after), [Admission::Free, Admission::Held]);
    }

    #[test]
    fn a_batch_of_a_second_follows_after_one() {
        assert_eq!(distance(50_000_000, 50_000_000), Duration::from_secs(1));
        assert_eq!(distance(u64::MAX, 0), Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn a_flush_makes_room_at_the_rate_of_the_disk() {
        let after = |ms| flushed(60_000_000, Duration::from_millis(ms), 100_000_000);
        assert_eq!([0, 1, 599, 601].map(after), [0, 100_000, 59_900_000, 60_000_000]);
    }

    #[test]
    fn the_rate_of_a_disk_falls_with_a_slow_flush_and_rises_in_small_steps() {
        let found = 110_000_000;
        let after = |bytes, ms| after_flush(100_000_000, found, bytes, Duration::from_millis(ms));
        assert_eq!(after(10_000_000, 1000), 55_000_000);
        assert_eq!(after(10_000_000, 1), 103_125_000);
        assert_eq!(after(4096, 1000), 100_000_000);
        let fast = |rate, _| after_flush(rate, found, 10_000_000, Duration::from_millis(1));
        let most = (0..100).fold(100_000_000, fast);
        assert!((109_000_000..=found).contains(&most), "{most}");
    }
}
