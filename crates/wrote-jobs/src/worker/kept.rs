//! Records of a job in addition to its counts: the entries of fio's log files, and the rate in each
//! second. A job with `steadystate` ends when that rate is steady.

use super::sequence::Next;
use super::tally::Tally;
use crate::spec::Steady;
use std::time::Duration;

/// An entry of fio's log files, about one operation or about all operations of a period.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Logged {
    /// The time since the job's clock started, in milliseconds.
    pub at_ms: u64,
    /// Whether the operations were writes.
    pub write: bool,
    /// The latency in nanoseconds, or the mean of several latencies.
    pub latency_ns: u64,
    /// The total number of bytes of the entry's operations.
    pub bytes: u64,
    /// The file offset of an entry with one operation.
    pub offset: u64,
    /// The number of operations of the entry.
    pub operations: u64,
    /// The length of the period in milliseconds; 0 for an entry with one operation.
    pub span_ms: u64,
}

/// A recorder of entries, each about one operation or about all operations of a period.
#[derive(Debug)]
pub(super) struct Keeper {
    mean_over_ms: u64,
    entries: Vec<Logged>,
    /// The sums over reads and over writes since the last entries, including the sums of their
    /// latencies.
    sums: [Logged; 2],
    next_ms: u64,
}

impl Keeper {
    /// Returns a recorder of entries that cover this period; with zero, of an entry for each
    /// operation.
    pub(super) fn new(mean_over: Duration) -> Keeper {
        let mean_over_ms = mean_over.as_millis() as u64;
        let sums = [false, true].map(|write| Logged { write, ..Logged::default() });
        // With an entry for each operation, memory is allocated for the first second of a fast disk
        // (M10).
        let room = if mean_over_ms == 0 { 1 << 20 } else { 1 << 12 };
        Keeper { mean_over_ms, entries: Vec::with_capacity(room), sums, next_ms: mean_over_ms }
    }

    pub(super) fn add(&mut self, at_ns: u64, done: &Next, latency_ns: u64) {
        let (at_ms, write, bytes) = (at_ns / 1_000_000, done.write, done.len as u64);
        if self.mean_over_ms == 0 {
            self.entries.push(Logged {
                at_ms,
                write,
                latency_ns,
                bytes,
                offset: done.offset,
                operations: 1,
                span_ms: 0,
            });
            return;
        }
        self.pass(at_ms);
        let sum = &mut self.sums[usize::from(write)];
        sum.latency_ns += latency_ns;
        sum.bytes += bytes;
        sum.operations += 1;
    }

    /// Creates the entries of the periods that have ended.
    fn pass(&mut self, at_ms: u64) {
        while at_ms >= self.next_ms {
            self.close(self.next_ms);
            self.next_ms += self.mean_over_ms;
        }
    }

    fn close(&mut self, at_ms: u64) {
        for sum in &mut self.sums {
            if let Some(latency_ns) = sum.latency_ns.checked_div(sum.operations) {
                let span_ms = at_ms + self.mean_over_ms - self.next_ms;
                self.entries.push(Logged { at_ms, latency_ns, span_ms, ..*sum });
                *sum = Logged { write: sum.write, ..Logged::default() };
            }
        }
    }

    pub(super) fn finish(mut self, at_ns: u64) -> Vec<Logged> {
        if self.mean_over_ms > 0 {
            self.pass(at_ns / 1_000_000);
            self.close(at_ns / 1_000_000);
        }
        self.entries
    }
}

/// The rates of a job that ends when they are steady.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Steadiness {
    /// Whether the rate was steady when the job ended.
    pub attained: bool,
    /// The figure that is compared with the limit, in the unit of the limit.
    pub criterion: f64,
    /// The number of operations in each of the last seconds.
    pub iops: Vec<f64>,
    /// The number of bytes in each of the last seconds.
    pub bytes: Vec<f64>,
}

const SECOND_NS: u64 = 1_000_000_000;

/// A watch that examines the rate once per second.
#[derive(Debug)]
pub(super) struct Watch {
    steady: Steady,
    pub(super) so_far: Steadiness,
    next_ns: u64,
    seen: (u64, u64),
}

