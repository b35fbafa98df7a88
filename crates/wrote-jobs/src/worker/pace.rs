//! The due times of a worker's operations, and how the worker waits for them.

use super::{Arrival, Worker};
use crate::rate::{Amount, Rate};
use crate::spec::{JobSpec, Rw};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use std::num::NonZeroU64;
use std::time::{Duration, Instant};
use wrote::engine::Completion;
use wrote_result::Error;
use wrote_result::document::Process;

const NS_PER_S: f64 = 1e9;
/// The last part of a wait, during which the worker spins, because the kernel wakes threads about
/// 10 us late.
const AWAKE_NS: u64 = 50_000;

/// The rate of one direction, and the work counted so far.
///
/// An operation is due as soon as the earlier operations fit within the rate. Its due time depends
/// on their sizes and the seed, never on when they complete. A job that has fallen behind therefore
/// catches up, and its latencies are counted from the due times.
///
/// In a Poisson process, each interval is the mean multiplied by a random number from the
/// exponential distribution with mean 1. With a rate in bytes, the interval after an operation is
/// proportional to its bytes. Several such processes with different seeds together form a Poisson
/// process with the sum of their rates (Kingman, *Poisson Processes*, 1993, 2.2).
#[derive(Clone, Debug, Default)]
pub struct Pace {
    bytes_per_s: Option<u64>,
    operations_per_s: Option<u64>,
    /// The number of bytes so far. In a Poisson process, each operation has a random weight.
    bytes: f64,
    operations: f64,
    /// The source of the weights; `None` for even intervals.
    chance: Option<Xoshiro256PlusPlus>,
}

impl Pace {
    /// Returns a pace with these rates. A rate of 0 means no limit.
    pub fn new(bytes_per_s: Option<u64>, operations_per_s: Option<u32>) -> Pace {
        let some = |rate: Option<u64>| rate.filter(|rate| *rate > 0);
        Pace {
            bytes_per_s: some(bytes_per_s),
            operations_per_s: some(operations_per_s.map(u64::from)),
            ..Pace::default()
        }
    }

    /// Returns the pace of worker `number` out of `workers`, which share `rate`.
    pub fn share(rate: Rate, number: u32, workers: u32, seed: u64) -> Pace {
        let pace = match rate.share(number, workers).amount {
            Amount::OperationsPerS(operations) => Pace::new(None, Some(operations)),
            Amount::BytesPerS(bytes) => Pace::new(Some(bytes), None),
        };
        pace.process(rate.process, seed)
    }

    /// Returns this pace with the intervals of `process`.
    pub fn process(self, process: Process, seed: u64) -> Pace {
        let chance = match process {
            Process::Linear => None,
            Process::Poisson => Some(Xoshiro256PlusPlus::seed_from_u64(seed)),
        };
        Pace { chance, ..self }
    }

    /// Returns whether there is a rate.
    pub fn holds(&self) -> bool {
        self.bytes_per_s.is_some() || self.operations_per_s.is_some()
    }

    /// Returns when the next operation is due, in nanoseconds since the start. With both rates,
    /// this is the later of the two times. The first operation is due immediately.
    pub fn due_ns(&self) -> u64 {
        let due =
            |done: f64, rate: Option<u64>| rate.map_or(0.0, |rate| done * NS_PER_S / rate as f64);
        let due =
            due(self.bytes, self.bytes_per_s).max(due(self.operations, self.operations_per_s));
        // The conversion saturates, so a time beyond the range becomes the maximum.
        due.ceil() as u64
    }

    /// Counts a queued operation of `bytes`.
    pub fn count(&mut self, bytes: usize) {
        let weight = self.chance.as_mut().map_or(1.0, exponential);
        self.bytes += bytes as f64 * weight;
        self.operations += weight;
    }
}

/// Returns a random number from the exponential distribution with mean 1, by inversion.
fn exponential(chance: &mut Xoshiro256PlusPlus) -> f64 {
    // The number is at least 0 and less than 1.
    let uniform: f64 = chance.random();
    -(-uniform).ln_1p()
}

/// Returns how long to sleep before a due time. The sleep is short enough to notice a request to
/// stop.
pub fn nap(until_due: Duration) -> Duration {
    until_due.min(Duration::from_millis(50))
}

/// The paces of a worker's reads and writes, which arrive independently.
pub(super) struct Paces {
    of: [Pace; 2],
    /// Whether reads or writes have a rate.
    pub hold: bool,
    /// When the job's last pause ended. No operation of a job with a rate is due before then.
    pub thought_until_ns: u64,
}

