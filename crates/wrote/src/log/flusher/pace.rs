//! The pace of the disk where producers wait for it: slower than the page cache, or not.

use std::time::{Duration, Instant};

/// A disk is slow if producers wait longer than at this rate. The page cache takes 1 to 2 GB/s on
/// one thread, so a faster disk has little to gain by it, and pays with processor time.
const SLOW_BYTES_PER_S: u64 = 200_000_000;
/// The bytes over which waits are counted: more than a hiccup of a fast disk delays.
const WINDOW_BYTES: u64 = 8 << 20;

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
}
