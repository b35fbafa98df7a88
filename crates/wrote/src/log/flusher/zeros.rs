//! Decides whether zeros are written ahead of the records, by the time of segments with and without
//! them.
//!
//! A flush of records in written blocks changes no metadata of the file system. In allocated blocks
//! it does, and takes about twice as long. But writing the zeros takes time too, as they are as
//! many bytes as the records. On a slow disk with large flushes that costs far more.
//!
//! 1. Whole segments are compared by their time per byte, as the zeros of one are written in the
//!    second half of the one before; of two successive costs of a way the lesser counts.
//! 2. A segment without zeros is tried where zeros may take half as long as the records: flushes
//!    are as long as a step of zeros, or take longer once the zeros of the next segment are begun,
//!    or zeros fell behind the records.
//! 3. The trial ends inside its segment once it has clearly failed.
//! 4. After it zeros are left out, unless they save a tenth of the time.
//! 5. Both ways are measured again when flushes become twice as long or short, and after 4 GiB.

use super::super::prepare::STEP_BYTES;
use std::time::{Duration, Instant};

/// The time of records after which their cost is known: long enough to include typical delays, such
/// as the limits of a volume.
const TOLD_AFTER: Duration = Duration::from_millis(250);
/// The flushes after which it is: where fewer operations than that fit into the time, a limit holds
/// up one half of a segment or the other by chance.
const TOLD_FLUSHES: u64 = 24;
/// The fraction (as an inverse) of a record's time that zeros of its length may take before less is
/// tried.
const SHARE: u128 = 2;
/// The fraction (as an inverse) of the time that zeros must save: at about equal speed, half of the
/// bytes is better.
const SAVED: u128 = 10;
/// A trial has clearly failed if records take this many halves of their time with zeros: more
/// than a limit, which holds up operations for 100 ms at a time, changes in [`TOLD_AFTER`].
const FAILED_HALVES: u128 = 3;
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
    /// When records last became durable, or a segment began: the time before is counted.
    counted_at: Option<Instant>,
    /// When the current segment was begun.
    segment_at: Option<Instant>,
    /// There were records in an earlier segment than the current one.
    has_records: bool,
    /// Zeros were started in the current segment.
    are_begun: bool,
    /// Zeros are left out; the bytes since then.
    left_out: Option<u64>,
    /// A trial without zeros has failed in the current segment.
    has_failed: bool,
}

/// Successive segments of one way.
#[derive(Debug, Default)]
struct Sample {
    flushes: u64,
    bytes: u64,
    /// Bytes of records whose blocks were written before.
    in_written: u64,
    zeros_bytes: u64,
    /// Zeros fell behind, and the rest of a segment's was left out.
    were_left_out: bool,
    time: Duration,
    /// The records before the zeros of the next segment were begun.
    alone: Part,
}

/// Records, and the time until they were durable.
#[derive(Debug, Default)]
struct Part {
    bytes: u64,
    time: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Cost {
    ns_per_gb: u128,
    /// The last sample's own, which may be higher by chance.
    last_ns_per_gb: u128,
    flush_bytes: u64,
}

impl Sample {
    /// Returns whether zeros were written for the segments and ahead of the next ones; `None` for
    /// the change from one way to the other. A flush may end in the next segment.
    fn has_zeros(&self) -> Option<bool> {
        if self.were_left_out {
            return Some(true);
        }
        let few = self.bytes / 8;
        if self.in_written <= few && self.zeros_bytes <= few {
            return Some(false);
        }
        let is_written = self.in_written >= self.bytes - few;
        (is_written && self.zeros_bytes >= self.bytes / 2).then_some(true)
    }

    /// Returns whether zeros take a large part of the time of as many bytes of records: they need
    /// as many operations as long flushes, and short flushes take longer once zeros are begun.
    fn is_zeros_share_large(&self) -> bool {
        if self.were_left_out || self.bytes >= self.flushes * STEP_BYTES {
            return true;
        }
        let Part { bytes, time } = &self.alone;
        let beside = (self.time - *time).as_nanos() * u128::from(*bytes);
        let zeros = beside.saturating_sub(time.as_nanos() * u128::from(self.bytes - bytes));
        zeros * SHARE > time.as_nanos() * u128::from(self.zeros_bytes)
    }

    fn is_told(&self) -> bool {
        self.time >= TOLD_AFTER && self.flushes >= TOLD_FLUSHES
    }

