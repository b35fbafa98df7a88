//! The long run, the pause, the second measurement, and their summary.

use super::change::changes;
use super::change::{interval, until};
use super::{RECOVERED_TIME_MAX, ROW, Run};
use crate::plan::{Turn, Work};
use crate::progress::Ticker;
use crate::site::Site;
use std::ops::Range;
use std::time::{Duration, Instant};
use wrote_jobs::jobs::{GroupReport, Mark, Permissions, Watcher};
use wrote_jobs::report::Repeated;
use wrote_jobs::spec::JobSpec;
use wrote_result::document::{Row, Sample, SteadyState, Sustained};
use wrote_result::{Error, Stop};

const PART: &str = "data";
/// The interval at which the pause checks for a stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl Work for Run {
    fn summed(&self, mut run: Repeated) -> Repeated {
        for sustained in run.rows.iter_mut().filter_map(|row| row.sustained.as_mut()) {
            *sustained = describe(&sustained.samples, sustained.file_bytes);
        }
        run
    }

    /// Writes continuously. If the writes have become slow, lets the device rest and measures
    /// again.
    fn run(
        &mut self,
        row: &Row,
        _: Turn,
        site: &Site,
        ticker: &mut Ticker,
    ) -> Result<Repeated, Error> {
        let whole = self.writing() + self.afterwards_max();
        let share = |time: Duration| time.as_secs_f64() / whole.as_secs_f64().max(1e-9);
        let (written, rested) = (share(self.writing()), share(self.writing() + self.idle));
        let mut spec = self.spec().with(|job| job.files.paths = site.job_files(PART, 1));
        let report = write(&spec, site, &mut Part { ticker, of_whole: 0.0..written })?;
        let mut again_bytes = 0;
        let mut sustained = describe(&samples(&report.jobs[0].trail), self.file_bytes);
        // If there are several ranks, only some of them may have slowed down.
        let recovers = !self.idle.is_zero() && !site.peers.are_many();
        if let Some(bytes) = burst_bytes(&sustained).filter(|_| recovers) {
            rest(self.idle, site.stop, &mut Part { ticker, of_whole: written..rested })?;
            let blocks = (bytes.min(self.recovered_bytes_max()) / self.bs_bytes).max(1);
            spec.pace.io_bytes = Some(blocks * self.bs_bytes);
            spec.pace.runtime = Some(RECOVERED_TIME_MAX);
            let again = write(&spec, site, &mut Part { ticker, of_whole: rested..1.0 })?;
            again_bytes = again.written_bytes();
            let samples = samples(&again.jobs[0].trail);
            sustained.recovered_bytes_per_s = Some(interval(&samples, 0..samples.len()));
            sustained.idle_s = Some(self.idle.as_secs_f64());
        }
        let before = site.before(&[], &site.job_files(PART, 1));
        let mut run = Repeated::of(&report, &before, |_, settings| Row {
            settings,
            sustained: Some(sustained.clone()),
            ..row.clone()
        });
        run.written_bytes += again_bytes;
        Ok(run)
    }

    fn finish(&mut self, site: &Site) -> Result<(), Error> {
        site.clear_shared(&site.job_files(PART, 1))
    }
}

fn write(spec: &JobSpec, site: &Site, part: &mut Part) -> Result<GroupReport, Error> {
    // The run created the file in its folder.
    let permissions = Permissions { overwrite: true, ..Permissions::default() };
    site.run_jobs(std::slice::from_ref(spec), permissions, part)
}

/// Pauses for the time `idle`, and reports the progress. Fails if a stop is requested.
fn rest(idle: Duration, stop: &Stop, part: &mut Part) -> Result<(), Error> {
    let (begin, mut told) = (Instant::now(), Duration::ZERO);
    loop {
        stop.check()?;
        let elapsed = begin.elapsed();
        let Some(left) = idle.checked_sub(elapsed).filter(|left| !left.is_zero()) else {
            return Ok(());
        };
        if elapsed - told >= 5 * LOOK_EVERY {
            told = elapsed;
            part.is_at(elapsed.as_secs_f64() / idle.as_secs_f64());
        }
        std::thread::sleep(left.min(LOOK_EVERY));
    }
}

