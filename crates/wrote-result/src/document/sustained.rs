//! The result of a long write to a device.

use super::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// The minimum number of samples in which changes can be found.
pub const SAMPLES_MIN: usize = 32;
/// The maximum ratio of the lower to the higher throughput at a change.
pub const CHANGED_SHARE_MAX: f64 = 0.75;

/// The throughput of a long write, over bytes and over time.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Sustained {
    /// The size of the file, in bytes. When the file is full, writes continue at its start.
    pub file_bytes: u64,
    /// The throughput of each piece, in order.
    pub samples: Vec<Sample>,
    /// The changes of the throughput; empty if no change was found.
    pub changes: Vec<Change>,
    /// The throughput from the last change before the first cliff, or from the start, to the cliff;
    /// without a cliff, from the start to the first change or the end.
    pub burst_bytes_per_s: Interval,
    /// The throughput after the last change, or of the whole run if there is no change.
    pub sustained_bytes_per_s: Interval,
    /// The throughput right after the idle pause, for as many bytes as the burst had, or as fit
    /// into 10 seconds; absent if there was no pause.
    pub recovered_bytes_per_s: Option<Interval>,
    /// The length of the pause, in seconds. There is a pause only after a cliff.
    pub idle_s: Option<f64>,
    /// Whether a steady state was reached, by the rule of SNIA's Solid State Storage Performance
    /// Test Specification; absent if there are too few samples.
    pub steady_state: Option<SteadyState>,
}

/// One piece of the bytes written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Sample {
    /// The number of bytes written from the start of the run to the end of the sample.
    pub end_bytes: u64,
    /// The time from the start of the run to the end of the sample, in seconds.
    pub end_s: f64,
    /// The bytes per second within the sample.
    pub throughput_bytes_per_s: f64,
}

/// A point at which the throughput changed permanently.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Change {
    /// The number of bytes written before the change.
    pub at_bytes: u64,
    /// The time from the start of the run to the change, in seconds.
    pub at_s: f64,
    /// The throughput from the previous change, or from the start, to this change.
    pub before_bytes_per_s: f64,
    /// The throughput from this change to the next one, or to the end.
    pub after_bytes_per_s: f64,
}

/// Whether a steady state was reached. The run is divided into rounds of equal time. In 5 rounds,
/// the maximum and the minimum must differ by at most 20 % of the mean, and the least-squares line
/// must change by at most 10 % of the mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SteadyState {
    /// Whether the steady state was reached.
    pub reached: bool,
    /// The throughput of each round, in order.
    pub rounds_bytes_per_s: Vec<f64>,
    /// The first of the rounds that were judged, from 1. These are the first five steady rounds
    /// after the last change, or else the last five rounds.
    pub first_round: u32,
    /// The last of the rounds that were judged, inclusive.
    pub last_round: u32,
    /// The maximum minus the minimum of these rounds, as a part of their mean.
    pub range_share: f64,
    /// The change of the least-squares line from the first to the last of these rounds, as a part
    /// of their mean.
    pub slope_share: f64,
}

impl Sample {
    /// Returns the number of bytes written `at_s` seconds after the start, if the bytes of each
    /// sample are spread evenly over its time.
    pub fn bytes_at(samples: &[Sample], at_s: f64) -> f64 {
        height(samples, at_s, |sample| (sample.end_s, sample.end_bytes as f64))
    }

    /// Returns when `at_bytes` had been written, in seconds, if the bytes of each sample are spread
    /// evenly over its time.
    pub fn time_at(samples: &[Sample], at_bytes: f64) -> f64 {
        height(samples, at_bytes, |sample| (sample.end_bytes as f64, sample.end_s))
    }
}

/// Returns the height, at `at`, of the line from the origin through the `point` of each sample.
fn height(samples: &[Sample], at: f64, point: fn(&Sample) -> (f64, f64)) -> f64 {
    let next = samples.partition_point(|sample| point(sample).0 < at);
    let (from, low) = next.checked_sub(1).map_or((0.0, 0.0), |before| point(&samples[before]));
    samples.get(next).map(point).map_or(low, |(to, high)| {
        low + (at - from) / (to - from).max(f64::MIN_POSITIVE) * (high - low)
    })
}

impl Sustained {
    /// Returns whether there are enough samples to find a change.
    pub fn tells_changes(&self) -> bool {
        self.samples.len() >= SAMPLES_MIN
    }

    /// Returns the cliffs: changes to at most three quarters of the previous throughput, after
    /// which no level exceeds the new one. A temporary slowdown is not a cliff.
    pub fn cliffs(&self) -> impl Iterator<Item = &Change> {
        self.changes
            .iter()
            .enumerate()
            .filter(|(number, change)| {
                let slow = CHANGED_SHARE_MAX * change.before_bytes_per_s;
                self.changes[*number..].iter().all(|later| later.after_bytes_per_s <= slow)
            })
            .map(|(_, change)| change)
    }

    /// Returns the number of bytes written by the end of the last sample.
    pub fn written_bytes(&self) -> u64 {
        self.samples.last().map_or(0, |sample| sample.end_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cliffs(levels: &[f64]) -> Vec<u64> {
        let change = |(number, pair): (usize, &[f64])| Change {
            at_bytes: number as u64,
            at_s: 0.0,
            before_bytes_per_s: pair[0],
            after_bytes_per_s: pair[1],
        };
        let interval = Interval::default();
        let sustained = Sustained {
            file_bytes: 1,
            samples: Vec::new(),
            changes: levels.windows(2).enumerate().map(change).collect(),
            burst_bytes_per_s: interval,
            sustained_bytes_per_s: interval,
            recovered_bytes_per_s: None,
            idle_s: None,
            steady_state: None,
        };
        sustained.cliffs().map(|cliff| cliff.at_bytes).collect()
    }

    #[test]
    fn a_cliff_is_what_the_device_does_not_come_back_from() {
        assert_eq!(cliffs(&[4.5, 2.0, 0.5]), [0, 1]);
        assert_eq!(cliffs(&[1.0, 5.0, 2.0]), [1]);
        // The device is slow only for a while.
        assert_eq!(cliffs(&[4.0, 1.0, 4.0]), [0; 0]);
        assert_eq!(cliffs(&[4.0, 1.0, 2.0]), [0]);
        assert_eq!(cliffs(&[1.0, 4.0]), [0; 0]);
    }
}
