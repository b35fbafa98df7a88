//! Whether a disk suits a program: the program's rules, and how the disk compares with them.

use super::{Interval, Latency, Row, Run};
use crate::stats::interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// A program, and whether the disk suits it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Fit {
    /// The name of the program: `etcd`.
    pub program: String,
    /// The version of the program whose pattern was run.
    pub version: String,
    /// The worst verdict on the program's published rules, alone and under background load; absent
    /// if there is no such rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<FitVerdict>,
    /// The rules of the program, and figures without a rule.
    pub rules: Vec<FitRule>,
}

/// A rule, or a figure of a program that has no published rule.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FitRule {
    /// The rule in a few words: `WAL fdatasync P99 < 10 ms`.
    pub name: String,
    /// The name of the row that is judged.
    pub row: String,
    /// The figure of the row that is judged: `latency_p50_ns`, `latency_p99_ns` (of a transaction,
    /// until it is durable), `flush_p50_ns`, `flush_p99_ns` (of a flush alone), `iops`
    /// (transactions per second), `bytes_per_s`.
    pub of: String,
    /// The upper limit, in the unit that `of` names.
    pub most: Option<f64>,
    /// The lower limit.
    pub least: Option<f64>,
    /// The publisher of the rule, with the version of the source.
    pub says: Option<String>,
    /// The address of the source.
    pub source: Option<String>,
    /// The kind of publisher: `official` for the program's makers, or `operator`.
    pub kind: Option<String>,
    /// The month in which the source was read: `2026-11`.
    pub date: Option<String>,
    /// The load that the rule is for, if it is not the normal load: `heavy load`.
    pub load: Option<String>,
    /// The figure on this disk, over the runs.
    pub here: Interval,
    /// The verdict; absent if there is no limit.
    pub verdict: Option<FitVerdict>,
    /// For an undecided rule, the time to measure that would decide it at this spread, in seconds;
    /// absent if no length of time would.
    pub decided_after_s: Option<f64>,
    /// The figure and the verdict under each background load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Beside>,
}

/// A figure under background load.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Beside {
    /// The background load: `copy`.
    pub neighbour: String,
    /// The figure.
    pub here: Interval,
    /// The figure under the background load divided by the figure alone, both from the same round;
    /// 0 if there were too few operations for a P99.
    pub ratio: Interval,
    /// The verdict; absent if there is no limit.
    pub verdict: Option<FitVerdict>,
}

/// The verdict that follows from an interval.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum FitVerdict {
    /// The whole interval keeps the limit.
    Fits,
    /// The interval contains the limit, or there are fewer than three runs.
    Undecided,
    /// The disk does not fit or is undecided, but other programs used it during most runs.
    Busy,
    /// The whole interval breaks the limit.
    DoesNotFit,
}

impl FitVerdict {
    /// The reason for [`FitVerdict::Busy`], and a remedy.
    pub const BUSY: &str = "other programs used the disk or the CPUs during most runs. Stop them \
                            (iotop -o and top show them) and repeat. To judge the disk under load, \
                            --beside copy adds one";

    /// Returns the words for the verdict.
    pub fn words(self) -> &'static str {
        match self {
            FitVerdict::Fits => "fits",
            FitVerdict::Undecided => "undecided",
            FitVerdict::Busy => "busy",
            FitVerdict::DoesNotFit => "does not fit",
        }
    }

    /// Returns the verdict on several rules together, which is the worst one; `None` if there are
    /// none.
    pub fn of_all(verdicts: impl Iterator<Item = FitVerdict>) -> Option<FitVerdict> {
        verdicts.max()
    }
}

/// Returns the latency to which a figure refers: of a flush, or of a transaction.
fn latency_of(of: &str, latency: Option<Latency>, flush: Option<Latency>) -> Option<Latency> {
    if of.starts_with("flush_") { flush } else { latency }
}

/// The maximum factor between the recommended length of a measurement and its present length.
const LONGER_MAX: f64 = 1000.0;

impl FitRule {
    /// The minimum number of runs for a verdict.
    pub const RUNS_MIN: usize = 3;

    /// The figures that a rule may judge.
    pub const FIGURES: [&str; 6] =
        ["latency_p50_ns", "latency_p99_ns", "flush_p50_ns", "flush_p99_ns", "iops", "bytes_per_s"];

