//! Decides whether zeros are written ahead of the records, by the time of segments with and without
//! them.
//!
//! A flush of records in written blocks changes no metadata of the file system. In allocated blocks
//! it does, and takes about twice as long. But writing the zeros takes time too, as they are as
//! many bytes as the records. On a slow disk with large flushes that costs far more.
//!
//! Whole segments are compared, since the zeros of one are written in the second half of the one
//! before. What a load makes of either way, such as longer flushes, belongs to its cost.

use std::time::{Duration, Instant};

/// The time of records after which their cost is known: long enough to include typical delays, such
/// as the limits of a volume.
const TOLD_AFTER: Duration = Duration::from_millis(250);
/// The fraction (as an inverse) of the records' time that zeros may take before less is tried.
const SHARE: u128 = 2;
/// The fraction (as an inverse) of the time that zeros must save: at about equal speed, half of the
/// bytes is better.
const SAVED: u128 = 10;
/// A larger change of a way's mean flush length makes the cost of the other way unknown.
const OTHER_LOAD: u64 = 2;
/// The bytes without zeros after which two segments have them again: the disk may be faster now.
const LEFT_OUT_BYTES: u64 = 4 << 30;

#[derive(Debug, Default)]
pub(super) struct Zeros {
    sample: Sample,
    /// The costs of segments with zeros, and of those without.
    with: Option<Cost>,
    without: Option<Cost>,
    /// When records last became durable.
    durable_at: Option<Instant>,
    /// The start of the zeros in flight, since the last flush; and the time of others since then.
    zeros_since: Option<Instant>,
    zeros_time: Duration,
    /// Zeros are left out; the bytes since then.
    left_out: Option<u64>,
}

/// Successive segments of one way.
#[derive(Debug, Default)]
struct Sample {
    flushes: u64,
    bytes: u64,
    /// Bytes of records whose blocks were written before.
    in_written: u64,
    zeros_bytes: u64,
    /// The time of the records, and the part of it with zeros in flight.
    time: Duration,
    beside: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Cost {
    ns_per_gb: u128,
    flush_bytes: u64,
}

impl Sample {
    /// Returns whether zeros were written for the segments and ahead of the next ones; `None` for
    /// the change from one way to the other. A flush may end in the next segment.
    fn has_zeros(&self) -> Option<bool> {
        let few = self.bytes / 8;
        if self.in_written <= few && self.zeros_bytes <= few {
            return Some(false);
        }
        let is_written = self.in_written >= self.bytes - few;
        (is_written && self.zeros_bytes >= self.bytes / 2).then_some(true)
    }

    /// Returns whether as many zeros as records were in flight for a large part of the time.
    fn is_zeros_share_large(&self) -> bool {
        let records = (self.time - self.beside).as_nanos() * u128::from(self.zeros_bytes);
        self.beside.as_nanos() * u128::from(self.bytes) * SHARE > records
    }

    fn cost(&self) -> Cost {
        // A new log writes more zeros than records, for longer and longer segments.
        let bytes = match self.has_zeros() {
            Some(true) => self.bytes.midpoint(self.zeros_bytes),
            _ => self.bytes,
        };
        let ns_per_gb = self.time.as_nanos() * 1_000_000_000 / u128::from(bytes.max(1));
        Cost { ns_per_gb, flush_bytes: self.bytes / self.flushes.max(1) }
    }
}

impl Zeros {
    /// Records that zeros were started.
    pub(super) fn begin(&mut self, now: Instant) {
        self.zeros_since = Some(now);
    }

    /// Records that these zeros were written.
    pub(super) fn note(&mut self, bytes: u64, now: Instant) {
        self.sample.zeros_bytes += bytes;
        self.zeros_time += self.zeros_since.take().map_or(Duration::ZERO, |since| now - since);
    }

    /// Records a flush, complete `at` a time, of `bytes` that needed the disk at `begun_at`.
    pub(super) fn note_flush(&mut self, bytes: u64, written: bool, begun_at: Instant, at: Instant) {
        let durable_at = self.durable_at.replace(at).unwrap_or(begun_at);
        let time = at - begun_at.max(durable_at);
        // Producers that wait prepare their next records in about the same time either way, and a
        // limited disk then takes these faster. Idle producers take longer.
        let time = time + begun_at.saturating_duration_since(durable_at).min(time);
        if let Some(since) = &mut self.zeros_since {
            self.zeros_time += at - std::mem::replace(since, at);
        }
        let sample = &mut self.sample;
        sample.flushes += 1;
        sample.bytes += bytes;
        sample.in_written += if written { bytes } else { 0 };
        sample.time += time;
        sample.beside += std::mem::take(&mut self.zeros_time).min(time);
    }

