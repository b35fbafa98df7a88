//! Detects lasting changes in throughput.

use std::ops::Range;
use wrote_result::document::{CHANGED_SHARE_MAX, Change, Interval, SAMPLES_MIN, Sample};
use wrote_result::stats;
use wrote_result::stats::median;

/// The minimum length of a level: as a fraction of the samples, and as a number of samples.
const LEVEL_SHARE_MIN: f64 = 0.03;
const LEVEL_SAMPLES_MIN: usize = 8;
/// The gain that each additional change must bring, in units of the long-run variance and of the
/// logarithm of the number of samples. Schwarz's criterion uses 2; a higher value is more cautious.
const PENALTY: f64 = 3.0;
/// A change is a step and not a slope if at least this fraction of the difference between the
/// levels occurs between the samples next to it.
const NEAR_SHARE_MIN: f64 = 0.5;

/// Returns the changes, in order; empty if there are too few samples.
///
/// Fits levels to the logarithm of each sample's throughput, with spikes clipped, by least squares
/// with a penalty per change. The best fit is found exactly, by the dynamic programming that PELT
/// speeds up (Killick, Fearnhead, Eckley: Optimal Detection of Changepoints With a Linear
/// Computational Cost, Journal of the American Statistical Association 107, 2012; at most a
/// thousand samples need no speed-up). The penalty grows with the long-run variance, so that
/// correlated noise is not split into levels. Each change must then separate its two levels: by a
/// quarter in the median, by half as much in bytes over time, as a step and not a slope, and in a
/// test that makes no assumption about the noise. The weakest change that fails is dropped, and the
/// others are tested again.
pub(super) fn changes(samples: &[Sample]) -> Vec<Change> {
    let Some(series) = Series::new(samples) else { return Vec::new() };
    let mut places = series.segment();
    while let Some(weakest) = series.weakest(&places) {
        places.remove(weakest);
        series.settle(&mut places);
    }
    let level = |number: usize| rate(samples, series.level(&places, number));
    let change = |(number, at): (usize, &usize)| Change {
        at_bytes: samples[at - 1].end_bytes,
        at_s: samples[at - 1].end_s,
        before_bytes_per_s: level(number),
        after_bytes_per_s: level(number + 1),
    };
    places.iter().enumerate().map(change).collect()
}

/// The samples, prepared for fitting levels.
struct Series<'a> {
    samples: &'a [Sample],
    /// The logarithms of the throughputs, first unchanged and then with spikes clipped.
    logarithms: Vec<f64>,
    clipped: Vec<f64>,
    /// Prefix sums of the clipped values and of their squares.
    sums: Vec<(f64, f64)>,
    least: usize,
}

