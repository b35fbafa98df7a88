//! Where the throughput changed for good.

use super::noise::{clipped, long_run_variance};
use super::rates::rate;
use super::self_normalised::{CRITICAL, statistic};
use std::ops::Range;
use wrote_result::document::{CHANGED_SHARE_MAX, Change, SAMPLES_MIN, Sample};
use wrote_result::stats::median;

/// A level lasts for at least this part of the samples, and for so many of them.
const LEVEL_SHARE_MIN: f64 = 0.03;
const LEVEL_SAMPLES_MIN: usize = 8;
/// The gain that a further change must bring, in units of the long-run variance and the logarithm
/// of the number of samples: 2 is that of Schwarz's criterion, and more is careful.
const PENALTY: f64 = 3.0;
/// A change is a step, not a slope: of the difference between the levels at least this part lies
/// between the samples close by on both sides.
const NEAR_SHARE_MIN: f64 = 0.5;

/// The changes, in their order; none where there are too few samples to tell.
///
/// Levels are fitted to the logarithm of each sample's throughput, its spikes clipped, by least
/// squares and a penalty for each change: exactly, by the dynamic programming that PELT speeds up
/// (Killick, Fearnhead, Eckley: Optimal Detection of Changepoints With a Linear Computational Cost,
/// Journal of the American Statistical Association 107, 2012; of a thousand samples at most it
/// needs no speeding up). The penalty grows with the long-run variance, so that noise which depends
/// on itself is not cut into levels. Each change must then hold against its two neighbours: by a
/// quarter in the median, by half as much in bytes over time, by a step and not a slope, and by a
/// test that knows nothing of the noise. One that does not is dropped, the weakest first, and the
/// others are judged anew.
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

/// The samples as what is fitted.
struct Series<'a> {
    samples: &'a [Sample],
    /// Logarithms of the throughputs, as they are and with their spikes clipped.
    logarithms: Vec<f64>,
    clipped: Vec<f64>,
    /// Sums of the clipped ones and of their squares, of the first so many.
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

    /// The sum of squares about the mean.
    fn cost(&self, range: Range<usize>) -> f64 {
        let (from, to) = (self.sums[range.start], self.sums[range.end]);
        let (sum, squares) = (to.0 - from.0, to.1 - from.1);
        (squares - sum * sum / range.len() as f64).max(0.0)
    }

    /// The places of the best levels: each is the first sample of a level but the first.
    fn segment(&self) -> Vec<usize> {
        let count = self.clipped.len();
        let penalty = PENALTY * long_run_variance(&self.logarithms) * (count as f64).ln();
        // The cost of the best levels of the first so many samples, and where the last one begins.
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

    /// Of the changes that do not hold, the one between the levels that differ least.
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

    /// Whether two levels side by side differ for good.
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

    /// Moves each change to where it fits best between its neighbours.
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
