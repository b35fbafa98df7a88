//! Figures of several runs or operations: intervals and latencies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A median and its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Interval {
    /// The median over the runs.
    pub median: f64,
    /// The interval's lower end.
    pub ci95_low: f64,
    /// The interval's upper end.
    pub ci95_high: f64,
}

/// Latencies of one operation, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// The minimum.
    pub min: u64,
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: u64,
    /// The 90th percentile.
    pub p90: u64,
    /// The 95th percentile.
    pub p95: u64,
    /// The 99th percentile.
    pub p99: u64,
    /// The 99.9th percentile.
    pub p99_9: u64,
    /// The maximum.
    pub max: u64,
    /// The sum.
    #[serde(default)]
    pub total: u64,
    /// The number of operations.
    pub count: u64,
}

impl Latency {
    /// The fewest operations for a P99: one of them is slower.
    pub const P99_COUNT_MIN: u64 = 100;
    /// The fewest operations for a P99.9.
    pub const P99_9_COUNT_MIN: u64 = 1000;

    /// Returns the P99 to show or to judge by; `None` below [`Latency::P99_COUNT_MIN`] operations,
    /// where it is but the maximum.
    pub fn known_p99(&self) -> Option<u64> {
        (self.count >= Latency::P99_COUNT_MIN).then_some(self.p99)
    }

    /// Returns the P99.9 to show; `None` below [`Latency::P99_9_COUNT_MIN`] operations.
    pub fn known_p99_9(&self) -> Option<u64> {
        (self.count >= Latency::P99_9_COUNT_MIN).then_some(self.p99_9)
    }

    /// Combines latencies without histograms, at least one: minimum, maximum, mean, sum and count
    /// are exact, and `percentile` makes a percentile of all from each one's own.
    pub fn combined(all: &[Latency], percentile: impl Fn(Vec<u64>) -> u64) -> Latency {
        let of = |figure: fn(&Latency) -> u64| percentile(all.iter().map(figure).collect());
        let total = all.iter().map(|one| one.total).sum();
        let count = all.iter().map(|one| one.count).sum::<u64>();
        Latency {
            min: all.iter().map(|one| one.min).min().unwrap_or(0),
            mean: total as f64 / (count as f64).max(1.0),
            p50: of(|one| one.p50),
            p90: of(|one| one.p90),
            p95: of(|one| one.p95),
            p99: of(|one| one.p99),
            p99_9: of(|one| one.p99_9),
            max: all.iter().map(|one| one.max).max().unwrap_or(0),
            total,
            count,
        }
    }
}
