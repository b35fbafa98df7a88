//! The noise of a series: spikes clipped, and how much the mean of a stretch errs although its
//! values depend on those before.

use wrote_result::stats::median;

/// A spike is what lies farther from the running median than this many standard deviations.
const CLIP_DEVIATIONS: f64 = 3.0;
/// The running median looks so far to both sides, as a part of the series.
const WINDOW_SHARE: f64 = 0.01;
const WINDOW_MIN: usize = 3;
/// The standard deviation of a normal distribution by the median of absolute deviations.
const BY_MEDIAN: f64 = 1.4826;
/// A series that depends on the value before by more than this looks like a random walk.
const CORRELATION_MAX: f64 = 0.95;
/// No disk is steadier than one per cent: less would make each ripple count.
const DEVIATION_MIN: f64 = 0.01;

/// The series with its spikes clipped to the running median and three standard deviations (Hampel's
/// filter). Steps stay where they are: a median does not smear them.
pub(super) fn clipped(values: &[f64]) -> Vec<f64> {
    let reach = ((values.len() as f64 * WINDOW_SHARE) as usize).max(WINDOW_MIN);
    let running: Vec<f64> = (0..values.len())
        .map(|at| median(&values[at.saturating_sub(reach)..(at + reach + 1).min(values.len())]))
        .collect();
    let away: Vec<f64> =
        values.iter().zip(&running).map(|(value, around)| (value - around).abs()).collect();
    let most = CLIP_DEVIATIONS * (BY_MEDIAN * median(&away)).max(DEVIATION_MIN);
    let clip = |(value, around): (&f64, &f64)| value.clamp(around - most, around + most);
    values.iter().zip(&running).map(clip).collect()
}

/// The long-run variance: the variance of the mean of `n` values is about this over `n`.
///
/// That of an autoregression of first order, from the medians of the differences of values one and
/// two apart, which neither a few changes of level nor spikes disturb (Chakar, Lebarbier,
/// Lévy-Leduc, Robin: A robust approach for estimating change-points in the mean of an AR(1)
/// process, Bernoulli 23, 2017).
pub(super) fn long_run_variance(values: &[f64]) -> f64 {
    let differences = |apart: usize| {
        let pairs = values.iter().zip(values.iter().skip(apart));
        median(&pairs.map(|(a, b)| (a - b).abs()).collect::<Vec<f64>>())
    };
    let (one, two) = (differences(1), differences(2));
    let correlation = if one > 0.0 { (two / one).powi(2) - 1.0 } else { 0.0 };
    let correlation = correlation.clamp(0.0, CORRELATION_MAX);
    let variance = (BY_MEDIAN * one).powi(2) / (2.0 * (1.0 - correlation));
    variance.max(DEVIATION_MIN.powi(2)) * (1.0 + correlation) / (1.0 - correlation)
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{Noise, step};
    use super::*;

    #[test]
    fn the_long_run_variance_of_known_noise_is_found_whatever_levels_it_has() {
        for (correlation, expected) in [(0.0, 0.01), (0.8, 0.09)] {
            let estimates: Vec<f64> = (0..20)
                .map(|seed| {
                    let noise = Noise { deviation: 0.1, correlation, ..Noise::default() };
                    let levels = step(1000, &[(300, 0.0), (300, -2.0), (400, 1.0)]);
                    let noisy: Vec<f64> =
                        noise.series(seed, 1000).iter().zip(levels).map(|(n, l)| n + l).collect();
                    long_run_variance(&noisy)
                })
                .collect();
            let found = median(&estimates);
            assert!((0.6..1.6).contains(&(found / expected)), "{correlation}: {found}");
        }
    }

    #[test]
    fn spikes_are_clipped_and_steps_are_not() {
        let mut values = step(400, &[(200, 5.0), (200, 3.0)]);
        values[50] = -9.0;
        let clipped = clipped(&values);
        assert!((clipped[50] - 5.0).abs() < 0.05);
        assert_eq!((clipped[199], clipped[200]), (5.0, 3.0));
    }

    #[test]
    fn what_does_not_vary_has_the_least_variance() {
        assert_eq!(long_run_variance(&[1.0; 50]), DEVIATION_MIN.powi(2));
        assert_eq!(long_run_variance(&[]), DEVIATION_MIN.powi(2));
    }
}
