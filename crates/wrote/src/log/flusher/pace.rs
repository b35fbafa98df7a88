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
/// A smaller flush does not concern the rate of a disk.
const FLUSH_BYTES_MIN: u64 = 1 << 20;
/// A flush begins without a pause if it begins so soon after the one before.
pub(super) const PAUSE: Duration = Duration::from_millis(5);
/// How long fewer bytes take says more of the disk's latency than of its rate.
pub(super) const TRANSFER_BYTES_MIN: u64 = 256 << 10;

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

    /// Notes that producers wait for something else, and have since they last waited.
    pub(super) fn drop_wait(&mut self) {
        self.waits_since = None;
    }

    /// Notes that producers who waited for the disk did so until `now`, which is read for them
    /// alone.
    pub(super) fn end_wait(&mut self, now: impl FnOnce() -> Instant) {
        if let Some(since) = self.waits_since.take() {
            self.waited += now() - since;
        }
    }

    /// Records at `now` whether producers wait. If they wait for a slow disk, returns half of its
    /// rate in bytes per second: a disk may take the first bytes at once, and flushes without a
    /// pause raise the rate soon.
    pub(super) fn slow_rate(&mut self, do_wait: bool, now: Instant) -> Option<u64> {
        self.end_wait(|| now);
        self.waits_since = do_wait.then_some(now);
        if self.written_bytes < WINDOW_BYTES {
            return None;
        }
        let DiskPace { written_bytes, waited, .. } =
            std::mem::replace(self, DiskPace { waits_since: self.waits_since, ..Self::default() });
        Some(rate(written_bytes, waited)).filter(|rate| is_slow(*rate)).map(|rate| rate / 2)
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
    /// At this rate in bytes per second, at most the disk's.
    Slowed(u64),
    Held,
}