/// A watcher that reports the progress of a part as progress of the run.
struct Part<'a, 'b> {
    ticker: &'a mut Ticker<'b>,
    of_whole: Range<f64>,
}

impl Part<'_, '_> {
    fn is_at(&mut self, fraction: f64) {
        let Range { start, end } = self.of_whole;
        self.ticker.within(ROW, start + fraction * (end - start));
    }
}

impl Watcher for Part<'_, '_> {
    fn progress(&mut self, _read_bytes: u64, _written_bytes: u64, fraction: f64) {
        self.is_at(fraction);
    }

    fn note(&mut self, text: &str) {
        self.ticker.note(text);
    }
}

/// Returns the samples between consecutive marks.
fn samples(marks: &[Mark]) -> Vec<Sample> {
    let before = std::iter::once(Mark::default()).chain(marks.iter().copied());
    let sample = |(from, to): (Mark, &Mark)| Sample {
        end_bytes: to.end_bytes,
        end_s: to.end_ns as f64 / 1e9,
        throughput_bytes_per_s: (to.end_bytes - from.end_bytes) as f64
            / ((to.end_ns - from.end_ns) as f64 / 1e9),
    };
    before.zip(marks).map(sample).collect()
}

fn describe(samples: &[Sample], file_bytes: u64) -> Sustained {
    let mut sustained = Sustained {
        file_bytes,
        samples: samples.to_vec(),
        changes: changes(samples),
        burst_bytes_per_s: Default::default(),
        sustained_bytes_per_s: Default::default(),
        recovered_bytes_per_s: None,
        idle_s: None,
        steady_state: None,
    };
    let burst = burst(&sustained);
    let last = sustained.changes.last().map_or((0, 0.0), |change| (change.at_bytes, change.at_s));
    sustained.burst_bytes_per_s = interval(samples, burst);
    sustained.sustained_bytes_per_s = interval(samples, until(samples, last.0)..samples.len());
    sustained.steady_state = steady_state(samples, last.1);
    sustained
}

/// Returns the range of the burst's samples: from the last change before the first cliff, up to
/// that cliff.
fn burst(sustained: &Sustained) -> Range<usize> {
    let samples = &sustained.samples;
    let end = sustained.cliffs().next().or(sustained.changes.first());
    let end_bytes = end.map_or(sustained.written_bytes(), |change| change.at_bytes);
    let before = sustained.changes.iter().rev().find(|change| change.at_bytes < end_bytes);
    until(samples, before.map_or(0, |change| change.at_bytes))..until(samples, end_bytes)
}

/// Returns the number of bytes in the burst; `None` without a cliff, because there is then nothing
/// to recover from.
fn burst_bytes(sustained: &Sustained) -> Option<u64> {
    sustained.cliffs().next()?;
    let burst = burst(sustained);
    let end = |at: usize| sustained.samples[at - 1].end_bytes;
    Some(end(burst.end) - if burst.start == 0 { 0 } else { end(burst.start) })
}

/// The number of rounds into which a run is divided: the maximum number in SNIA's tests.
const ROUNDS: usize = 25;
/// The minimum number of samples. With fewer, some rounds would be empty.
const SAMPLES_MIN: usize = ROUNDS;
/// The number of consecutive rounds that are examined together.
const WINDOW: usize = 5;
/// The maximum range of the values, as a fraction of their mean.
const RANGE_SHARE_MAX: f64 = 0.20;
/// The maximum change of the least-squares line over the rounds, as a fraction of the mean.
const SLOPE_SHARE_MAX: f64 = 0.10;
/// The tolerance for sums of floating-point numbers that are equal except for their last digits.
const ROUNDING: f64 = 1e-9;

