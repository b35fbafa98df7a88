//! Whether a disk suits a program: the program's rules, and how the disk compares with them.

use super::{Interval, Row};
use crate::stats::interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// A program, and whether the disk suits it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fit {
    /// Its name: `etcd`.
    pub program: String,
    /// The version whose pattern was run.
    pub version: String,
    /// The verdict over all of its published rules; none where there is no such rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<FitVerdict>,
    /// Its rules, and figures without a rule.
    pub rules: Vec<FitRule>,
}

/// A rule, or a figure of a program without a published rule.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FitRule {
    /// The rule in a few words: `WAL fdatasync P99 < 10 ms`.
    pub name: String,
    /// The row that it judges.
    pub row: String,
    /// The figure of the row that it judges: `latency_p50_ns`, `latency_p99_ns` (of a transaction,
    /// until it is durable), `flush_p50_ns`, `flush_p99_ns` (of a flush alone), `iops`
    /// (transactions per second), `bytes_per_s`.
    pub of: String,
    /// The limit from above, in the unit that `of` names.
    pub most: Option<f64>,
    /// The limit from below.
    pub least: Option<f64>,
    /// The publisher of the rule, with the version.
    pub says: Option<String>,
    /// The address of the source.
    pub source: Option<String>,
    /// The figure on this disk, over the runs.
    pub here: Interval,
    /// The verdict; none without a limit.
    pub verdict: Option<FitVerdict>,
    /// Of an undecided rule: the seconds of measuring that would decide it at this spread; none
    /// where no time would.
    pub decided_after_s: Option<f64>,
    /// The same beside other work on the disk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Beside>,
}

/// A figure while a neighbour uses the disk.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Beside {
    /// The neighbour: `copy`.
    pub neighbour: String,
    /// The figure.
    pub here: Interval,
    /// The figure beside the neighbour over the figure alone, each of one round.
    pub ratio: Interval,
    /// The verdict; none without a limit.
    pub verdict: Option<FitVerdict>,
}

/// A verdict by an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FitVerdict {
    /// The whole interval keeps the limit.
    Fits,
    /// The interval holds the limit, or there is one run alone.
    Undecided,
    /// The whole interval breaks the limit.
    DoesNotFit,
}

impl FitVerdict {
    /// Returns the words for it.
    pub fn words(self) -> &'static str {
        match self {
            FitVerdict::Fits => "fits",
            FitVerdict::Undecided => "undecided",
            FitVerdict::DoesNotFit => "does not fit",
        }
    }

    /// Returns the verdict of several rules together: the worst.
    pub fn of_all(verdicts: impl Iterator<Item = FitVerdict>) -> Option<FitVerdict> {
        verdicts.max_by_key(|verdict| *verdict as u8)
    }
}

/// The most times longer that a measurement is advised to take.
const LONGER_MAX: f64 = 1000.0;

impl FitRule {
    /// The figures that a rule may judge.
    pub const FIGURES: [&str; 6] =
        ["latency_p50_ns", "latency_p99_ns", "flush_p50_ns", "flush_p99_ns", "iops", "bytes_per_s"];

    /// Returns the figure of each run that has it.
    pub fn figures(of: &str, row: &Row) -> Vec<f64> {
        let of_run = |run: &super::Run| {
            let flush = run.flush_latency_ns;
            match of {
                "latency_p50_ns" => run.latency_ns.map(|latency| latency.p50 as f64),
                "latency_p99_ns" => run.latency_ns.map(|latency| latency.p99 as f64),
                "flush_p50_ns" => flush.map(|latency| latency.p50 as f64),
                "flush_p99_ns" => flush.map(|latency| latency.p99 as f64),
                "iops" => Some(run.iops),
                "bytes_per_s" => Some(run.throughput_bytes_per_s),
                _ => None,
            }
        };
        row.runs.iter().filter_map(of_run).collect()
    }

    /// Judges the rule by the runs of its row.
    pub fn judge(&mut self, row: &Row) {
        let figures = FitRule::figures(&self.of, row);
        self.here = interval(&figures);
        self.verdict = self.verdict_of(&self.here, figures.len());
        if self.verdict == Some(FitVerdict::Undecided) {
            let elapsed_s = row.runs.iter().map(|run| run.elapsed_s).sum::<f64>();
            self.decided_after_s = self.longer().map(|times| times * elapsed_s);
        }
    }

    /// Adds a row of the same pattern beside a neighbour, measured in the same rounds.
    pub fn judge_beside(&mut self, neighbour: &str, alone: &Row, beside: &Row) {
        let figures = [alone, beside].map(|row| FitRule::figures(&self.of, row));
        let ratios = figures[0].iter().zip(&figures[1]).filter(|(alone, _)| **alone > 0.0);
        let ratios: Vec<f64> = ratios.map(|(alone, beside)| beside / alone).collect();
        let here = interval(&figures[1]);
        self.beside.push(Beside {
            neighbour: neighbour.into(),
            here,
            ratio: interval(&ratios),
            verdict: self.verdict_of(&here, figures[1].len()),
        });
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
            _ if runs < 2 => FitVerdict::Undecided,
            (true, true) => FitVerdict::Fits,
            (false, false) => FitVerdict::DoesNotFit,
            _ => FitVerdict::Undecided,
        })
    }

    /// Returns the factor by which the measurement must take longer for the interval to leave the
    /// limit, where its half width falls with the root of the time.
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
    use crate::document::{Latency, Run};

    fn row(p99s: &[u64]) -> Row {
        let run = |p99: &u64| Run {
            flush_latency_ns: Some(Latency { p99: *p99, ..Latency::default() }),
            elapsed_s: 2.0,
            ..Run::default()
        };
        Row { runs: p99s.iter().map(run).collect(), ..Row::default() }
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
        // The variation of a single run is unknown.
        assert_eq!(judged(&[50]).verdict, Some(FitVerdict::Undecided));
    }

    #[test]
    fn an_undecided_rule_names_the_time_that_would_decide_it() {
        let longer = judged(&[60, 90, 120]).decided_after_s.unwrap();
        assert!(longer > 6.0 && longer < 6000.0, "{longer}");
        assert_eq!(judged(&[99, 100, 101]).decided_after_s, None);
        assert_eq!(judged(&[50, 51, 52]).decided_after_s, None);
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
        use FitVerdict::{DoesNotFit, Fits, Undecided};
        let of = |all: &[FitVerdict]| FitVerdict::of_all(all.iter().copied());
        assert_eq!(of(&[Fits, Undecided]), Some(Undecided));
        assert_eq!(of(&[Fits, DoesNotFit, Undecided]), Some(DoesNotFit));
        assert_eq!(of(&[]), None);
    }
}
