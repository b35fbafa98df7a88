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

    /// Notes at `now` whether producers wait, and tells whether they do so for a slow disk.
    pub(super) fn is_slow(&mut self, do_wait: bool, now: Instant) -> bool {
        let since = std::mem::replace(&mut self.waits_since, do_wait.then_some(now));
        self.waited += since.map_or(Duration::ZERO, |since| now - since);
        if self.written_bytes < WINDOW_BYTES {
            return false;
        }
        let DiskPace { written_bytes, waited, .. } =
            std::mem::replace(self, DiskPace { waits_since: self.waits_since, ..Self::default() });
        u128::from(written_bytes) * 1_000_000_000 < u128::from(SLOW_BYTES_PER_S) * waited.as_nanos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tells whether a disk is slow that takes 8 MiB while producers wait for `waited` of 100 ms.
    fn is_slow(waited: Duration) -> bool {
        let (mut pace, begin) = (DiskPace::default(), Instant::now());
        assert!(!pace.is_slow(false, begin));
        pace.note_written(4 << 20);
        let from = begin + Duration::from_millis(50);
        assert!(!pace.is_slow(true, from));
        pace.note_written(4 << 20);
        let slow = pace.is_slow(false, from + waited);
        assert!(!pace.is_slow(true, from + waited), "a new window begins");
        slow
    }

    #[test]
    fn a_disk_is_slow_if_producers_wait_longer_than_at_200_mb_a_second() {
        assert!(is_slow(Duration::from_millis(43)));
        assert!(!is_slow(Duration::from_millis(41)));
        assert!(!is_slow(Duration::ZERO));
    }
}