/// Returns the verdict on whether a run reached a steady state; `None` if it has too few samples.
///
/// The rule comes from SNIA's Solid State Storage Performance Test Specification (2.0.1, "Steady
/// State Verification"). Rounds that start before `from_s` are ignored, because in SNIA's procedure
/// the device has used up its burst before the first round.
pub(super) fn steady_state(samples: &[Sample], from_s: f64) -> Option<SteadyState> {
    if samples.len() < SAMPLES_MIN {
        return None;
    }
    let whole_s = samples.last()?.end_s;
    let round_s = whole_s / ROUNDS as f64;
    let rounds: Vec<f64> = (0..ROUNDS)
        .map(|round| {
            let at = |number: usize| Sample::bytes_at(samples, round_s * number as f64);
            (at(round + 1) - at(round)) / round_s
        })
        .collect();
    let first = (from_s / round_s - ROUNDING).ceil().max(0.0) as usize;
    Some(judge(rounds, first))
}

/// Returns the verdict on the first five steady rounds from index `first` on, or else on the last
/// five rounds.
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

/// Returns the range of the values, and the change of their least-squares line, both as fractions
/// of the mean.
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
    use super::*;
    use crate::scenarios::sustained::made_up::{Noise, samples as made, step};

    fn described(levels: &[(usize, f64)]) -> Sustained {
        let count = levels.iter().map(|(length, _)| length).sum();
        let levels: Vec<(usize, f64)> =
            levels.iter().map(|(length, bytes_per_s)| (*length, bytes_per_s.ln())).collect();
        let noise = Noise { deviation: 0.02, ..Noise::default() };
        let noisy = noise.series(1, count).into_iter().zip(step(count, &levels));
        describe(&made(&noisy.map(|(noise, level)| noise + level).collect::<Vec<f64>>()), 1)
    }

    fn near(interval: &wrote_result::document::Interval, truth: f64) -> bool {
        (interval.median / truth - 1.0).abs() < 0.02
    }

    #[test]
    fn burst_and_sustained_are_the_levels_before_the_first_cliff_and_behind_the_last_change() {
        let found = described(&[(200, 4.5e9), (200, 2e9), (200, 0.5e9)]);
        assert!(near(&found.burst_bytes_per_s, 4.5e9), "{:?}", found.burst_bytes_per_s);
        assert!(near(&found.sustained_bytes_per_s, 0.5e9), "{:?}", found.sustained_bytes_per_s);
        assert_eq!(burst_bytes(&found), Some(200_000_000));
    }

    #[test]
    fn a_slow_start_is_no_part_of_the_burst() {
        let found = described(&[(100, 1e9), (300, 5e9), (200, 1.5e9)]);
        assert!(near(&found.burst_bytes_per_s, 5e9), "{:?}", found.burst_bytes_per_s);
        assert_eq!(burst_bytes(&found), Some(300_000_000));
    }

    #[test]
    fn without_a_cliff_all_is_burst_and_sustained_and_nothing_recovers() {
        let found = described(&[(500, 3e9)]);
        assert_eq!(found.burst_bytes_per_s, found.sustained_bytes_per_s);
        assert_eq!(burst_bytes(&found), None);
        assert!(found.steady_state.unwrap().reached);
    }

    #[test]
    fn pieces_of_a_trail_add_up() {
        let marks = [Mark { end_bytes: 100, end_ns: 50 }, Mark { end_bytes: 400, end_ns: 100 }];
        let samples = samples(&marks);
        assert_eq!(samples.iter().map(|sample| sample.end_bytes).collect::<Vec<_>>(), [100, 400]);
        assert!((samples[1].throughput_bytes_per_s - 300.0 / 50e-9).abs() < 1.0);
    }
}

#[cfg(test)]
mod steady_tests {
    use super::*;
    use crate::scenarios::sustained::made_up::{Noise, samples, step};

    fn reached(rounds: &[f64]) -> Option<(u32, u32)> {
        let verdict = judge(rounds.to_vec(), 0);
        verdict.reached.then_some((verdict.first_round, verdict.last_round))
    }

    #[test]
    fn a_fifth_of_the_mean_between_the_greatest_and_the_least_is_steady_and_more_is_not() {
        assert_eq!(reached(&[100.0, 90.0, 100.0, 110.0, 100.0]), Some((1, 5)));
        assert_eq!(reached(&[100.0, 90.0, 100.0, 110.1, 100.0]), None);
        // The line is level, so only the range exceeds its limit.
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
        // The values fall from 500 to 100; their mean is 300.
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
        // The cliff is so late that no five rounds follow it.
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