impl Watch {
    pub(super) fn new(steady: Steady) -> Watch {
        let (so_far, next_ns) = (Steadiness::default(), SECOND_NS);
        Watch { steady, so_far, next_ns, seen: (0, 0) }
    }

    /// Records the rate if a second has passed, and returns whether the rate is steady.
    pub(super) fn look(&mut self, now_ns: u64, tally: &Tally) -> bool {
        if now_ns < self.next_ns {
            return false;
        }
        let sum = |of: fn(&super::DirectionReport) -> u64| tally.directions.iter().map(of).sum();
        let now: (u64, u64) = (sum(|one| one.operations), sum(|one| one.bytes));
        let seconds = (now_ns - (self.next_ns - SECOND_NS)) as f64 / SECOND_NS as f64;
        let seconds_kept = self.steady.over.as_secs().max(2) as usize;
        for (rates, count) in [
            (&mut self.so_far.iops, now.0 - self.seen.0),
            (&mut self.so_far.bytes, now.1 - self.seen.1),
        ] {
            if rates.len() == seconds_kept {
                rates.remove(0);
            }
            rates.push(count as f64 / seconds);
        }
        (self.seen, self.next_ns) = (now, now_ns + SECOND_NS);
        let is_early = Duration::from_nanos(now_ns) < self.steady.ramp + self.steady.over;
        if is_early || self.so_far.iops.len() < seconds_kept {
            return false;
        }
        let rates = if self.steady.iops { &self.so_far.iops } else { &self.so_far.bytes };
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let off = match self.steady.slope {
            true => slope(rates).abs(),
            false => rates.iter().map(|rate| (rate - mean).abs()).fold(0.0, f64::max),
        };
        self.so_far.criterion =
            if self.steady.percent { off * 100.0 / mean.max(1e-9) } else { off };
        self.so_far.attained = self.so_far.criterion < self.steady.limit;
        self.so_far.attained
    }
}

/// Returns the slope of the least-squares line, per second.
fn slope(rates: &[f64]) -> f64 {
    let middle = (rates.len() - 1) as f64 / 2.0;
    let offsets = || (0..rates.len()).map(|at| at as f64 - middle);
    let product: f64 = offsets().zip(rates).map(|(offset, rate)| offset * rate).sum();
    product / offsets().map(|offset| offset * offset).sum::<f64>().max(1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_of_each_operation_or_the_means_of_a_time() {
        let each = |mean_over| {
            let mut keeper = Keeper::new(mean_over);
            let next = |write, len| Next { write, file: 0, offset: 0, len };
            keeper.add(1_000_000, &next(true, 4096), 100);
            keeper.add(2_000_000, &next(true, 4096), 300);
            keeper.add(12_000_000, &next(false, 512), 50);
            keeper.finish(15_000_000)
        };
        let entry = |at_ms, write, latency_ns, bytes, operations, span_ms| Logged {
            at_ms,
            write,
            latency_ns,
            bytes,
            operations,
            span_ms,
            offset: 0,
        };
        let single = each(Duration::ZERO);
        assert_eq!(single[1], entry(2, true, 300, 4096, 1, 0));
        let means = each(Duration::from_millis(10));
        assert_eq!(means, [entry(10, true, 200, 8192, 2, 10), entry(15, false, 50, 512, 1, 5)]);
    }

    #[test]
    fn a_rate_is_steady_when_its_deviation_is_below_the_limit() {
        let (over, ramp) = (Duration::from_secs(2), Duration::ZERO);
        let steady = Steady { iops: true, slope: false, limit: 10.0, percent: true, over, ramp };
        let mut watch = Watch::new(steady);
        let mut tally = Tally::new(1, None);
        for (second, operations, is_steady) in [(1, 100, false), (2, 200, false), (3, 201, true)] {
            (0..operations).for_each(|_| tally.count(true, 512));
            assert_eq!(watch.look(second * SECOND_NS, &tally), is_steady, "{second}");
        }
        assert_eq!(watch.so_far.iops, [200.0, 201.0]);
    }
}