    /// Returns the figure of each run. Runs that lack it are left out.
    pub fn figures(of: &str, row: &Row) -> Vec<f64> {
        let of_run = |run: &Run| {
            let latency = latency_of(of, run.latency_ns, run.flush_latency_ns);
            match of {
                "latency_p50_ns" | "flush_p50_ns" => latency.map(|latency| latency.p50 as f64),
                "latency_p99_ns" | "flush_p99_ns" => Some(latency?.known_p99()? as f64),
                "iops" => Some(run.iops),
                "bytes_per_s" => Some(run.throughput_bytes_per_s),
                _ => None,
            }
        };
        row.runs.iter().filter_map(of_run).collect()
    }

    /// Judges the rule by the runs of its row that no other program disturbed, if these are the
    /// majority and enough of them. Otherwise judges it by all runs: other programs only make a
    /// disk look worse, so a rule that fits would fit without them, and any other verdict becomes
    /// [`FitVerdict::Busy`].
    pub fn judge(&mut self, row: &Row) {
        let calm: Vec<Run> = row.runs.iter().filter(|run| !run.is_disturbed()).cloned().collect();
        let disturbed = row.runs.len() - calm.len();
        if disturbed > 0 && calm.len() > disturbed && calm.len() >= FitRule::RUNS_MIN {
            return self.judge_runs(&Row { runs: calm, ..row.clone() });
        }
        self.judge_runs(row);
        if disturbed > 0 && self.verdict > Some(FitVerdict::Fits) {
            (self.verdict, self.decided_after_s) = (Some(FitVerdict::Busy), None);
        }
    }

    fn judge_runs(&mut self, row: &Row) {
        let few = FitRule::few(&self.of, row);
        self.here = FitRule::here(&self.of, row);
        self.verdict = self.verdict_of(&self.here, row.runs.len());
        if self.verdict == Some(FitVerdict::Undecided) {
            let elapsed_s = row.runs.iter().map(|run| run.elapsed_s).sum::<f64>();
            let enough = few.map(|few| Latency::P99_COUNT_MIN as f64 / few.max(1) as f64);
            self.decided_after_s = enough.or(self.longer()).map(|times| times * elapsed_s);
        }
    }

    /// If the figure is a P99, returns the minimum number of timed operations in a run, provided
    /// that this number is too small for a P99; otherwise `None`.
    fn few(of: &str, row: &Row) -> Option<u64> {
        let timed = |run: &Run| latency_of(of, run.latency_ns, run.flush_latency_ns);
        let least = row.runs.iter().filter_map(timed).map(|latency| latency.count).min();
        least.filter(|least| of.ends_with("_p99_ns") && *least < Latency::P99_COUNT_MIN)
    }

    /// Returns the figure over the runs. If a run has too few operations for a P99, the median is
    /// the P99 over all runs together, or 0 if these operations are too few as well, and the
    /// interval reaches from the lowest median of a run to the slowest operation.
    fn here(of: &str, row: &Row) -> Interval {
        if FitRule::few(of, row).is_none() {
            return interval(&FitRule::figures(of, row));
        }
        let timed = |run: &Run| latency_of(of, run.latency_ns, run.flush_latency_ns);
        let runs = || row.runs.iter().filter_map(timed);
        let all = latency_of(of, row.latency_ns, row.flush_latency_ns);
        Interval {
            median: all.and_then(|all| all.known_p99()).unwrap_or(0) as f64,
            ci95_low: runs().map(|run| run.p50).min().unwrap_or(0) as f64,
            ci95_high: runs().map(|run| run.max).max().unwrap_or(0) as f64,
        }
    }

    /// Judges the rule under a background load, by a row of the same pattern that was measured in
    /// the same rounds as the row `alone`.
    pub fn judge_beside(&mut self, neighbour: &str, alone: &Row, beside: &Row) {
        let has_few = [alone, beside].iter().any(|row| FitRule::few(&self.of, row).is_some());
        let figures = [alone, beside].map(|row| match has_few {
            true => vec![FitRule::here(&self.of, row).median],
            false => FitRule::figures(&self.of, row),
        });
        let ratios = figures[0].iter().zip(&figures[1]);
        let ratios = ratios.filter(|(alone, beside)| **alone > 0.0 && **beside > 0.0);
        let ratios: Vec<f64> = ratios.map(|(alone, beside)| beside / alone).collect();
        let here = FitRule::here(&self.of, beside);
        self.beside.push(Beside {
            neighbour: neighbour.into(),
            here,
            ratio: interval(&ratios),
            verdict: self.verdict_of(&here, beside.runs.len()),
        });
    }