    fn cost(&self) -> Cost {
        // A new log writes more zeros than records, for longer and longer segments.
        let bytes = match self.has_zeros() {
            // Where zeros were left out, the records had most of the time.
            Some(true) if self.were_left_out => {
                self.bytes.max(self.bytes.midpoint(self.zeros_bytes))
            }
            Some(true) => self.bytes.midpoint(self.zeros_bytes),
            _ => self.bytes,
        };
        let ns_per_gb = self.time.as_nanos() * 1_000_000_000 / u128::from(bytes.max(1));
        Cost { ns_per_gb, last_ns_per_gb: ns_per_gb, flush_bytes: self.bytes / self.flushes.max(1) }
    }
}

impl Cost {
    /// Returns the cost after `before`: the lesser of both.
    fn after(self, before: Option<Cost>) -> Cost {
        let least = |before: Cost| self.ns_per_gb.min(before.last_ns_per_gb);
        Cost { ns_per_gb: before.map_or(self.ns_per_gb, least), ..self }
    }

    /// Returns whether the flushes of both are about as long.
    fn is_of_load(&self, other: &Cost) -> bool {
        let (one, other) = (self.flush_bytes, other.flush_bytes);
        one.max(other) <= OTHER_LOAD * one.min(other)
    }
}

impl Zeros {
    /// Records that zeros were started.
    pub(super) fn begin(&mut self) {
        self.are_begun = true;
    }

    /// Records that zeros fell behind the records, which did not wait for the rest.
    pub(super) fn note_left_out(&mut self) {
        self.sample.were_left_out = true;
    }

    /// Counts `bytes` of zeros that were written.
    pub(super) fn note(&mut self, bytes: u64) {
        self.sample.zeros_bytes += bytes;
    }

    /// Records a flush, complete `at` a time, of `bytes` that needed the disk at `begun_at`.
    pub(super) fn note_flush(&mut self, bytes: u64, written: bool, begun_at: Instant, at: Instant) {
        let counted_at = self.counted_at.replace(at).unwrap_or(begun_at);
        let time = at - begun_at.max(counted_at);
        // Producers that wait prepare their next records in about the same time either way, and a
        // limited disk then takes these faster. Idle producers take longer.
        let time = time + begun_at.saturating_duration_since(counted_at).min(time);
        let sample = &mut self.sample;
        sample.flushes += 1;
        sample.bytes += bytes;
        sample.in_written += if written { bytes } else { 0 };
        sample.time += time;
        // The first records of a segment may have waited for its zeros.
        let is_of_segment = self.segment_at.is_none_or(|segment_at| begun_at >= segment_at);
        if is_of_segment && !self.are_begun {
            sample.alone.bytes += bytes;
            sample.alone.time += time;
        }
        self.review_trial();
    }

    /// Ends a trial without zeros that has clearly failed.
    fn review_trial(&mut self) {
        let (Some(_), Some(with), None) = (self.left_out, self.with, self.without) else { return };
        let (sample, cost) = (&self.sample, self.sample.cost());
        if sample.time < TOLD_AFTER || !cost.is_of_load(&with) {
            return;
        }
        let has_failed = 2 * cost.ns_per_gb > with.ns_per_gb * FAILED_HALVES;
        if sample.has_zeros() == Some(false) && has_failed {
            (self.without, self.left_out, self.has_failed) = (Some(cost), None, true);
        }
    }