impl<'a> Series<'a> {
    fn new(samples: &'a [Sample]) -> Option<Series<'a>> {
        if samples.len() < SAMPLES_MIN {
            return None;
        }
        let logarithms: Vec<f64> =
            samples.iter().map(|sample| sample.throughput_bytes_per_s.max(1.0).ln()).collect();
        let clipped = clipped(&logarithms);
        let mut sums = vec![(0.0, 0.0)];
        sums.extend(clipped.iter().scan((0.0, 0.0), |(sum, squares), value| {
            (*sum, *squares) = (*sum + value, *squares + value * value);
            Some((*sum, *squares))
        }));
        let least = (samples.len() as f64 * LEVEL_SHARE_MIN).ceil() as usize;
        Some(Series { samples, logarithms, clipped, sums, least: least.max(LEVEL_SAMPLES_MIN) })
    }

    /// Returns the sum of the squared deviations from the mean of a range.
    fn cost(&self, range: Range<usize>) -> f64 {
        let (from, to) = (self.sums[range.start], self.sums[range.end]);
        let (sum, squares) = (to.0 - from.0, to.1 - from.1);
        (squares - sum * sum / range.len() as f64).max(0.0)
    }

    /// Returns the starts of the best levels, except for the first level.
    fn segment(&self) -> Vec<usize> {
        let count = self.clipped.len();
        let penalty = PENALTY * long_run_variance(&self.logarithms) * (count as f64).ln();
        // For each prefix of the samples: the cost of its best levels, and the start of the last
        // one.
        let mut best = vec![(f64::INFINITY, 0); count + 1];
        best[0] = (-penalty, 0);
        for end in self.least..=count {
            let last = (0..=end - self.least)
                .map(|begin| (best[begin].0 + self.cost(begin..end) + penalty, begin));
            best[end] = last.min_by(|a, b| a.0.total_cmp(&b.0)).expect("0 is a beginning");
        }
        let mut places: Vec<usize> =
            std::iter::successors(Some(best[count].1), |at| Some(best[*at].1))
                .take_while(|at| *at > 0)
                .collect();
        places.reverse();
        places
    }

    fn level(&self, places: &[usize], number: usize) -> Range<usize> {
        let begin = if number == 0 { 0 } else { places[number - 1] };
        begin..places.get(number).copied().unwrap_or(self.samples.len())
    }

    /// Returns the change that fails the tests and has the smallest difference between its levels;
    /// `None` if all changes pass.
    fn weakest(&self, places: &[usize]) -> Option<usize> {
        let sides = |number| (self.level(places, number), self.level(places, number + 1));
        (0..places.len())
            .filter(|number| {
                let (before, after) = sides(*number);
                !self.holds(before, after)
            })
            .min_by(|a, b| {
                let apart = |number| {
                    let (before, after) = sides(number);
                    (self.middle(after) - self.middle(before)).abs()
                };
                apart(*a).total_cmp(&apart(*b))
            })
    }

    fn middle(&self, range: Range<usize>) -> f64 {
        median(&self.logarithms[range])
    }

    /// Returns whether two adjacent levels differ permanently.
    fn holds(&self, before: Range<usize>, after: Range<usize>) -> bool {
        let apart = self.middle(after.clone()) - self.middle(before.clone());
        let rates = rate(self.samples, after.clone()) / rate(self.samples, before.clone());
        let enough = -CHANGED_SHARE_MAX.ln();
        let at = before.end;
        let near_before = before.start.max(at.saturating_sub(self.least))..at;
        let near_after = at..after.end.min(at + self.least);
        let near = self.middle(near_after) - self.middle(near_before);
        apart.abs() >= enough
            && rates.ln() * apart.signum() >= enough / 2.0
            && near * apart.signum() >= NEAR_SHARE_MIN * apart.abs()
            && statistic(&self.clipped[before.start..after.end], before.len()) >= CRITICAL
    }

    /// Moves each change to the sample where it fits best between its neighbours.
    fn settle(&self, places: &mut [usize]) {
        for number in 0..places.len() {
            let begin = self.level(places, number).start;
            let end = self.level(places, number + 1).end;
            let cost = |at: &usize| self.cost(begin..*at) + self.cost(*at..end);
            let fitting =
                (begin + self.least..=end - self.least).min_by(|a, b| cost(a).total_cmp(&cost(b)));
            places[number] = fitting.unwrap_or(places[number]);
        }
    }
}

/// The number of standard deviations from the running median beyond which a value is a spike.
const CLIP_DEVIATIONS: f64 = 3.0;
/// The half-width of the running median, as a fraction of the series.
const WINDOW_SHARE: f64 = 0.01;
const WINDOW_MIN: usize = 3;
/// The factor that converts a median absolute deviation to the standard deviation of a normal
/// distribution.
const BY_MEDIAN: f64 = 1.4826;
/// The maximum autocorrelation. A series with a higher one looks like a random walk.
const CORRELATION_MAX: f64 = 0.95;
/// The minimum standard deviation. No disk is steadier than 1 %, and with a lower value every
/// ripple would be a change.
const DEVIATION_MIN: f64 = 0.01;

/// Returns the series with spikes clipped to three standard deviations from the running median
/// (Hampel's filter). Steps are preserved, because a median does not smear them.
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

/// Returns the long-run variance. The mean of `n` values has about this variance, divided by `n`.
///
/// The estimate assumes a first-order autoregression, which is estimated from the medians of the
/// differences between values one apart and two apart. A few changes of level or spikes do not
/// affect these medians (Chakar, Lebarbier, Lévy-Leduc, Robin: A robust approach for estimating
/// change-points in the mean of an AR(1) process, Bernoulli 23, 2017).
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

/// The critical value at the 0.1 % level: the statistic exceeds it in one in a thousand series
/// without a change (Shao and Zhang 2010, table 1, for one parameter). A test checks the table's
/// value for the 5 % level against white noise.
pub(super) const CRITICAL: f64 = 121.9;

/// Returns the statistic for a change of the mean between `values[..at]` and `values[at..]`;
/// infinite if neither side varies and their means differ.
///
/// The statistic is the squared centred sum of the first `at` values, divided by the same sum over
/// all parts of either side. Both sums grow with the long-run variance, which thus cancels out
/// (Shao and Zhang: Testing for Change Points in Time Series, Journal of the American Statistical
/// Association 105, 2010). A drift within a side makes the denominator large, so only a change
/// larger than the drift is significant.
pub(super) fn statistic(values: &[f64], at: usize) -> f64 {
    let count = values.len() as f64;
    let (before, after) = values.split_at(at);
    let mean = values.iter().sum::<f64>() / count;
    let sum = before.iter().map(|value| value - mean).sum::<f64>();
    let within = wandering(before.iter()) + wandering(after.iter().rev());
    // The sum and the wandering are each divided by a power of the count: sum^2 / n and wandering /
    // n^2.
    let statistic = sum * sum * count / within;
    if statistic.is_nan() { 0.0 } else { statistic }
}

/// Returns the sum of the squared partial sums of the values' deviations from their mean.
fn wandering<'a>(values: impl Iterator<Item = &'a f64> + Clone) -> f64 {
    let (count, total) =
        values.clone().fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    let mean = total / f64::max(count, 1.0);
    let partial = values.scan(0.0, |sum, value| {
        *sum += value - mean;
        Some(*sum * *sum)
    });
    partial.sum()
}

