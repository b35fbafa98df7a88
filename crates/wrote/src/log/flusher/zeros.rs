//! The cost of zeros ahead of the records on this disk, and what they save.
//!
//! A flush of records in written blocks changes no metadata of the file system. In allocated blocks
//! it does, and takes about twice as long. But the disk needs time for the zeros, too: they are as
//! many bytes as the records. On a slow disk with much in each flush that is far more.

use std::time::{Duration, Instant};

/// The share of a flush, as its inverse, that the disk may spend on the zeros for its records. On a
/// disk that is limited by bytes it is half, on one that is limited by operations a seventh.
const SHARE: u32 = 3;
/// The zeros after which their time is known, and the flushes, or the bytes of their records, after
/// which theirs is.
const BYTES_MIN: u64 = 4 << 20;
const FLUSHES_MIN: u32 = 64;
const FLUSHED_BYTES_MIN: u64 = 8 << 20;
/// The bytes after which older zeros count half.
const BYTES_MAX: u64 = 16 << 20;
/// The flushes after which older ones count half.
const FLUSHES_MAX: u32 = 512;
/// The share of a flush in the mean of their bytes, as its inverse.
const MEAN_OF: u64 = 16;

#[derive(Debug, Default)]
pub(super) struct Zeros {
    /// Zeros that were written, and the time that the disk took for them.
    bytes: u64,
    time: Duration,
    /// The time of the write in flight so far, without that in which the log did not look at it.
    spent: Duration,
    since: Option<Instant>,
    /// The mean bytes of records that a flush makes durable.
    flush_bytes: u64,
    /// Flushes of records in written blocks, and the time that they took.
    flushes: u32,
    flushed: Duration,
    /// The bytes of all records that were flushed so.
    flushed_bytes: u64,
}

impl Zeros {
    /// Notes that zeros are on their way.
    pub(super) fn begin(&mut self, now: Instant) {
        (self.spent, self.since) = (Duration::ZERO, Some(now));
    }

    /// Notes that the log looks at the disk no longer: zeros may be written long before it knows.
    pub(super) fn pause(&mut self, now: Instant) {
        self.spent += self.since.take().map_or(Duration::ZERO, |since| now - since);
    }

    /// Notes that the log looks at the disk again, while zeros are on their way.
    pub(super) fn resume(&mut self, now: Instant) {
        self.since = self.since.or(Some(now));
    }

    /// Notes that these zeros are written.
    pub(super) fn end(&mut self, bytes: u64, now: Instant) {
        self.pause(now);
        self.bytes += bytes;
        self.time += self.spent;
        if self.bytes > BYTES_MAX {
            (self.bytes, self.time) = (self.bytes / 2, self.time / 2);
        }
    }

    /// Notes a flush of records. `in_written` tells whether all their blocks were written before.
    pub(super) fn note_flush(&mut self, bytes: u64, time: Duration, in_written: bool) {
        let mean = if self.flush_bytes == 0 { bytes } else { self.flush_bytes };
        self.flush_bytes = mean - mean / MEAN_OF + bytes / MEAN_OF;
        if !in_written {
            return;
        }
        self.flushes += 1;
        self.flushed += time;
        self.flushed_bytes += bytes;
        if self.flushes == FLUSHES_MAX {
            (self.flushes, self.flushed) = (self.flushes / 2, self.flushed / 2);
        }
    }

    /// Tells whether zeros for the records of a flush cost more than they save.
    pub(super) fn are_dear(&self) -> bool {
        let are_told = self.flushes >= FLUSHES_MIN || self.flushed_bytes >= FLUSHED_BYTES_MIN;
        if self.bytes < BYTES_MIN || !are_told {
            return false;
        }
        let cost = self.time.as_nanos() * u128::from(self.flush_bytes);
        let flush = self.flushed / self.flushes;
        cost > (flush / SHARE).as_nanos() * u128::from(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// Returns what is known of a disk that takes a megabyte of zeros in `time`, and flushes
    /// `flush_bytes` in a millisecond.
    fn zeros(time: Duration, flush_bytes: u64) -> Zeros {
        let (mut zeros, mut now) = (Zeros::default(), Instant::now());
        for _ in 0..100 {
            zeros.begin(now);
            now += time;
            zeros.end(1 << 20, now);
            zeros.note_flush(flush_bytes, MS, true);
        }
        zeros
    }

    #[test]
    fn zeros_are_dear_where_those_for_a_flush_take_a_third_of_its_time() {
        // 125 MB/s, and 2 GB/s.
        assert!(zeros(8 * MS, 73_000).are_dear());
        assert!(!zeros(8 * MS, 20_000).are_dear());
        assert!(!zeros(MS / 2, 73_000).are_dear());
        assert!(zeros(MS / 2, 1 << 20).are_dear());
    }

    #[test]
    fn neither_a_few_zeros_nor_a_late_look_make_them_dear() {
        let (mut zeros, now) = (Zeros::default(), Instant::now());
        assert!(!zeros.are_dear());
        for _ in 0..100 {
            zeros.note_flush(1 << 20, MS, true);
        }
        zeros.begin(now);
        zeros.end(256 << 10, now + 10 * MS);
        assert!(!zeros.are_dear());
        let mut zeros = self::zeros(MS / 2, 4096);
        for _ in 0..100 {
            zeros.begin(now);
            zeros.pause(now + MS / 10);
            zeros.resume(now + 1000 * MS);
            zeros.end(256 << 10, now + 1000 * MS + MS / 10);
        }
        assert!(!zeros.are_dear());
    }

    #[test]
    fn a_flush_into_other_blocks_tells_nothing_of_its_time() {
        let mut zeros = zeros(8 * MS, 73_000);
        for _ in 0..1000 {
            zeros.note_flush(73_000, 30 * MS, false);
        }
        assert!(zeros.are_dear());
        for _ in 0..1000 {
            zeros.note_flush(4096, 30 * MS, false);
        }
        assert!(!zeros.are_dear(), "there is less in a flush now");
    }
}