    /// Decides again, as a segment begins for records that have needed it since `begun_at`.
    pub(super) fn begin_segment(&mut self, begun_at: Instant, now: Instant) {
        // They waited for its zeros, which belong to the segment before.
        let counted_at = self.counted_at.replace(now).unwrap_or(now);
        self.sample.time += now - begun_at.max(counted_at).min(now);
        (self.segment_at, self.are_begun, self.has_failed) = (Some(now), false, false);
        // The first records wait for what opening leaves to do.
        let is_first = !self.has_records;
        self.has_records |= self.sample.bytes > 0;
        let Some(has_zeros) = self.sample.has_zeros().filter(|_| !is_first) else {
            self.sample = Sample::default();
            return;
        };
        if !self.sample.is_told() {
            return;
        }
        let sample = std::mem::take(&mut self.sample);
        let (cost, left_out) = (sample.cost(), self.left_out.unwrap_or(0) + sample.bytes);
        let (this, other) = match has_zeros {
            true => (&mut self.with, &mut self.without),
            false => (&mut self.without, &mut self.with),
        };
        let before = this.filter(|before| before.is_of_load(&cost));
        if this.is_some() && before.is_none() || !has_zeros && left_out > LEFT_OUT_BYTES {
            *other = None;
        }
        *this = Some(cost.after(before));
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

    /// Returns whether the current segment, which has no zeros, needs them after all; once.
    pub(super) fn take_failed(&mut self) -> bool {
        std::mem::take(&mut self.has_failed)
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
    /// Its journal is far away.
    const FAR: Disk = [667, 40_000, 8000];
    /// Limited by its operations alone.
    const NO_TIME: Disk = [0, 0, 0];

    /// A limit of 150 operations per second, which holds up further ones until the next 100 ms.
    struct Limit {
        taken: u32,
        until: Instant,
    }

    /// A log whose segments have the same length.
    struct Run {
        zeros: Zeros,
        now: Instant,
        is_written: bool,
        limit: Option<Limit>,
        /// An eighth of the zeros are written before their segment begins.
        falls_behind: bool,
    }

    impl Run {
        fn new() -> Run {
            let zeros = Zeros::default();
            Run { zeros, now: Instant::now(), is_written: true, limit: None, falls_behind: false }
        }

        /// Takes the time of some operations.
        fn spend(&mut self, us: u64, operations: u64) {
            self.now += Duration::from_micros(us);
            let Some(limit) = &mut self.limit else { return };
            for _ in 0..operations {
                if limit.taken == 15 {
                    self.now = self.now.max(limit.until);
                }
                if self.now >= limit.until {
                    *limit = Limit { taken: 0, until: self.now + Duration::from_millis(100) };
                }
                limit.taken += 1;
            }
        }

        /// Fills segments for some seconds by flushes of `bytes`, each after a pause. Writes the
        /// zeros of the next segment beside the second half. Returns the fraction of flushes in
        /// written blocks.
        fn fill(&mut self, disk: Disk, bytes: u64, pause_us: u64, seconds: u64) -> f64 {
            let [written_us, allocated_us, megabyte_us] = disk;
            let bytes_us = megabyte_us * bytes / 1_000_000;
            let until = self.now + Duration::from_secs(seconds);
            let (mut flushes, mut written, mut zeros_bytes) = (0, 0, 0);
            while self.now < until {
                let mut is_next_written = false;
                for flush in 0..64 {
                    self.now += Duration::from_micros(pause_us);
                    let begun_at = self.now;
                    let (fixed_us, operations) =
                        if self.is_written { (written_us, 2) } else { (allocated_us, 5) };
                    self.spend(bytes_us + fixed_us, operations);
                    if flush >= 32 && !self.zeros.are_dear() {
                        is_next_written = !self.falls_behind;
                        let part = if self.falls_behind { 8 } else { 1 };
                        zeros_bytes += 2 * bytes / part;
                        self.zeros.begin();
                        self.spend(2 * bytes_us / part, zeros_bytes / STEP_BYTES);
                        zeros_bytes %= STEP_BYTES;
                        self.zeros.note(2 * bytes / part);
                    }
                    self.zeros.note_flush(bytes, self.is_written, begun_at, self.now);
                    (flushes, written) = (flushes + 1, written + u32::from(self.is_written));
                    self.is_written |= self.zeros.take_failed();
                }
                self.is_written = is_next_written;
                if self.falls_behind && !self.zeros.are_dear() {
                    self.zeros.note_left_out();
                }
                self.zeros.begin_segment(self.now, self.now);
            }
            f64::from(written) / f64::from(flushes)
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
    fn zeros_that_fall_behind_the_records_are_left_out() {
        let mut run = Run { falls_behind: true, ..Run::new() };
        let share = run.fill(VOLUME, 73_000, 0, 20);
        assert!(share < 0.01 && run.zeros.are_dear(), "{share}");
    }

    #[test]
    fn zeros_that_take_long_are_written_where_records_take_longer_without_them() {
        let share = fill([667, 4000, 8000], 200_000);
        assert!(share > 0.9 && share < 1.0, "{share}");
    }

    #[test]
    fn a_trial_that_fails_ends_inside_its_segment() {
        let mut run = Run::new();
        let share = run.fill(FAR, 200_000, 0, 20);
        assert!(share > 0.98 && share < 1.0 && !run.zeros.are_dear(), "{share}");
    }

    #[test]
    fn a_limit_that_holds_up_either_half_of_a_segment_begins_no_trial() {
        for taken in 0..15 {
            let mut run = Run::new();
            run.limit = Some(Limit { taken, until: run.now + Duration::from_millis(100) });
            assert_eq!(run.fill(NO_TIME, 73_000, 0, 20), 1.0, "{taken}");
        }
    }

    #[test]
    fn a_single_high_cost_does_not_count() {
        let sample = |ms| Sample {
            flushes: 1,
            bytes: 1_000_000,
            time: Duration::from_millis(ms),
            ..Sample::default()
        };
        let mut cost = None;
        let costs = [160, 400, 150, 400, 410, 170].map(|ms| {
            let next = sample(ms).cost().after(cost);
            cost = Some(next);
            next.ns_per_gb / 1_000_000_000
        });
        assert_eq!(costs, [160, 160, 150, 150, 400, 170]);
    }

    #[test]
    fn a_disk_that_is_busy_for_a_while_keeps_the_better_way() {
        for (disk, zeros) in [(FAR, 0.95..=1.0), (VOLUME, 0.0..=0.05)] {
            let mut run = Run::new();
            run.fill(disk, 200_000, 0, 20);
            for seconds in [1, 5] {
                run.fill(disk.map(|us| 3 * us), 200_000, 0, seconds);
                let share = run.fill(disk, 200_000, 0, 20);
                assert!(zeros.contains(&share), "{disk:?} {seconds}: {share}");
            }
        }
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