/// The maximum number of batches. Each is long enough to depend little on the previous one.
const BATCHES: usize = 10;
const BATCH_SAMPLES_MIN: usize = 3;

/// Returns the number of bytes and the time in seconds at the start of a sample.
fn begin(samples: &[Sample], at: usize) -> (u64, f64) {
    match at.checked_sub(1) {
        None => (0, 0.0),
        Some(before) => (samples[before].end_bytes, samples[before].end_s),
    }
}

/// Returns the bytes of the samples divided by their time; 0 for an empty range.
pub(super) fn rate(samples: &[Sample], range: Range<usize>) -> f64 {
    if range.is_empty() {
        return 0.0;
    }
    let (from, to) = (begin(samples, range.start), begin(samples, range.end));
    (to.0 - from.0) as f64 / (to.1 - from.1).max(1e-9)
}

/// Returns the throughput of a range with a 95 % interval, by batch means. Consecutive samples are
/// correlated, but the throughputs of ten long batches hardly are (Law: Simulation Modeling and
/// Analysis, 5th edition, 9.5.3). The median is taken over the batches.
pub(super) fn interval(samples: &[Sample], range: Range<usize>) -> Interval {
    let batches = (range.len() / BATCH_SAMPLES_MIN).clamp(1, BATCHES);
    let place = |number: usize| range.start + range.len() * number / batches;
    let rates: Vec<f64> =
        (0..batches).map(|number| rate(samples, place(number)..place(number + 1))).collect();
    stats::interval(&rates)
}

/// Returns the number of samples that end within the first `end_bytes` bytes.
pub(super) fn until(samples: &[Sample], end_bytes: u64) -> usize {
    samples.partition_point(|sample| sample.end_bytes <= end_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios::sustained::made_up::{Noise, step};

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
    fn constant_values_have_the_least_variance() {
        assert_eq!(long_run_variance(&[1.0; 50]), DEVIATION_MIN.powi(2));
        assert_eq!(long_run_variance(&[]), DEVIATION_MIN.powi(2));
    }
}

#[cfg(test)]
mod self_normalised_tests {
    use super::*;
    use crate::scenarios::sustained::made_up::Noise;

    /// Returns the maximum of the statistic over all positions, as in the table.
    fn greatest(values: &[f64]) -> f64 {
        (1..values.len()).map(|at| statistic(values, at)).fold(0.0, f64::max)
    }

    #[test]
    #[ignore = "nightly"]
    fn five_per_cent_of_series_without_a_change_exceed_what_the_table_says() {
        let greatest = (0..600).map(|seed| greatest(&Noise::default().series(seed, 200)));
        let beyond = greatest.filter(|greatest| *greatest > 40.1).count();
        assert!((15..=48).contains(&beyond), "{beyond} of 600");
    }

    #[test]
    fn a_change_is_told_from_noise_that_depends_on_itself() {
        let noise = Noise { deviation: 0.1, correlation: 0.8, ..Noise::default() };
        let changed: Vec<f64> =
            noise.series(1, 400).iter().enumerate().map(|(at, n)| n - (at / 200) as f64).collect();
        assert!(statistic(&changed, 200) > CRITICAL);
        assert!(statistic(&noise.series(1, 400), 200) < CRITICAL);
    }

    #[test]
    fn levels_that_do_not_vary_differ_for_sure_or_not_at_all() {
        assert_eq!(statistic(&[1.0, 1.0, 2.0, 2.0], 2), f64::INFINITY);
        assert_eq!(statistic(&[1.0; 4], 2), 0.0);
    }
}

#[cfg(test)]
mod rates_tests {
    use super::*;
    use crate::scenarios::sustained::made_up::{Noise, samples};

    #[test]
    fn a_rate_is_bytes_over_time_and_no_mean_of_rates() {
        // Each sample is 1 MB. The first takes 1 s, the second 3 s.
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
