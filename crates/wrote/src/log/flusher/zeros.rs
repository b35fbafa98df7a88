//! Decides whether zeros are written ahead of the records, by the measured time of records with and
//! without them.
//!
//! A flush of records in written blocks changes no metadata of the file system. In allocated blocks
//! it does, and takes about twice as long. But writing the zeros takes time too, as they are as
//! many bytes as the records. On a slow disk with large flushes that costs far more.

use std::time::{Duration, Instant};

/// The time of records after which their cost is known: long enough to include typical delays, such
/// as the limits of a volume.
const TOLD_AFTER: Duration = Duration::from_millis(250);
/// The time after which older records count half.
const TIME_MAX: Duration = Duration::from_secs(4);
/// The fraction (as an inverse) of the records' time that zeros may take while the cost without
/// them is unknown.
const SHARE: u128 = 2;
/// The fraction (as an inverse) of the time that zeros must save: at about equal speed, half of the
/// bytes is better.
const SAVED: u128 = 10;
/// The mean bytes of a flush from which on its bytes take longer than the rest of it.
const LARGE_BYTES: u64 = 128 << 10;
/// The bytes without zeros after which they are tried again.
const LEFT_OUT_BYTES: u64 = 1 << 30;
/// The change of the mean flush length that restarts measuring, and the weight (as an inverse) of a
/// flush in that mean.
const OTHER_LOAD: u64 = 2;
const MEAN_OF: u64 = 64;

#[derive(Debug, Default)]
pub(super) struct Zeros {
    /// Records in written blocks, while no zeros are written.
    written: Cost,
    /// Records in written blocks, while zeros are, and the bytes of these zeros.
    beside: Cost,
    zeros_bytes: u64,
    /// Bytes since the last flush.
    new_bytes: u64,
    /// Records in allocated blocks.
    allocated: Cost,
    /// When records last became durable.
    durable_at: Option<Instant>,
    /// The mean bytes of a flush, now and when the first cost was noted.
    flush_bytes: u64,
    first_flush_bytes: u64,
    /// Zeros are left out; the bytes since then.
    left_out: Option<u64>,
}

/// The cost of records: the time from their writes until they were durable.
#[derive(Debug, Default)]
struct Cost {
    bytes: u64,
    time: Duration,
}

impl Cost {
    fn add(&mut self, bytes: u64, time: Duration) {
        self.bytes += bytes;
        self.time += time;
    }

    fn halve(&mut self) {
        (self.bytes, self.time) = (self.bytes / 2, self.time / 2);
    }

    fn is_told(&self) -> bool {
        self.time >= TOLD_AFTER
    }

    /// Returns the time per GB, in nanoseconds.
    fn ns_per_gb(&self) -> u128 {
        self.time.as_nanos() * 1_000_000_000 / u128::from(self.bytes.max(1))
    }
}

/// A flush: the records that it made durable, and where they are.
pub(super) struct Flushed {
    pub bytes: u64,
    /// When the first of them was written.
    pub begun_at: Instant,
    /// All their blocks were written before.
    pub in_written: bool,
    /// The next segment is being prepared.
    pub is_preparing: bool,
}

impl Zeros {
    /// Counts zeros written.
    pub(super) fn note(&mut self, bytes: u64) {
        self.new_bytes += bytes;
    }

    /// Records a flush that is complete at `now`.
    pub(super) fn note_flush(&mut self, flush: &Flushed, now: Instant) {
        let &Flushed { bytes, begun_at, in_written, is_preparing } = flush;
        let since = self.durable_at.replace(now).map_or(begun_at, |before| before.max(begun_at));
        let (time, zeros_bytes) = (now - since, std::mem::take(&mut self.new_bytes));
        self.note_load(bytes);
        match (in_written, is_preparing || zeros_bytes > 0) {
            (true, false) => self.written.add(bytes, time),
            (true, true) => {
                self.beside.add(bytes, time);
                self.zeros_bytes += zeros_bytes;
            }
            (false, false) => self.allocated.add(bytes, time),
            // Neither state lasts long.
            (false, true) => {}
        }
        for cost in [&mut self.written, &mut self.allocated] {
            if cost.time > TIME_MAX {
                cost.halve();
            }
        }
        if self.beside.time > TIME_MAX {
            self.beside.halve();
            self.zeros_bytes /= 2;
        }
        self.choose();
    }

    /// Returns whether zeros cost more than they save.
    pub(super) fn are_dear(&self) -> bool {
        self.left_out.is_some()
    }

    /// Forgets the costs if the flush length has changed, or zeros were left out for long.
    fn note_load(&mut self, bytes: u64) {
        let mean = if self.flush_bytes == 0 { bytes } else { self.flush_bytes };
        self.flush_bytes = mean - mean / MEAN_OF + bytes / MEAN_OF;
        self.left_out = self.left_out.map(|since| since + bytes);
        let (mean, first) = (self.flush_bytes, self.first_flush_bytes);
        if mean.max(first) > OTHER_LOAD * mean.min(first)
            || self.left_out.is_some_and(|since| since > LEFT_OUT_BYTES)
        {
            *self = Zeros {
                durable_at: self.durable_at,
                flush_bytes: mean,
                first_flush_bytes: mean,
                ..Zeros::default()
            };
        }
    }