impl Paces {
    pub(super) fn new(spec: &JobSpec) -> Paces {
        let pace = |kind: u64, bytes_per_s, iops| {
            Pace::new(bytes_per_s, iops).process(spec.pace.rate_process, spec.seed ^ kind << 32)
        };
        let of = [
            pace(1, spec.pace.read_rate_bytes_per_s, spec.pace.read_rate_iops),
            pace(2, spec.pace.write_rate_bytes_per_s, spec.pace.write_rate_iops),
        ];
        Paces { hold: of.iter().any(Pace::holds), of, thought_until_ns: 0 }
    }

    /// Sets the thread's timer slack to its minimum. The default is 50 us (prctl(2),
    /// `PR_SET_TIMERSLACK`).
    pub(super) fn prepare(&self) {
        if self.hold {
            // If this fails, timers are late, which the issue delay shows.
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        }
    }

    /// Returns when the next operation of a direction is due; `None` if the direction has no rate.
    fn due_ns(&self, write: bool) -> Option<u64> {
        let pace = &self.of[usize::from(write)];
        pace.holds().then(|| pace.due_ns().max(self.thought_until_ns))
    }

    /// Returns the direction of the next operation, and when it is due, as far as a rate determines
    /// them.
    ///
    /// With two rates, the direction that is due first comes next. If only one direction has a
    /// rate, the other one fills the time in between.
    #[inline]
    pub(super) fn next(&self, rw: Rw, now_ns: u64) -> (Option<bool>, Option<u64>) {
        if !self.hold {
            return (None, None);
        }
        let Rw { read, write, .. } = rw;
        match (read && write, self.due_ns(false), self.due_ns(true)) {
            (false, read_due, write_due) => (Some(write), if write { write_due } else { read_due }),
            (true, Some(read_due), Some(write_due)) => {
                (Some(write_due < read_due), Some(read_due.min(write_due)))
            }
            (true, Some(read_due), None) => (Some(read_due > now_ns), None),
            (true, None, Some(write_due)) => (Some(write_due <= now_ns), None),
            (true, None, None) => (None, None),
        }
    }

    /// Counts a queued operation, and returns when it is due; `None` without a rate.
    #[inline]
    pub(super) fn count(&mut self, write: bool, bytes: usize) -> Option<u64> {
        if !self.hold {
            return None;
        }
        let due_ns = self.due_ns(write);
        self.of[usize::from(write)].count(bytes);
        due_ns
    }
}

