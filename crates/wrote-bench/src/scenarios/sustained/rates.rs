//! How fast a stretch of a run was, and how well that is known.

use std::ops::Range;
use wrote_result::document::{Interval, Sample};
use wrote_result::stats;

/// The batches of a stretch, so long that each depends little on the one before; and their samples.
const BATCHES: usize = 10;
const BATCH_SAMPLES_MIN: usize = 3;

/// Bytes and seconds at the beginning of a sample.
fn begin(samples: &[Sample], at: usize) -> (u64, f64) {
    match at.checked_sub(1) {
        None => (0, 0.0),
        Some(before) => (samples[before].end_bytes, samples[before].end_s),
    }
}

/// Bytes of the samples over their time; 0 of none.
pub(super) fn rate(samples: &[Sample], range: Range<usize>) -> f64 {
    if range.is_empty() {
        return 0.0;
    }
    let (from, to) = (begin(samples, range.start), begin(samples, range.end));
    (to.0 - from.0) as f64 / (to.1 - from.1).max(1e-9)
}

/// The throughput of a stretch with a 95 % interval, by the method of batch means: the samples
/// depend on those before, the throughputs of ten long batches hardly do (Law: Simulation Modeling
/// and Analysis, 5th edition, 9.5.3). The median is that of the batches.
pub(super) fn interval(samples: &[Sample], range: Range<usize>) -> Interval {
    let batches = (range.len() / BATCH_SAMPLES_MIN).clamp(1, BATCHES);
    let place = |number: usize| range.start + range.len() * number / batches;
    let rates: Vec<f64> =
        (0..batches).map(|number| rate(samples, place(number)..place(number + 1))).collect();
    stats::interval(&rates)
}

/// The number of samples that end with this many bytes or fewer.
pub(super) fn until(samples: &[Sample], end_bytes: u64) -> usize {
    samples.partition_point(|sample| sample.end_bytes <= end_bytes)
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{Noise, samples};
    use super::*;

    #[test]
    fn a_rate_is_bytes_over_time_and_no_mean_of_rates() {
        // 1 MB each: one takes 1 s, the other 3 s.
        let samples = samples(&[1e6_f64.ln(), (1e6_f64 / 3.0).ln()]);
        assert!((rate(&samples, 0..2) - 0.5e6).abs() < 1.0);
        assert!((rate(&samples, 1..2) - 1e6 / 3.0).abs() < 1.0);
        assert_eq!(rate(&samples, 1..1), 0.0);
        assert_eq!(until(&samples, 1_000_000), 1);
    }

    #[test]
    fn the_interval_holds_the_truth_though_samples_depend_on_each_other() {
        let truth = 1e9_f64.ln();
        let noise = Noise { deviation: 0.05, correlation: 0.8, ..Noise::default() };
        let held = (0..200).filter(|seed| {
            let logarithms: Vec<f64> =
                noise.series(*seed, 500).iter().map(|noise| truth + noise).collect();
            let interval = interval(&samples(&logarithms), 0..500);
            interval.ci95_low <= 1e9 && 1e9 <= interval.ci95_high
        });
        let held = held.count();
        assert!(held >= 180, "{held} of 200");
    }
}
