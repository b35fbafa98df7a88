//! A thread's counts of its operations while the clock runs, which are cheap enough to update with
//! each operation (M10).

use super::flush::Unflushed;
use super::trail::Trail;
use hdrhistogram::Histogram;
use std::sync::atomic::{AtomicU64, Ordering};

/// The maximum latency in a histogram: 10 minutes.
const LATENCY_MAX_NS: u64 = 600_000_000_000;

const SAMPLE_NS: u64 = 500_000_000;

const SAMPLE_NS_MIN: u64 = SAMPLE_NS / 2;

/// Returns an empty histogram for latencies, with three significant digits up to 10 minutes.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, LATENCY_MAX_NS, 3).expect("the bounds are sound")
}

/// The report of one direction of a job.
#[derive(Clone, Debug)]
pub struct DirectionReport {
    /// The number of bytes transferred.
    pub bytes: u64,
    /// The number of operations.
    pub operations: u64,
    /// The latencies in nanoseconds, counted from when the job queued an operation until it saw the
    /// completion. With a rate, they are counted from when the operation was due (M5).
    pub latency_ns: Histogram<u64>,
    /// The bytes per second, with a sample every half second.
    pub bandwidth_samples_bytes_per_s: Vec<f64>,
    /// The operations per second, with a sample every half second.
    pub iops_samples: Vec<f64>,
}

impl DirectionReport {
    pub(crate) fn new() -> DirectionReport {
        DirectionReport {
            bytes: 0,
            operations: 0,
            latency_ns: histogram(),
            bandwidth_samples_bytes_per_s: Vec::with_capacity(256),
            iops_samples: Vec::with_capacity(256),
        }
    }

    fn clear(&mut self) {
        (self.bytes, self.operations) = (0, 0);
        self.latency_ns.reset();
        self.bandwidth_samples_bytes_per_s.clear();
        self.iops_samples.clear();
    }
}

/// All counts of a thread.
#[derive(Clone, Debug)]
pub struct Tally {
    /// The reports on reads and on writes.
    pub directions: [DirectionReport; 2],
    pub flush_ns: Histogram<u64>,
    /// The time from each write to the end of the flush that covers it (M11), if there are flushes
    /// between writes whose own latencies do not include them.
    pub durable_ns: Histogram<u64>,
    /// The writes that the next such flush will cover; `None` if the job has no such flushes.
    unflushed: Option<Unflushed>,
    /// With a rate, how late operations were submitted: the time since an operation was due and
    /// there was room for it.
    pub issue_delay_ns: Histogram<u64>,
    pub trail: Trail,
    /// The number of operations queued at each depth.
    depths: Vec<u64>,
    submitted: Vec<u64>,
    completed: Vec<u64>,
    /// A direction, a latency, and the number of operations with both that have not been recorded
    /// yet. Most operations of a batch are thus recorded together.
    same: (bool, u64, u64),
    before_bytes: [u64; 2],
    sampled_ns: u64,
    /// The bytes and operations of each direction at the last sample.
    sampled: [(u64, u64); 2],
}

impl Tally {
    /// Returns the counts of a thread, all zero. `flushed_together` is the number of writes between
    /// two flushes, if each write is timed until its flush.
    pub fn new(iodepth: usize, flushed_together: Option<u32>) -> Tally {
        Tally {
            directions: [DirectionReport::new(), DirectionReport::new()],
            flush_ns: histogram(),
            durable_ns: histogram(),
            unflushed: flushed_together.map(|writes| Unflushed::with_room_for(writes as usize)),
            issue_delay_ns: histogram(),
            trail: Trail::new(),
            depths: vec![0; iodepth + 1],
            submitted: vec![0; iodepth + 1],
            completed: vec![0; iodepth + 1],
            same: (false, 0, 0),
            before_bytes: [0; 2],
            sampled_ns: 0,
            sampled: [(0, 0); 2],
        }
    }

    /// Counts `count` operations that were queued together while `before` operations were in
    /// flight.
    pub(super) fn submitted(&mut self, before: usize, count: usize) {
        self.depths[before + 1..=before + count].iter_mut().for_each(|seen| *seen += 1);
        self.submitted[count] += 1;
    }

    pub(super) fn completed(&mut self, count: usize) {
        if count > 0 {
            self.completed[count] += 1;
        }
    }

