//! Figures over several runs or operations.

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