/// Returns how to continue while `behind_bytes` are pending, so that a disk of this rate can flush
/// them before the oldest record's interval ends. A record waits for the flush of its whole
/// segment, so the bytes before it must leave time for that; a segment that takes most of the time
/// gets half of it. Within that margin records are slowed down, because the rate varies and one
/// that stops would stop each producer: from the disk's rate down to half of it, so that the
/// backlog settles where both are equal. They are held up at the margin's end, or if the disk's
/// rate is not known.
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
    let margin = segment_bytes.min(bytes / 2);
    let late_bytes = transferred(rate, age.saturating_sub(bound));
    let over = late_bytes.max(behind_bytes.saturating_sub(bytes - margin));
    if over >= margin {
        Admission::Held
    } else if over > 0 {
        let slower = u128::from(rate) * u128::from(over) / u128::from(2 * margin);
        Admission::Slowed(rate - u64::try_from(slower).unwrap_or(rate))
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

/// The rate of a disk that writes are absorbed for: the bytes that it took, and in what time. Each
/// flush halves the weight of those before. A flush may be short because the disk wrote its bytes
/// during the flush before, so bytes and times are added up, not rates.
#[derive(Clone, Copy, Debug)]
pub(super) struct DiskRate {
    bytes: u64,
    time: Duration,
}

impl DiskRate {
    /// A rate that was found in a window of writes; `u64::MAX` if it is not known, as it stays
    /// then: only producers who wait show a slow disk.
    pub(super) fn new(bytes_per_s: u64) -> DiskRate {
        DiskRate { bytes: WINDOW_BYTES, time: distance(WINDOW_BYTES, bytes_per_s) }
    }

    pub(super) fn bytes_per_s(self) -> u64 {
        rate(self.bytes, self.time)
    }

    /// Notes a flush that took `time`: since the end of the flush before if `is_next`, if the disk
    /// has been flushing without a pause. Otherwise the kernel may have written most of its bytes
    /// before, so that the rate can only fall. Even in a row it may have written much of them
    /// before the first, so no flush counts as more than twice as fast as the disk.
    pub(super) fn note_flush(&mut self, bytes: u64, time: Duration, is_next: bool) {
        let known = self.bytes_per_s();
        let counts = is_next || rate(bytes, time) < known;
        if bytes >= FLUSH_BYTES_MIN && counts && !self.time.is_zero() {
            self.bytes = self.bytes / 2 + bytes.min(transferred(known.saturating_mul(2), time));
            self.time = self.time / 2 + time;
        }
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
        assert_eq!(slow_rate(Duration::from_millis(43)), Some((4 << 20) * 1000 / 43));
        assert_eq!(slow_rate(Duration::from_millis(41)), None);
        assert_eq!(slow_rate(Duration::ZERO), None);
    }

    #[test]
    fn a_hold_does_not_count_as_a_wait_for_the_disk() {
        let (mut pace, begin) = (DiskPace::default(), Instant::now());
        assert_eq!(pace.slow_rate(true, begin), None);
        pace.drop_wait();
        pace.note_written(8 << 20);
        assert_eq!(pace.slow_rate(false, begin + Duration::from_secs(10)), None);
    }

    #[test]
    fn records_are_slowed_down_and_then_held_once_the_oldest_or_the_bytes_behind_it_are_late() {
        let (second, rate) = (Duration::from_secs(1), 100_000_000);
        let after = |age, bytes, segment| admission(second, age, bytes, segment, Some(rate));
        for (segment, margin) in [(60_000_000, 60_000_000), (180_000_000, 100_000_000)] {
            let behind = |bytes| after(Duration::ZERO, bytes, segment);
            let room = 200_000_000 - margin;
            assert_eq!(behind(room), Admission::Free);
            assert_eq!(behind(room + 1), Admission::Slowed(rate));
            assert_eq!(behind(room + margin / 2), Admission::Slowed(75_000_000));
            assert_eq!(behind(200_000_000 - 1), Admission::Slowed(50_000_001));
            assert_eq!(behind(200_000_000), Admission::Held);
        }
        let aged = |age, segment| after(age, 1, segment);
        assert_eq!(aged(2 * second, 60_000_000), Admission::Free);
        assert_eq!(aged(2 * second + second * 3 / 10, 60_000_000), Admission::Slowed(75_000_000));
        assert_eq!(aged(2 * second + second * 6 / 10, 60_000_000), Admission::Held);
        assert_eq!(aged(3 * second, 180_000_000), Admission::Held);
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
    fn the_rate_of_a_disk_falls_with_a_slow_flush_and_rises_with_flushes_without_a_pause() {
        let after = |bytes, ms, is_next| {
            let mut rate = DiskRate::new(100_000_000);
            rate.note_flush(bytes, Duration::from_millis(ms), is_next);
            rate.bytes_per_s() / 1_000_000
        };
        for is_next in [false, true] {
            assert_eq!(after(50_000_000, 1000, is_next), 52);
            assert_eq!(after(4096, 1000, is_next), 100);
        }
        assert_eq!(after(50_000_000, 200, false), 100);
        assert_eq!(after(50_000_000, 200, true), 182);
    }

    #[test]
    fn a_flush_whose_bytes_were_written_before_makes_no_disk_fast() {
        let mut rate = DiskRate::new(50_000_000);
        for _ in 0..3 {
            rate.note_flush(50_000_000, Duration::from_millis(900), true);
            rate.note_flush(50_000_000, Duration::from_millis(100), true);
        }
        assert!((50_000_000..100_000_000).contains(&rate.bytes_per_s()), "{rate:?}");
        let mut rate = DiskRate::new(50_000_000);
        rate.note_flush(60_000_000, Duration::from_millis(1), false);
        rate.note_flush(60_000_000, Duration::from_millis(1), true);
        assert!(rate.bytes_per_s() < 60_000_000, "{rate:?}");
        let mut rate = DiskRate::new(u64::MAX);
        rate.note_flush(2 << 20, Duration::from_millis(20), false);
        assert!(!is_slow(rate.bytes_per_s()), "{rate:?}");
    }
}
