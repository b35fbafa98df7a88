//! The rate of a workload that is an open loop.

use std::time::Duration;
use wrote_result::Error;
use wrote_result::document::Process;

/// The default duration of a run with a rate. It suffices for percentiles, and to show that a rate
/// is not reached.
pub const RUN_TIME: Duration = Duration::from_secs(2);

/// The rate of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// The amount of work that is due each second.
    pub amount: Amount,
    /// The distribution of the times at which operations are due.
    pub process: Process,
}

/// The amount of work that is due each second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// A number of operations.
    OperationsPerS(u32),
    /// A number of bytes.
    BytesPerS(u64),
}

impl Rate {
    /// Returns the mean interval between operations of `bs_bytes`.
    pub fn mean_distance(&self, bs_bytes: u64) -> Duration {
        Duration::from_secs_f64(match self.amount {
            Amount::OperationsPerS(operations) => 1.0 / f64::from(operations.max(1)),
            Amount::BytesPerS(bytes) => bs_bytes as f64 / bytes.max(1) as f64,
        })
    }

    /// Returns the share of worker `number` out of `workers`. The shares add up to the whole rate.
    /// A share below one operation or byte per second becomes 0, which [`Rate::check`] refuses.
    pub fn share(&self, number: u32, workers: u32) -> Rate {
        let workers = u64::from(workers.max(1));
        let number = u64::from(number) % workers;
        self.part(|whole| whole / workers + u64::from(number < whole % workers))
    }

    /// Returns a part of the rate; `of` computes it from the whole amount.
    fn part(&self, of: impl Fn(u64) -> u64) -> Rate {
        let amount = match self.amount {
            Amount::OperationsPerS(whole) => Amount::OperationsPerS(of(whole.into()) as u32),
            Amount::BytesPerS(whole) => Amount::BytesPerS(of(whole)),
        };
        Rate { amount, ..*self }
    }

    /// Refuses a rate that leaves a worker without work.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] if there is less than one operation or byte per second for each worker.
    pub fn check(&self, workers: u32, who: &str) -> Result<(), Error> {
        let (amount, unit) = match self.amount {
            Amount::OperationsPerS(operations) => (u64::from(operations), "operations"),
            Amount::BytesPerS(bytes) => (bytes, "bytes"),
        };
        if amount >= u64::from(workers.max(1)) {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "--rate: {amount} {unit} per second is less than one for each of {workers} {who}"
        )))
    }

    /// Returns this percentage of the rate.
    pub fn percent(&self, percent: u32) -> Rate {
        self.part(|whole| (whole * u64::from(percent) / 100).max(1))
    }

    /// Returns the approximate maximum number of operations of `bs_bytes` due within `time`: six
    /// standard deviations above the mean, which a Poisson process practically never exceeds.
    pub fn operations_max(&self, bs_bytes: u64, time: Duration) -> u64 {
        let mean = time.as_secs_f64() / self.mean_distance(bs_bytes).as_secs_f64().max(1e-12);
        (mean + 6.0 * mean.sqrt()).ceil() as u64 + 1
    }

    /// Returns the rate in operations per second; `None` if it is in bytes.
    pub fn iops(&self) -> Option<u32> {
        match self.amount {
            Amount::OperationsPerS(operations) => Some(operations),
            Amount::BytesPerS(_) => None,
        }
    }

    /// Returns the mean operations per second of each worker, for the result; `None` if the rate is
    /// in bytes.
    pub fn iops_of(&self, workers: u32) -> Option<f64> {
        self.iops().map(|whole| f64::from(whole) / f64::from(workers.max(1)))
    }

    /// Returns the mean bytes per second of each worker, for the result; `None` if the rate is in
    /// operations.
    pub fn bytes_per_s_of(&self, workers: u32) -> Option<f64> {
        self.bytes_per_s().map(|whole| whole as f64 / f64::from(workers.max(1)))
    }

    /// Returns the rate in bytes per second; `None` if it is in operations.
    pub fn bytes_per_s(&self) -> Option<u64> {
        match self.amount {
            Amount::OperationsPerS(_) => None,
            Amount::BytesPerS(bytes) => Some(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operations(per_s: u32) -> Rate {
        Rate { amount: Amount::OperationsPerS(per_s), process: Process::Poisson }
    }

    #[test]
    fn shares_differ_by_one_at_most_and_are_the_whole_together() {
        for (whole, workers) in [(10, 4), (4, 4), (1_000_001, 7)] {
            for rate in [
                operations(whole),
                Rate { amount: Amount::BytesPerS(whole.into()), process: Process::Linear },
            ] {
                let share = |number| rate.share(number, workers);
                let amount = |rate: Rate| {
                    rate.bytes_per_s().or(rate.iops().map(u64::from)).unwrap_or_default()
                };
                let shares: Vec<u64> = (0..workers).map(|number| amount(share(number))).collect();
                assert_eq!(shares.iter().sum::<u64>(), u64::from(whole));
                assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
            }
        }
    }

    #[test]
    fn a_rate_that_workers_cannot_share_evenly_is_reached_when_all_of_it_came() {
        for rate in
            [operations(50), Rate { amount: Amount::BytesPerS(50), process: Process::Linear }]
        {
            let mut row = crate::sample::row("small/cached", "process-crash", &[50.0]);
            let asked = &mut row.settings.asked;
            asked.numjobs = 16;
            (asked.rate_iops, asked.rate_bytes_per_s) = (rate.iops_of(16), rate.bytes_per_s_of(16));
            for run in &mut row.runs {
                (run.bytes, run.iops, run.elapsed_s) = (100, 50.0, 2.0);
            }
            let reached = wrote_result::document::Reached::of(&row).unwrap();
            assert!(reached.is_reached && reached.asked_per_s == 50.0, "{reached:?}");
        }
    }

    #[test]
    fn a_rate_that_leaves_nothing_for_some_is_refused_in_one_line() {
        assert!(operations(4).check(4, "jobs").is_ok());
        let refused = operations(3).check(4, "jobs").unwrap_err().to_string();
        assert!(refused.contains("3 operations per second") && refused.lines().count() == 1);
    }

    #[test]
    fn the_bound_of_due_operations_holds_and_is_close() {
        let most = operations(10_000).operations_max(4096, Duration::from_secs(2));
        assert!((20_000..22_000).contains(&most), "{most}");
        let bytes = Rate { amount: Amount::BytesPerS(4096), process: Process::Linear };
        assert!(bytes.operations_max(4096, Duration::from_secs(1)) >= 2);
    }

    #[test]
    fn a_part_of_a_rate_is_never_nothing() {
        assert_eq!(operations(50).percent(110).iops(), Some(55));
        assert_eq!(operations(3).percent(10).iops(), Some(1));
    }
}
