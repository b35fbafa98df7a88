//! What is said of a device that was written for long.

use super::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the throughput went while the device was written for long, against bytes and against time.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sustained {
    /// The throughput, piece by piece, in the order in which they were written.
    pub samples: Vec<Sample>,
    /// Where it changed; none where no change was found.
    pub changes: Vec<Change>,
    /// The throughput before the first change that slowed it, or of all where there is none.
    pub burst_bytes_per_s: Interval,
    /// The throughput behind the last change, or of all where there is none.
    pub sustained_bytes_per_s: Interval,
    /// The throughput right after the idle pause; none where there was no pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered_bytes_per_s: Option<Interval>,
    /// How long the pause was, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_s: Option<f64>,
    /// Whether a steady state was reached, by the rule of SNIA's Solid State Storage Performance Test
    /// Specification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady_state: Option<SteadyState>,
}

/// One piece of what was written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Bytes written when it ended, from the start of the run.
    pub end_bytes: u64,
    /// Seconds from the start of the run to its end.
    pub end_s: f64,
    /// Bytes per second within it.
    pub throughput_bytes_per_s: f64,
}

/// A place where the throughput changed for good.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Bytes written before it.
    pub at_bytes: u64,
    /// Seconds from the start of the run.
    pub at_s: f64,
    /// The throughput between the change before, or the start, and this one.
    pub before_bytes_per_s: f64,
    /// The throughput between this change and the next one, or the end.
    pub after_bytes_per_s: f64,
}

/// Whether a steady state was reached: over 5 rounds the greatest and the least are at most 20 % of the
/// mean apart, and the least-squares line changes by at most 10 % of the mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SteadyState {
    /// Whether it was.
    pub reached: bool,
    /// The throughput of each round, in their order.
    pub rounds_bytes_per_s: Vec<f64>,
    /// The rounds that are looked at, from 1, first and last included: the first five that are steady,
    /// or the last five.
    pub first_round: u32,
    /// The last of them.
    pub last_round: u32,
    /// The greatest less the least of them, as a part of their mean.
    pub range_share: f64,
    /// How much their least-squares line changes from the first to the last, as a part of their mean.
    pub slope_share: f64,
}