    /// Decides again, as a segment begins.
    pub(super) fn begin_segment(&mut self) {
        let Some(has_zeros) = self.sample.has_zeros() else {
            self.sample = Sample::default();
            return;
        };
        if self.sample.time < TOLD_AFTER {
            return;
        }
        let sample = std::mem::take(&mut self.sample);
        let (cost, left_out) = (sample.cost(), self.left_out.unwrap_or(0) + sample.bytes);
        let (this, other) = match has_zeros {
            true => (&mut self.with, &mut self.without),
            false => (&mut self.without, &mut self.with),
        };
        let is_of_load = |before: &Cost| {
            let (one, other) = (before.flush_bytes, cost.flush_bytes);
            one.max(other) <= OTHER_LOAD * one.min(other)
        };
        let before = this.filter(is_of_load);
        if this.is_some() && before.is_none() || !has_zeros && left_out > LEFT_OUT_BYTES {
            *other = None;
        }
        let ns_per_gb = before.map_or(cost.ns_per_gb, |it| it.ns_per_gb.midpoint(cost.ns_per_gb));
        *this = Some(Cost { ns_per_gb, ..cost });
        let are_dear = match (self.with, self.without) {
            // A disk that is slower for a while is so either way.
            (Some(_), Some(_)) if !has_zeros && before.is_some() => true,
            (Some(with), Some(without)) => with.ns_per_gb * SAVED > without.ns_per_gb * (SAVED - 1),
            (Some(_), None) => sample.is_zeros_share_large(),
            (None, _) => false,
        };
        // Measured next, at about the same time as the way with zeros.
        self.without = self.without.filter(|_| !(are_dear && has_zeros));
        self.left_out = are_dear.then_some(if has_zeros { 0 } else { left_out });
    }

    /// Returns whether zeros cost more than they save.
    pub(super) fn are_dear(&self) -> bool {
        self.left_out.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The microseconds of a flush in written and in allocated blocks, and of a megabyte.
    type Disk = [u64; 3];
    /// 3,000 operations per second: two for a flush in written blocks, four in allocated ones.
    const VOLUME: Disk = [667, 1333, 8000];
    const FAST: Disk = [200, 250, 500];
    /// 150 operations per second.
    const TURNING: Disk = [13_333, 26_667, 13_333];

    /// A log whose segments have the same length.
    struct Run {
        zeros: Zeros,
        now: Instant,
        is_written: bool,
    }

    impl Run {
        fn new() -> Run {
            Run { zeros: Zeros::default(), now: Instant::now(), is_written: true }
        }

        /// Fills segments for some seconds by flushes of `bytes`, each after a pause. Writes the
        /// zeros of the next segment beside the second half. Returns the fraction with zeros.
        fn fill(&mut self, disk: Disk, bytes: u64, pause_us: u64, seconds: u64) -> f64 {
            let [written_us, allocated_us, megabyte_us] = disk;
            let bytes_us = megabyte_us * bytes / 1_000_000;
            let until = self.now + Duration::from_secs(seconds);
            let (mut segments, mut written) = (0, 0);
            while self.now < until {
                (segments, written) = (segments + 1, written + u32::from(self.is_written));
                let mut is_next_written = false;
                for flush in 0..64 {
                    self.now += Duration::from_micros(pause_us);
                    let begun_at = self.now;
                    let fixed_us = if self.is_written { written_us } else { allocated_us };
                    self.now += Duration::from_micros(bytes_us + fixed_us);
                    if flush >= 32 && !self.zeros.are_dear() {
                        is_next_written = true;
                        self.zeros.begin(self.now);
                        self.now += Duration::from_micros(2 * bytes_us);
                        self.zeros.note(2 * bytes, self.now);
                    }
                    self.zeros.note_flush(bytes, self.is_written, begun_at, self.now);
                }
                self.is_written = is_next_written;
                self.zeros.begin_segment();
            }
            f64::from(written) / f64::from(segments)
        }
    }

    fn fill(disk: Disk, bytes: u64) -> f64 {
        Run::new().fill(disk, bytes, 0, 20)
    }

    #[test]
    fn zeros_are_left_out_where_records_take_as_long_without_them() {
        assert!(fill(VOLUME, 200_000) < 0.1 && fill(VOLUME, 1_000_000) < 0.2);
        assert!(fill(FAST, 1_000_000) < 0.1);
    }

    #[test]
    fn zeros_that_take_little_of_the_time_are_written_and_nothing_else_is_tried() {
        for (disk, bytes) in [(VOLUME, 4096), (VOLUME, 20_000), (FAST, 73_000), (TURNING, 73_000)] {
            assert_eq!(fill(disk, bytes), 1.0, "{bytes}");
        }
    }

    #[test]
    fn zeros_that_take_long_are_written_where_records_take_longer_without_them() {
        let share = fill([667, 4000, 8000], 200_000);
        assert!(share > 0.9 && share < 1.0, "{share}");
    }

    #[test]
    fn a_load_of_other_flushes_is_measured_again() {
        let mut run = Run::new();
        for _ in 0..2 {
            assert!(run.fill(VOLUME, 200_000, 0, 20) < 0.3);
            assert!(run.fill(VOLUME, 4096, 0, 20) > 0.9);
        }
    }

    #[test]
    fn a_disk_that_becomes_slower_gets_no_zeros_again() {
        let mut run = Run::new();
        run.fill(VOLUME, 1_000_000, 0, 20);
        assert_eq!(run.fill([667, 1333, 40_000], 1_000_000, 0, 10), 0.0);
    }

    #[test]
    fn zeros_written_between_the_flushes_of_idle_producers_take_no_time() {
        assert_eq!(Run::new().fill(VOLUME, 4096, 20_000, 60), 1.0);
    }

    #[test]
    fn zeros_are_tried_again_once_four_gib_are_written_without_them() {
        let mut run = Run::new();
        run.fill(VOLUME, 200_000, 0, 20);
        assert!(run.zeros.are_dear());
        run.fill([667, 1333, 100], 200_000, 0, 40);
        assert!(!run.zeros.are_dear());
    }
}