    pub(super) fn count(&mut self, write: bool, bytes: usize) {
        let direction = &mut self.directions[usize::from(write)];
        direction.bytes += bytes as u64;
        direction.operations += 1;
    }

    pub(super) fn record(&mut self, write: bool, latency_ns: u64) {
        if (write, latency_ns) != (self.same.0, self.same.1) {
            self.record_same();
            self.same = (write, latency_ns, 0);
        }
        self.same.2 += 1;
    }

    fn record_same(&mut self) {
        let (write, latency_ns, count) = self.same;
        if count > 0 {
            let histogram = &mut self.directions[usize::from(write)].latency_ns;
            histogram.saturating_record_n(latency_ns, count);
            self.same.2 = 0;
        }
    }

    /// Records how late an operation was submitted.
    pub(super) fn issued(&mut self, delay_ns: u64) {
        self.issue_delay_ns.saturating_record(delay_ns);
    }

    /// Returns whether writes are timed until the flush that covers them.
    pub(super) fn waits_for_flush(&self) -> bool {
        self.unflushed.is_some()
    }

    /// Records a write that has been acknowledged but not flushed.
    pub(super) fn unflushed(&mut self, began_ns: u64) {
        if let Some(unflushed) = &mut self.unflushed {
            unflushed.add(began_ns);
        }
    }

    /// Records that all writes acknowledged so far have been flushed.
    pub(super) fn durable(&mut self, now_ns: u64) {
        if let Some(unflushed) = &mut self.unflushed {
            unflushed.flushed(now_ns, &mut self.durable_ns);
        }
    }

    pub(super) fn sample(&mut self, now_ns: u64) {
        self.trail.pass(self.directions[1].bytes, now_ns);
        let elapsed_ns = now_ns.saturating_sub(self.sampled_ns);
        if elapsed_ns >= SAMPLE_NS {
            self.take_sample(now_ns, elapsed_ns);
        }
    }

    fn take_sample(&mut self, now_ns: u64, elapsed_ns: u64) {
        let per_s = |now: u64, before: u64| (now - before) as f64 / (elapsed_ns as f64 / 1e9);
        for (direction, sampled) in self.directions.iter_mut().zip(&mut self.sampled) {
            let (bytes, operations) = (direction.bytes, direction.operations);
            direction.bandwidth_samples_bytes_per_s.push(per_s(bytes, sampled.0));
            direction.iops_samples.push(per_s(operations, sampled.1));
            *sampled = (bytes, operations);
        }
        self.sampled_ns = now_ns;
    }

    /// Discards the counts of the ramp.
    pub(super) fn begin_again(&mut self, now_ns: u64) {
        self.before_bytes = self.moved_bytes();
        self.same.2 = 0;
        self.directions.iter_mut().for_each(DirectionReport::clear);
        self.flush_ns.reset();
        self.durable_ns.reset();
        self.unflushed.iter_mut().for_each(Unflushed::forget);
        self.issue_delay_ns.reset();
        self.trail.begin_again(now_ns);
        [&mut self.depths, &mut self.submitted, &mut self.completed]
            .into_iter()
            .for_each(|counts| counts.fill(0));
        (self.sampled_ns, self.sampled) = (now_ns, [(0, 0); 2]);
    }

    /// Completes the counts. The time since the last sample becomes another sample if it is long
    /// enough, or if there is no sample yet.
    pub(super) fn finish(&mut self, now_ns: u64) {
        self.record_same();
        let elapsed_ns = now_ns.saturating_sub(self.sampled_ns);
        let is_first = self.directions[0].bandwidth_samples_bytes_per_s.is_empty();
        if elapsed_ns >= if is_first { 1 } else { SAMPLE_NS_MIN } {
            self.take_sample(now_ns, elapsed_ns);
        }
    }

    /// Returns the numbers of bytes read and written so far, including those during the ramp.
    pub(super) fn moved_bytes(&self) -> [u64; 2] {
        [0, 1]
            .map(|direction: usize| self.before_bytes[direction] + self.directions[direction].bytes)
    }

    pub fn depths(&self) -> Histogram<u64> {
        counts(&self.depths)
    }

    /// Returns the distribution of the number of operations submitted together.
    pub fn submitted_together(&self) -> Histogram<u64> {
        counts(&self.submitted)
    }

