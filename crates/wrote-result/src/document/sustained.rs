//! The result of a long write to a device.

use super::Interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// The fewest samples in which changes can be found.
pub const SAMPLES_MIN: usize = 32;
/// The largest ratio of the lower to the higher throughput at a change.
pub const CHANGED_SHARE_MAX: f64 = 0.75;

/// The throughput of a long write, against bytes and against time.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Sustained {
    /// Bytes of the file. When it is full, writes continue at its start.
    pub file_bytes: u64,
    /// The throughput of each piece, in order.
    pub samples: Vec<Sample>,
    /// Where it changed; none if no change was found.
    pub changes: Vec<Change>,
    /// The throughput from the change before the first cliff to the cliff; without a cliff, from
    /// the start to the first change or the end.
    pub burst_bytes_per_s: Interval,
    /// The throughput after the last change, or of all where there is none.
    pub sustained_bytes_per_s: Interval,
    /// The throughput right after the idle pause, of as many bytes as the burst had or as fit in 10
    /// seconds; none if there was no pause.
    pub recovered_bytes_per_s: Option<Interval>,
    /// The length of the pause, in seconds. There is one only after a cliff.
    pub idle_s: Option<f64>,
    /// Whether a steady state was reached, by the rule of SNIA's Solid State Storage Performance
    /// Test Specification; none if there are too few samples.
    pub steady_state: Option<SteadyState>,
}

/// One piece of what was written.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Sample {
    /// Bytes written when it ended, from the start of the run.
    pub end_bytes: u64,
    /// Seconds from the start of the run to its end.
    pub end_s: f64,
    /// Bytes per second within it.
    pub throughput_bytes_per_s: f64,
}

/// A place where the throughput changed permanently.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
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

/// Whether a steady state was reached: over 5 rounds, equal parts of the run's time, the greatest
/// and the least are at most 20 % of the mean apart, and the least-squares line changes by at most
/// 10 % of the mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SteadyState {
    /// Whether it was.
    pub reached: bool,
    /// The throughput of each round, in their order.
    pub rounds_bytes_per_s: Vec<f64>,
    /// The first of the judged rounds, from 1: after the last change the first five that are
    /// steady, or the last five of all.
    pub first_round: u32,
    /// The last of the judged rounds, included.
    pub last_round: u32,
    /// The greatest less the least of them, as a part of their mean.
    pub range_share: f64,
    /// The change of their least-squares line from the first to the last, as a part of their mean.
    pub slope_share: f64,
}

impl Sample {
    /// Returns the bytes written by the second `at_s`, evenly within a sample.
    pub fn bytes_at(samples: &[Sample], at_s: f64) -> f64 {
        height(samples, at_s, |sample| (sample.end_s, sample.end_bytes as f64))
    }

    /// Returns when `at_bytes` were written, in seconds, evenly within a sample.
    pub fn time_at(samples: &[Sample], at_bytes: f64) -> f64 {
        height(samples, at_bytes, |sample| (sample.end_bytes as f64, sample.end_s))
    }
}

/// Returns the height of the line from 0 through each sample's `point`, at the place `at`.
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

    /// Returns the cliffs: changes to at most three quarters of the throughput before, which no
    /// later stretch exceeds. A temporary slowdown is not a cliff.
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

    /// Bytes written by the end of the last sample.
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
        // Slow for a while.
        assert_eq!(cliffs(&[4.0, 1.0, 4.0]), [0; 0]);
        assert_eq!(cliffs(&[4.0, 1.0, 2.0]), [0]);
        assert_eq!(cliffs(&[1.0, 4.0]), [0; 0]);
    }
}