    fn choose(&mut self) {
        if !self.beside.is_told() || self.zeros_bytes == 0 {
            return;
        }
        let Some((alone, zeros)) = self.with_zeros() else { return };
        let are_dear = match self.allocated.is_told() {
            true => (alone + zeros) * SAVED > self.allocated.ns_per_gb() * (SAVED - 1),
            false => zeros * SHARE > alone || self.left_out.is_some(),
        };
        self.left_out = are_dear.then_some(self.left_out.unwrap_or(0));
    }

    /// Returns the nanoseconds per GB of records in written blocks, and of the zeros for them;
    /// `None` while they are not known.
    fn with_zeros(&self) -> Option<(u128, u128)> {
        let beside = self.beside.ns_per_gb();
        if self.written.is_told() {
            // The rest of the time beside zeros is theirs.
            let alone = self.written.ns_per_gb();
            let records = alone * u128::from(self.beside.bytes) / 1_000_000_000;
            let left = self.beside.time.as_nanos().saturating_sub(records);
            return Some((alone, left * 1_000_000_000 / u128::from(self.zeros_bytes)));
        }
        // Records come so fast that zeros are written all the time. Of large flushes nearly all is
        // the time of their bytes.
        let is_steady = self.zeros_bytes * 2 >= self.beside.bytes;
        (is_steady && self.flush_bytes >= LARGE_BYTES).then_some((beside / 2, beside / 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// A disk, by its times for a flush in written and in allocated blocks, and per megabyte.
    #[derive(Clone, Copy)]
    struct Disk {
        written: Duration,
        allocated: Duration,
        megabyte: Duration,
    }

    /// Flushes records for some seconds, and half of the time writes zeros for all of them while
    /// worthwhile. Returns the fraction of flushes in written blocks.
    fn flush(zeros: &mut Zeros, disk: Disk, bytes: u64, seconds: u64) -> f64 {
        let (begin, mut now) = (Instant::now(), Instant::now());
        zeros.durable_at = None;
        let of_bytes = |bytes: u64| disk.megabyte.mul_f64(bytes as f64 / 1e6);
        let (mut written, mut flushes) = (0, 0);
        while now < begin + Duration::from_secs(seconds) {
            let (begun_at, in_written) = (now, !zeros.are_dear());
            let is_preparing = in_written && flushes % 64 >= 32;
            now += of_bytes(bytes) + if in_written { disk.written } else { disk.allocated };
            if is_preparing {
                now += of_bytes(2 * bytes);
                zeros.note(2 * bytes);
            }
            zeros.note_flush(&Flushed { bytes, begun_at, in_written, is_preparing }, now);
            (written, flushes) = (written + u32::from(in_written), flushes + 1);
        }
        f64::from(written) / f64::from(flushes)
    }

    /// 3,000 operations per second: two for a flush in written blocks, four in allocated ones.
    const VOLUME: Disk = disk([667, 1333, 8000]);
    const FAST: Disk = disk([200, 250, 500]);

    const fn disk([written, allocated, megabyte]: [u64; 3]) -> Disk {
        Disk {
            written: Duration::from_micros(written),
            allocated: Duration::from_micros(allocated),
            megabyte: Duration::from_micros(megabyte),
        }
    }

    #[test]
    fn zeros_are_left_out_where_records_take_as_long_without_them() {
        let mut zeros = Zeros::default();
        assert!(flush(&mut zeros, VOLUME, 200_000, 10) < 0.3 && zeros.are_dear());
        // Small flushes are measured again.
        assert!(flush(&mut zeros, VOLUME, 4096, 10) > 0.9 && !zeros.are_dear());
        assert!(flush(&mut zeros, VOLUME, 200_000, 10) < 0.3 && zeros.are_dear());
    }

    #[test]
    fn zeros_that_take_little_of_the_time_are_written_and_nothing_else_is_tried() {
        assert_eq!(flush(&mut Zeros::default(), VOLUME, 4096, 10), 1.0);
        assert_eq!(flush(&mut Zeros::default(), VOLUME, 20_000, 10), 1.0);
        assert_eq!(flush(&mut Zeros::default(), FAST, 73_000, 10), 1.0);
    }

    #[test]
    fn zeros_that_take_long_are_written_where_records_take_longer_without_them() {
        let disk = Disk { allocated: 10 * MS, ..VOLUME };
        let mut zeros = Zeros::default();
        assert!(flush(&mut zeros, disk, 73_000, 10) > 0.9 && !zeros.are_dear());
    }

    #[test]
    fn zeros_that_are_always_written_beside_large_flushes_are_left_out_soon() {
        let (mut zeros, mut now) = (Zeros::default(), Instant::now());
        let mut flushed = 0;
        while !zeros.are_dear() {
            let (begun_at, bytes) = (now, 1_000_000);
            now += 16 * MS;
            zeros.note(bytes);
            let flush = Flushed { bytes, begun_at, in_written: true, is_preparing: true };
            zeros.note_flush(&flush, now);
            flushed += bytes;
        }
        assert_eq!(flushed, 16_000_000, "a quarter of a second");
    }

    #[test]
    fn zeros_are_tried_again_after_a_gigabyte_without_them() {
        let mut zeros = Zeros::default();
        flush(&mut zeros, VOLUME, 200_000, 10);
        assert!(zeros.are_dear());
        let better = Disk { megabyte: MS / 10, ..VOLUME };
        assert!(flush(&mut zeros, better, 200_000, 20) > 0.1 && !zeros.are_dear());
    }
}