    /// Returns the distribution of the number of operations that completed together.
    pub fn completed_together(&self) -> Histogram<u64> {
        counts(&self.completed)
    }
}

/// The progress of a thread: the bytes read and written so far.
#[derive(Debug, Default)]
pub struct Progress([AtomicU64; 2]);

impl Progress {
    pub(super) fn publish(&self, tally: &Tally) {
        for (shown, bytes) in self.0.iter().zip(tally.moved_bytes()) {
            shown.store(bytes, Ordering::Relaxed);
        }
    }

    /// Returns the numbers of bytes read and written so far, including those during the ramp.
    pub fn moved_bytes(&self) -> [u64; 2] {
        [0, 1].map(|direction: usize| self.0[direction].load(Ordering::Relaxed))
    }
}

/// Returns the counts as a histogram. The bounds are the same for all jobs, so that their
/// histograms can be added.
fn counts(counts: &[u64]) -> Histogram<u64> {
    let most = wrote::engine::Options::IODEPTH_MAX.into();
    let mut histogram = Histogram::new_with_bounds(1, most, 3).expect("the bounds are sound");
    for (value, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        histogram.saturating_record_n(value as u64, *count);
    }
    histogram
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(tally: &mut Tally, write: bool, latency_ns: u64, bytes: usize) {
        tally.count(write, bytes);
        tally.record(write, latency_ns);
    }

    #[test]
    fn operations_of_one_time_are_each_counted() {
        let mut tally = Tally::new(8, None);
        for (write, latency_ns) in [(false, 5), (false, 5), (true, 5), (true, 7), (false, 7)] {
            done(&mut tally, write, latency_ns, 10);
        }
        tally.finish(1000);
        let [reads, writes] = &tally.directions;
        assert_eq!((reads.bytes, reads.operations, reads.latency_ns.len()), (30, 3, 3));
        assert_eq!((writes.bytes, writes.operations, writes.latency_ns.len()), (20, 2, 2));
        assert_eq!(reads.latency_ns.count_at(5), 2);
        assert_eq!(writes.latency_ns.count_at(7), 1);
    }

    #[test]
    fn a_sample_is_what_was_moved_since_the_last_one_by_the_time_that_it_took() {
        let mut tally = Tally::new(1, None);
        done(&mut tally, false, 1, 1000);
        tally.sample(SAMPLE_NS - 1);
        assert!(tally.directions[0].bandwidth_samples_bytes_per_s.is_empty());
        tally.sample(SAMPLE_NS);
        done(&mut tally, false, 1, 500);
        done(&mut tally, true, 1, 300);
        tally.sample(3 * SAMPLE_NS);
        // This is too short for a sample.
        done(&mut tally, false, 1, 9999);
        tally.finish(3 * SAMPLE_NS + SAMPLE_NS_MIN - 1);
        assert_eq!(tally.directions[0].bandwidth_samples_bytes_per_s, [2000.0, 500.0]);
        assert_eq!(tally.directions[0].iops_samples, [2.0, 1.0]);
        assert_eq!(tally.directions[1].bandwidth_samples_bytes_per_s, [0.0, 300.0]);
    }

    #[test]
    fn a_run_that_is_shorter_than_a_sample_is_one() {
        let mut tally = Tally::new(1, None);
        done(&mut tally, true, 1, 1000);
        tally.finish(1_000_000);
        assert_eq!(tally.directions[1].bandwidth_samples_bytes_per_s, [1e6]);
    }

    #[test]
    fn operations_before_counting_are_moved_and_not_counted() {
        let mut tally = Tally::new(4, None);
        tally.submitted(0, 2);
        done(&mut tally, true, 9, 100);
        tally.flush_ns.saturating_record(3);
        tally.begin_again(50);
        tally.submitted(1, 1);
        tally.completed(1);
        done(&mut tally, true, 8, 10);
        assert_eq!(tally.moved_bytes(), [0, 110]);
        tally.finish(60);
        let writes = &tally.directions[1];
        assert_eq!((writes.bytes, writes.operations, writes.latency_ns.len()), (10, 1, 1));
        assert_eq!((tally.depths().len(), tally.depths().max()), (1, 2));
        assert_eq!(tally.flush_ns.len(), 0);
        assert_eq!(tally.completed_together().len(), 1);
        assert_eq!(tally.submitted_together().max(), 1);
    }
}