    /// Judges a rule with a limit as broken, alone and under background load, whatever its figures
    /// are, because no flush of the row survives a power loss.
    pub fn refuse(&mut self) {
        let beside = self.beside.iter_mut().map(|beside| &mut beside.verdict);
        for verdict in std::iter::once(&mut self.verdict).chain(beside).flatten() {
            *verdict = FitVerdict::DoesNotFit;
        }
        self.decided_after_s = None;
    }

    /// Returns the verdicts, alone and under each background load.
    pub fn verdicts(&self) -> impl Iterator<Item = FitVerdict> {
        self.verdict.into_iter().chain(self.beside.iter().filter_map(|beside| beside.verdict))
    }

    fn verdict_of(&self, here: &Interval, runs: usize) -> Option<FitVerdict> {
        let (most, least) = (self.most, self.least);
        if most.is_none() && least.is_none() {
            return None;
        }
        let is_within = |value: f64| {
            most.is_none_or(|most| value < most) && least.is_none_or(|least| value >= least)
        };
        Some(match (is_within(here.ci95_low), is_within(here.ci95_high)) {
            _ if runs < FitRule::RUNS_MIN => FitVerdict::Undecided,
            (true, true) => FitVerdict::Fits,
            (false, false) => FitVerdict::DoesNotFit,
            _ => FitVerdict::Undecided,
        })
    }

