//! Whether a steady state was reached, by SNIA's rule.

use wrote_result::document::{Sample, SteadyState};

/// The run is divided into as many rounds as SNIA's tests have at most.
const ROUNDS: usize = 25;
/// With fewer samples some rounds would have none of their own.
const SAMPLES_MIN: usize = ROUNDS;
/// So many rounds, one after the other, are looked at together.
const WINDOW: usize = 5;
/// The most that the greatest and the least may be apart, as a part of their mean.
const RANGE_SHARE_MAX: f64 = 0.20;
/// The most that the least-squares line may change over the rounds, as a part of the mean.
const SLOPE_SHARE_MAX: f64 = 0.10;
/// Sums of doubles that are equal may differ in their last digits.
const ROUNDING: f64 = 1e-9;

/// The verdict on a run; none where it has too few samples to tell.
///
/// The rule is that of SNIA's Solid State Storage Performance Test Specification (2.0.1, "Steady
/// State Verification"). Rounds that begin before `from_s` are not asked: in SNIA's procedure the
/// device is past its burst before the first round.
pub(super) fn steady_state(samples: &[Sample], from_s: f64) -> Option<SteadyState> {
    if samples.len() < SAMPLES_MIN {
        return None;
    }
    let whole_s = samples.last()?.end_s;
    let round_s = whole_s / ROUNDS as f64;
    let rounds: Vec<f64> = (0..ROUNDS)
        .map(|round| {
            let at = |number: usize| bytes_at(samples, round_s * number as f64);
            (at(round + 1) - at(round)) / round_s
        })
        .collect();
    let first = (from_s / round_s - ROUNDING).ceil().max(0.0) as usize;
    Some(judge(rounds, first))
}

/// How many bytes were written after so many seconds, evenly between two samples' ends.
fn bytes_at(samples: &[Sample], at_s: f64) -> f64 {
    let next = samples.partition_point(|sample| sample.end_s < at_s);
    let (from_bytes, from_s) = match next.checked_sub(1) {
        None => (0.0, 0.0),
        Some(before) => (samples[before].end_bytes as f64, samples[before].end_s),
    };
    match samples.get(next) {
        None => from_bytes,
        Some(to) => {
            let part = (at_s - from_s) / (to.end_s - from_s).max(1e-12);
            from_bytes + part * (to.end_bytes as f64 - from_bytes)
        }
    }
}

/// The first five rounds from `first` on, counted from 0, that are steady; or the last five.
fn judge(rounds: Vec<f64>, first: usize) -> SteadyState {
    let last = rounds.len() - WINDOW;
    let steady = (first..=last).find(|begin| {
        let (range_share, slope_share) = shares(&rounds[*begin..begin + WINDOW]);
        range_share <= RANGE_SHARE_MAX + ROUNDING && slope_share <= SLOPE_SHARE_MAX + ROUNDING
    });
    let begin = steady.unwrap_or(last);
    let (range_share, slope_share) = shares(&rounds[begin..begin + WINDOW]);
    SteadyState {
        reached: steady.is_some(),
        rounds_bytes_per_s: rounds,
        first_round: begin as u32 + 1,
        last_round: (begin + WINDOW) as u32,
        range_share,
        slope_share,
    }
}

/// Range of the values and change of their least-squares line, as parts of their mean.
fn shares(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = (values.iter().sum::<f64>() / count).max(f64::MIN_POSITIVE);
    let most = values.iter().copied().fold(f64::MIN, f64::max);
    let least = values.iter().copied().fold(f64::MAX, f64::min);
    let middle = (count - 1.0) / 2.0;
    let (rise, run) = values.iter().enumerate().fold((0.0, 0.0), |(rise, run), (at, value)| {
        let away = at as f64 - middle;
        (rise + away * (value - mean), run + away * away)
    });
    ((most - least) / mean, (rise / run).abs() * (count - 1.0) / mean)
}

#[cfg(test)]
mod tests {
    use super::super::made_up::{Noise, samples, step};
    use super::*;

    fn reached(rounds: &[f64]) -> Option<(u32, u32)> {
        let verdict = judge(rounds.to_vec(), 0);
        verdict.reached.then_some((verdict.first_round, verdict.last_round))
    }

    #[test]
    fn a_fifth_of_the_mean_between_the_greatest_and_the_least_is_steady_and_more_is_not() {
        assert_eq!(reached(&[100.0, 90.0, 100.0, 110.0, 100.0]), Some((1, 5)));
        assert_eq!(reached(&[100.0, 90.0, 100.0, 110.1, 100.0]), None);
        // The line is level: nothing but the range speaks against it.
        let verdict = judge(vec![101.95, 92.0, 112.1, 92.0, 101.95], 0);
        assert!(!verdict.reached && verdict.slope_share < 1e-9, "{verdict:?}");
    }

    #[test]
    fn a_line_that_changes_by_a_tenth_of_the_mean_is_steady_and_more_is_not() {
        assert_eq!(reached(&[95.0, 97.5, 100.0, 102.5, 105.0]), Some((1, 5)));
        assert_eq!(reached(&[105.0, 102.5, 100.0, 97.5, 95.0]), Some((1, 5)));
        let verdict = judge(vec![94.9, 97.5, 100.0, 102.5, 105.1], 0);
        assert!(!verdict.reached && verdict.range_share < 0.11, "{verdict:?}");
    }

    #[test]
    fn the_first_five_steady_rounds_are_named_or_the_last_five() {
        let rounds = [300.0, 200.0, 100.0, 100.0, 101.0, 99.0, 100.0, 100.0];
        assert_eq!(reached(&rounds), Some((3, 7)));
        let falling: Vec<f64> = (0..9).map(|round| 900.0 - 100.0 * f64::from(round)).collect();
        let verdict = judge(falling, 0);
        assert_eq!((verdict.reached, verdict.first_round, verdict.last_round), (false, 5, 9));
        // 500 to 100: mean 300.
        assert!((verdict.range_share - 4.0 / 3.0).abs() < 1e-9);
        assert!((verdict.slope_share - 4.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_burst_is_no_steady_state_however_steady_it_is() {
        let noise = Noise { deviation: 0.01, ..Noise::default() };
        let levels = step(500, &[(400, 21.0), (100, 19.0)]);
        let noisy: Vec<f64> =
            noise.series(3, 500).iter().zip(levels).map(|(noise, level)| noise + level).collect();
        let samples = samples(&noisy);
        let cliff_s = samples[399].end_s;
        let verdict = steady_state(&samples, cliff_s).unwrap();
        let round_s = samples[499].end_s / 25.0;
        assert!(verdict.reached);
        assert!(f64::from(verdict.first_round - 1) * round_s >= cliff_s, "{verdict:?}");
        // So late that there are no five rounds behind it.
        assert!(!steady_state(&samples, round_s * 21.0).unwrap().reached);
    }

    #[test]
    fn rounds_take_the_same_time_and_hold_all_bytes() {
        let samples = samples(&step(300, &[(200, 20.0), (100, 18.0)]));
        let verdict = steady_state(&samples, 0.0).unwrap();
        let round_s = samples[299].end_s / 25.0;
        let bytes: f64 = verdict.rounds_bytes_per_s.iter().map(|rate| rate * round_s).sum();
        assert!((bytes / 300e6 - 1.0).abs() < 1e-6, "{bytes}");
        assert_eq!(verdict.rounds_bytes_per_s.len(), 25);
    }

    #[test]
    fn of_too_few_samples_nothing_is_said() {
        assert_eq!(steady_state(&samples(&[20.0; 24]), 0.0), None);
    }
}