impl Worker<'_> {
    /// Waits until the job starts, which may be later than its group.
    pub fn delay(&mut self) {
        let begin = Instant::now();
        while let Some(left) = self.spec.pace.startdelay.checked_sub(begin.elapsed())
            && !left.is_zero()
            && !self.shared.must_stop()
        {
            std::thread::sleep(nap(left));
        }
    }

    /// Waits until the next operation is due, and collects completions while it waits. May return
    /// earlier, so the caller must check again.
    pub(super) fn wait_until(&mut self, due_ns: u64) -> Result<(), Error> {
        self.reap(0)?;
        let left_ns = due_ns.min(self.deadline_ns).saturating_sub(self.now_ns);
        if self.over || left_ns <= AWAKE_NS {
            // The caller tries again immediately if the operation is not due yet.
            std::hint::spin_loop();
            return Ok(());
        }
        let left = nap(Duration::from_nanos(left_ns - AWAKE_NS));
        if self.engine.outstanding() > 0 {
            self.engine.reap_within(left, &mut self.completions)?;
            for Completion { user_data, result, buffer, .. } in self.completions.drain(..) {
                self.arrivals.push(Arrival { place: user_data as u32, bytes: result?, buffer });
            }
            return self.acknowledge();
        }
        std::thread::sleep(left);
        Ok(())
    }

    /// Pauses once the operations in flight have completed. The pause ends early if the job's time
    /// is up.
    pub(super) fn think(&mut self) -> Result<(), Error> {
        self.reap(usize::MAX)?;
        let Some(think) = self.spec.pace.think else { return Ok(()) };
        self.think_at += u64::from(think.blocks);
        let begin = Instant::now();
        while begin.elapsed() < think.spin {
            std::hint::spin_loop();
        }
        while let Some(left) = think.time.checked_sub(begin.elapsed())
            && !left.is_zero()
            && !self.over
        {
            std::thread::sleep(nap(left));
            // During the pause, progress is published and samples are taken.
            self.acknowledge()?;
        }
        // The job requested the pause, so no latency includes it.
        self.read_clock();
        self.paces.thought_until_ns = self.now_ns;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the due times of `operations` operations whose sizes cycle through `sizes`.
    fn all_due_ns(mut pace: Pace, operations: usize, sizes: &[usize]) -> Vec<u64> {
        let mut next = |number: usize| {
            let due_ns = pace.due_ns();
            pace.count(sizes[number % sizes.len()]);
            due_ns
        };
        (0..operations).map(&mut next).collect()
    }

    #[test]
    fn without_a_rate_all_is_due_at_once() {
        for mut pace in [Pace::new(None, None), Pace::new(Some(0), Some(0))] {
            pace.count(1 << 30);
            assert!(!pace.holds());
            assert_eq!(pace.due_ns(), 0);
        }
    }

    #[test]
    fn operations_are_due_at_even_distances_from_the_start() {
        let due_ns = all_due_ns(Pace::new(None, Some(4)), 4, &[123]);
        assert_eq!(due_ns, [0, 250_000_000, 500_000_000, 750_000_000]);
    }

    #[test]
    fn the_slower_of_two_rates_holds() {
        let mut pace = Pace::new(Some(1000), Some(1));
        pace.count(500);
        assert_eq!(pace.due_ns(), 1_000_000_000);
        pace.count(4500);
        assert_eq!(pace.due_ns(), 5_000_000_000);
    }

    #[test]
    fn a_poisson_process_is_the_same_again_with_the_same_seed_and_another_with_another() {
        let due_ns = |seed| {
            all_due_ns(Pace::new(None, Some(1000)).process(Process::Poisson, seed), 100, &[1])
        };
        assert_eq!(due_ns(5), due_ns(5));
        assert_ne!(due_ns(5), due_ns(6));
        assert_eq!((due_ns(5)[0], due_ns(6)[0]), (0, 0));
        assert!(due_ns(5).is_sorted());
    }

    #[test]
    fn a_poisson_process_has_the_asked_mean_and_the_distances_of_an_exponential_distribution() {
        // For an exponential distribution, the mean equals the standard deviation, and a share of
        // e^-1 lies above the mean. With 100,000 numbers, the errors are about 0.3 %. The seeds are
        // fixed.
        let operations = 100_000;
        for (pace, mean_ns) in [
            (Pace::new(None, Some(1000)), 1_000_000.0),
            // Half of the operations have 1000 bytes, and half have 3000.
            (Pace::new(Some(2_000_000), None), 1_000_000.0),
        ] {
            let due_ns = all_due_ns(pace.process(Process::Poisson, 42), operations, &[1000, 3000]);
            let distances: Vec<f64> =
                due_ns.windows(2).map(|two| (two[1] - two[0]) as f64 / mean_ns).collect();
            let mean = distances.iter().sum::<f64>() / distances.len() as f64;
            assert!((mean - 1.0).abs() < 0.01, "{mean}");
            let above = |times: f64| {
                let count = distances.iter().filter(|distance| **distance > times).count();
                count as f64 / distances.len() as f64
            };
            assert!(above(3.0) > 0.04 && above(0.1) < 0.95, "there are long and short ones");
        }
        let due_ns =
            all_due_ns(Pace::new(None, Some(1000)).process(Process::Poisson, 7), operations, &[1]);
        let beyond_mean = due_ns.windows(2).filter(|two| two[1] - two[0] > 1_000_000).count();
        let share = beyond_mean as f64 / operations as f64;
        assert!((share - (-1.0_f64).exp()).abs() < 0.01, "{share}");
    }

    #[test]
    fn shares_of_a_rate_are_together_the_whole_of_it() {
        for process in [Process::Linear, Process::Poisson] {
            let rate = Rate { amount: Amount::OperationsPerS(1003), process };
            let paces = (0..4).map(|number| Pace::share(rate, number, 4, number.into()));
            let whole: u64 = paces.map(|pace| pace.operations_per_s.unwrap()).sum();
            assert_eq!(whole, 1003);
        }
    }

    #[test]
    fn nobody_sleeps_past_what_is_due_nor_so_long_that_a_request_to_stop_is_not_heard() {
        let (short, long) = (Duration::from_micros(3), Duration::from_secs(3));
        assert_eq!(nap(short), short);
        assert!(nap(long) <= Duration::from_millis(50));
    }

    proptest! {
        #[test]
        fn no_more_is_due_than_the_rate_allows_and_one(
            rate in 1..10_000_000_u32,
            elapsed_ns in 0..100_000_000_000_u64,
        ) {
            let allowed = u128::from(elapsed_ns) * u128::from(rate) / 1_000_000_000;
            // The operation after the allowed ones, and the first one, which is due immediately.
            let pace = Pace { operations: (allowed + 1) as f64, ..Pace::new(None, Some(rate)) };
            prop_assert!(pace.due_ns() >= elapsed_ns);
        }
    }
}
