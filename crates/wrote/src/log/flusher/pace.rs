//! The pace of the disk: slower than the page cache where producers wait for it, and too slow for
//! records that are to be durable after a time.

use std::time::{Duration, Instant};

/// A disk is slow if producers wait longer than at this rate. The page cache takes 1 to 2 GB/s on
/// one thread, so a faster disk has little to gain by it, and pays with processor time.
const SLOW_BYTES_PER_S: u64 = 200_000_000;
/// The bytes over which waits are counted: more than a hiccup of a fast disk delays.
const WINDOW_BYTES: u64 = 8 << 20;

/// The time beyond their interval after which records that are not durable hold up later ones, as
/// in Redis.
const OVERDUE: Duration = Duration::from_secs(1);
/// A flush of fewer bytes tells nothing of the rate of a disk.
const FLUSH_BYTES_MIN: u64 = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct DiskPace {
    /// Bytes of records that the kernel has taken in this window.
    written_bytes: u64,
    /// The time in it for which producers waited.
    waited: Duration,
    /// When they began to wait, if they do.
    waits_since: Option<Instant>,
}

impl DiskPace {
    pub(super) fn note_written(&mut self, bytes: u64) {
        self.written_bytes += bytes;
    }

    /// Notes that producers wait for something else.
    pub(super) fn end_wait(&mut self) {
        self.waits_since = None;
    }

    /// Notes at `now` whether producers wait. Returns the rate of the disk, in bytes a second, if
    /// they do so for a slow one.
    pub(super) fn slow_rate(&mut self, do_wait: bool, now: Instant) -> Option<u64> {
        let since = std::mem::replace(&mut self.waits_since, do_wait.then_some(now));
        self.waited += since.map_or(Duration::ZERO, |since| now - since);
        if self.written_bytes < WINDOW_BYTES {
            return None;
        }
        let DiskPace { written_bytes, waited, .. } =
            std::mem::replace(self, DiskPace { waits_since: self.waits_since, ..Self::default() });
        Some(rate(written_bytes, waited)).filter(|rate| *rate < SLOW_BYTES_PER_S)
    }
}

/// Tells whether no more records are written, since a disk of this rate, if it is slow, could not
/// flush them in time: those that are to be durable after an interval, of which the oldest is not
/// after its age, with so many bytes behind it.
pub(super) fn is_overdue(
    interval: Duration,
    age: Duration,
    behind_bytes: u64,
    bytes_per_s: Option<u64>,
) -> bool {
    let bound = interval + OVERDUE;
    let is_full = bytes_per_s.is_some_and(|rate| {
        u128::from(behind_bytes) * 1_000_000_000 >= u128::from(rate) * bound.as_nanos()
    });
    is_full || age >= bound
}

/// Returns the rate of a slow disk after a flush, in bytes a second. One flush may have been in bad
/// luck, and of another the kernel may have written most before.
pub(super) fn after_flush(bytes_per_s: u64, bytes: u64, time: Duration) -> u64 {
    match bytes {
        FLUSH_BYTES_MIN.. => bytes_per_s.midpoint(bytes_per_s.min(rate(bytes, time))),
        _ => bytes_per_s,
    }
}

/// Returns the rate of `bytes` in `time`, in bytes a second.
fn rate(bytes: u64, time: Duration) -> u64 {
    let rate = u128::from(bytes) * 1_000_000_000 / time.as_nanos().max(1);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the rate, if it is slow, of a disk that takes 8 MiB in 100 ms, while producers wait
    /// for `waited` of them.
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
    fn records_are_held_once_the_oldest_or_the_bytes_behind_it_are_late() {
        let (second, rate) = (Duration::from_secs(1), Some(100_000_000));
        let is_overdue = |age, bytes, rate| is_overdue(second, age, bytes, rate);
        assert!(is_overdue(2 * second, 1, None) && !is_overdue(second, 1, None));
        assert!(is_overdue(Duration::ZERO, 200_000_000, rate));
        assert!(!is_overdue(Duration::ZERO, 199_999_999, rate));
        assert!(!is_overdue(Duration::ZERO, u64::MAX, None), "the disk is not slow");
    }

    #[test]
    fn a_flush_that_is_slower_than_the_disk_was_lowers_its_rate() {
        let after = |bytes, ms| after_flush(100_000_000, bytes, Duration::from_millis(ms));
        assert_eq!(after(10_000_000, 1000), 55_000_000);
        assert_eq!(after(10_000_000, 1), 100_000_000);
        assert_eq!(after(4096, 1000), 100_000_000);
    }
}
