//! Puts bytes that were written past the page cache into it all the same (`FUSE_NOTIFY_STORE` in
//! `linux/fuse.h`, Linux 2.6.36).

use fuser::{INodeNo, Notifier};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A pause before the range is stored. When the kernel has the answer to a direct write it drops
/// the range from its page cache once more (`kiocb_invalidate_post_direct_write`).
const DELAY: Duration = Duration::from_millis(20);

/// Bytes on their way to the page cache.
#[derive(Debug, Default)]
pub struct Keep {
    notifier: OnceLock<Notifier>,
    ranges: Mutex<VecDeque<Range>>,
}

/// A part of a file, with its written bytes.
#[derive(Debug)]
struct Range {
    written: Instant,
    number: u64,
    offset_bytes: u64,
    data: Vec<u8>,
}

impl Keep {
    /// Sets the connection to the kernel. Without it nothing is kept.
    pub fn connect(&self, notifier: Notifier) {
        // It is called once.
        let _ = self.notifier.set(notifier);
    }

    /// Keeps written bytes for later.
    pub fn take(&self, number: u64, offset_bytes: u64, data: &[u8]) {
        let range = Range { written: Instant::now(), number, offset_bytes, data: data.to_owned() };
        self.ranges().push_back(range);
    }

    /// Puts ranges that have waited long enough into the page cache, in an endless loop.
    pub fn run(&self) {
        loop {
            while let Some(range) = self.next(DELAY) {
                self.store(&range);
            }
            std::thread::sleep(DELAY);
        }
    }

    /// Puts all ranges there, for requests while no write is in flight.
    pub fn finish(&self) {
        while let Some(range) = self.next(Duration::ZERO) {
            self.store(&range);
        }
    }

    /// Removes and returns the oldest range, if it has waited for `delay`.
    fn next(&self, delay: Duration) -> Option<Range> {
        let mut ranges = self.ranges();
        let is_old = ranges.front().is_some_and(|range| range.written.elapsed() >= delay);
        if is_old { ranges.pop_front() } else { None }
    }

    fn store(&self, range: &Range) {
        let Some(notifier) = self.notifier.get() else { return };
        // It fails if the file is gone: then there is nothing to keep.
        let _ = notifier.store(INodeNo(range.number), range.offset_bytes, &range.data);
    }

    fn ranges(&self) -> MutexGuard<'_, VecDeque<Range>> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_waits_and_goes_in_its_order() {
        let keep = Keep::default();
        keep.take(2, 0, b"first");
        keep.take(3, 4096, b"second");
        assert!(keep.next(Duration::from_secs(3600)).is_none());
        let first = keep.next(Duration::ZERO).expect("it is there");
        assert_eq!((first.number, first.offset_bytes, &first.data[..]), (2, 0, &b"first"[..]));
        keep.finish();
        assert!(keep.ranges().is_empty());
    }
}