    /// Returns the factor between the length of this measurement and the length at which the
    /// interval excludes the limit; `None` if no factor up to [`LONGER_MAX`] is enough, or if none
    /// is needed. The half width of the interval falls with the square root of the time.
    fn longer(&self) -> Option<f64> {
        let limit = self.most.or(self.least).filter(|limit| *limit > 0.0)?;
        let Interval { median, ci95_low, ci95_high } = self.here;
        let end = if median < limit { ci95_high } else { ci95_low };
        let distance = (limit / median).ln().abs();
        let times = ((end / median).ln().abs() / distance).powi(2);
        (times.is_finite() && times > 1.0 && times <= LONGER_MAX).then_some(times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a row with runs of `count` flushes each, which take between half and twice the P99
    /// of the run.
    fn row_of(p99s: &[u64], count: u64) -> Row {
        let flushes = |p99: u64, count| {
            Some(Latency { p50: p99 / 2, p99, max: 2 * p99, count, ..Latency::default() })
        };
        let run = |p99: &u64| Run {
            flush_latency_ns: flushes(*p99, count),
            elapsed_s: 2.0,
            ..Run::default()
        };
        let all = flushes(p99s.first().copied().unwrap_or(0), count * p99s.len() as u64);
        Row { runs: p99s.iter().map(run).collect(), flush_latency_ns: all, ..Row::default() }
    }

    fn row(p99s: &[u64]) -> Row {
        row_of(p99s, 100)
    }

    fn judged(p99s: &[u64]) -> FitRule {
        let of = "flush_p99_ns".into();
        let mut rule = FitRule { of, most: Some(100.0), ..FitRule::default() };
        rule.judge(&row(p99s));
        rule
    }

    #[test]
    fn the_verdict_is_that_of_the_whole_interval() {
        assert_eq!(judged(&[50, 51, 52]).verdict, Some(FitVerdict::Fits));
        assert_eq!(judged(&[150, 151, 152]).verdict, Some(FitVerdict::DoesNotFit));
        assert_eq!(judged(&[60, 90, 120]).verdict, Some(FitVerdict::Undecided));
    }

    #[test]
    fn fewer_than_three_runs_decide_nothing() {
        for few in [&[][..], &[50], &[50, 50]] {
            assert_eq!(judged(few).verdict, Some(FitVerdict::Undecided));
        }
    }

    /// Returns the verdict on runs with these P99s and these shares of foreign I/O.
    fn beside_others(runs: &[(u64, f64)]) -> Option<FitVerdict> {
        let mut row = row(&runs.iter().map(|(p99, _)| *p99).collect::<Vec<_>>());
        for (run, (_, share)) in row.runs.iter_mut().zip(runs) {
            run.foreign_share = Some(*share);
        }
        let of = "flush_p99_ns".into();
        let mut rule = FitRule { of, most: Some(100.0), ..FitRule::default() };
        rule.judge(&row);
        rule.verdict
    }

    #[test]
    fn a_disk_that_others_used_beside_most_runs_is_busy_and_never_does_not_fit() {
        let (slow, calm) = ((900, 0.4), (900, 0.1));
        assert_eq!(beside_others(&[slow; 5]), Some(FitVerdict::Busy));
        assert_eq!(beside_others(&[slow, slow, slow, calm, calm]), Some(FitVerdict::Busy));
        assert_eq!(beside_others(&[slow, calm, calm]), Some(FitVerdict::Busy), "two are too few");
        assert_eq!(beside_others(&[(60, 0.4), (90, 0.0), (120, 0.4)]), Some(FitVerdict::Busy));
        assert_eq!(beside_others(&[calm; 3]), Some(FitVerdict::DoesNotFit));
    }

    #[test]
    fn a_rule_that_fits_beside_other_programs_fits_without_them() {
        assert_eq!(beside_others(&[(50, 0.9); 3]), Some(FitVerdict::Fits));
    }

    #[test]
    fn a_run_that_others_disturbed_does_not_count_where_most_were_calm() {
        let calm = (50, 0.0);
        assert_eq!(beside_others(&[calm, (900, 0.5), calm, calm]), Some(FitVerdict::Fits));
    }

    #[test]
    fn an_undecided_rule_names_the_time_that_would_decide_it() {
        let longer = judged(&[60, 90, 120]).decided_after_s.unwrap();
        assert!(longer > 6.0 && longer < 6000.0, "{longer}");
        assert_eq!(judged(&[99, 100, 101]).decided_after_s, None);
        assert_eq!(judged(&[50, 51, 52]).decided_after_s, None);
    }

    #[test]
    fn a_p99_of_few_flushes_lies_between_their_medians_and_the_slowest() {
        let judged = |p99s: &[u64], count| {
            let of = "flush_p99_ns".into();
            let mut rule = FitRule { of, most: Some(100.0), ..FitRule::default() };
            rule.judge(&row_of(p99s, count));
            (rule.verdict.unwrap(), rule.here.median, rule.decided_after_s)
        };
        // 150 flushes have a P99, although the 50 flushes of a run have none.
        assert_eq!(judged(&[20, 30, 40], 50), (FitVerdict::Fits, 20.0, None));
        assert_eq!(judged(&[900, 800, 850], 20), (FitVerdict::DoesNotFit, 0.0, None));
        // At least 100 flushes are needed, which is five times 20.
        assert_eq!(judged(&[60, 70, 80], 20), (FitVerdict::Undecided, 0.0, Some(30.0)));
    }

    #[test]
    fn a_rule_that_is_refused_does_not_fit_alone_or_beside_and_a_figure_has_no_verdict() {
        let mut rule = judged(&[60, 90, 120]);
        rule.judge_beside("copy", &row(&[10, 20, 40]), &row(&[30, 60, 90]));
        let mut figure = FitRule { most: None, verdict: None, beside: Vec::new(), ..rule.clone() };
        rule.refuse();
        assert_eq!(rule.verdict, Some(FitVerdict::DoesNotFit));
        assert_eq!(rule.beside[0].verdict, Some(FitVerdict::DoesNotFit));
        assert_eq!(rule.decided_after_s, None);
        figure.refuse();
        assert_eq!(figure.verdict, None);
    }

    #[test]
    fn a_neighbour_is_compared_round_by_round() {
        let mut rule = judged(&[10, 20, 40]);
        rule.judge_beside("copy", &row(&[10, 20, 40]), &row(&[30, 60, 120]));
        let beside = &rule.beside[0];
        assert!((beside.ratio.ci95_low - 3.0).abs() < 1e-9, "{beside:?}");
        assert!((beside.ratio.ci95_high - 3.0).abs() < 1e-9, "{beside:?}");
        assert_eq!(beside.verdict, Some(FitVerdict::Undecided));
    }

    #[test]
    fn the_worst_rule_is_the_programs_verdict() {
        use FitVerdict::{Busy, DoesNotFit, Fits, Undecided};
        let of = |all: &[FitVerdict]| FitVerdict::of_all(all.iter().copied());
        assert_eq!(of(&[Fits, Undecided]), Some(Undecided));
        assert_eq!(of(&[Fits, Busy, Undecided]), Some(Busy));
        assert_eq!(of(&[Fits, DoesNotFit, Busy]), Some(DoesNotFit));
        assert_eq!(of(&[]), None);
    }
}
