//! The compared rows, with their ratios and verdicts.

use super::document::{Because, Change, Measure, NotCompared, RowComparison, Verdict};
use super::pair::{FACTOR_MAX, RowPair, RowPairs};
use super::ratio::{Ratio, holm};
use crate::document::{Latency, Row, Run, View};
use crate::stats;
use itertools::Itertools;

/// Compares each pair, and then decides the verdicts over all pairs together. Also returns the rows
/// that were not compared.
pub(super) fn compared(paired: &RowPairs<'_>) -> (Vec<RowComparison>, Vec<NotCompared>) {
    let mut not_compared = paired.not_compared.clone();
    let mut rows = Vec::new();
    for pair in &paired.pairs {
        match compared_row(pair) {
            Some(row) => rows.push(row),
            None => not_compared.push(NotCompared {
                name: pair.old.name.clone(),
                because: Because::NothingMoved,
                differences: Vec::new(),
            }),
        }
    }
    let throughputs = rows.iter_mut().map(|row| &mut row.throughput_bytes_per_s).collect();
    decide(throughputs, Verdict::Faster, Verdict::Slower);
    let latencies = rows.iter_mut().filter_map(|row| row.p99_latency_ns.as_mut()).collect();
    decide(latencies, Verdict::Slower, Verdict::Faster);
    for row in &mut rows {
        row.verdict = match (row.by, &row.p99_latency_ns) {
            (Measure::P99LatencyNs, Some(change)) => change.verdict,
            _ => row.throughput_bytes_per_s.verdict,
        };
    }
    (rows, not_compared)
}

/// Compares a pair; `None` if there is no ratio.
fn compared_row(pair: &RowPair<'_>) -> Option<RowComparison> {
    let RowPair { scenario, old, new, differences } = pair;
    let throughput = change(old, new, |run| Some(run.throughput_bytes_per_s))?;
    // A result without the latency of durable writes, as in older versions, is compared by the
    // latency of the writes.
    let are_durable = [old, new].iter().all(|row| row.durable_latency_ns.is_some());
    let p99_latency_ns = change(old, new, if are_durable { durable_p99 } else { p99 });
    let held_to_a_rate = old.is_open_loop() && new.is_open_loop();
    let bs_bytes = old.settings.asked.bs_bytes;
    Some(RowComparison {
        name: old.name.clone(),
        new_name: (old.name != new.name).then(|| new.name.clone()),
        scenario: (*scenario).into(),
        workload: old.workload.clone(),
        bs_bytes: (one_size(old) && one_size(new) && bs_bytes == new.settings.asked.bs_bytes)
            .then_some(bs_bytes),
        verdict: Verdict::OneRun,
        by: match p99_latency_ns {
            Some(_) if held_to_a_rate => Measure::P99LatencyNs,
            _ => Measure::Throughput,
        },
        throughput_bytes_per_s: throughput,
        p99_latency_ns,
        differences: differences.clone(),
    })
}

fn one_size(row: &Row) -> bool {
    let asked = &row.settings.asked;
    row.view() != View::Messages && asked.bssplit.is_none() && asked.bs_bytes_min.is_none()
}

fn p99(run: &Run) -> Option<f64> {
    p99_of(run.latency_ns.as_ref())
}

fn durable_p99(run: &Run) -> Option<f64> {
    p99_of(run.durable_latency_ns.as_ref())
}

fn p99_of(latency: Option<&Latency>) -> Option<f64> {
    latency.and_then(Latency::known_p99).map(|p99| p99 as f64)
}

/// Returns the change of a figure; `None` if a run lacks the figure, or there is no ratio.
fn change(old: &Row, new: &Row, figure: fn(&Run) -> Option<f64>) -> Option<Change> {
    let figures = |row: &Row| row.runs.iter().map(figure).collect::<Option<Vec<f64>>>();
    let (old, new) = (figures(old)?, figures(new)?);
    let Ratio { ratio, interval } = Ratio::of(&old, &new)?;
    Some(Change {
        old: stats::median(&old),
        new: stats::median(&new),
        ratio,
        ci95_low: interval.map(|sure| sure.low),
        ci95_high: interval.map(|sure| sure.high),
        p_value: interval.map(|sure| sure.p_value),
        old_runs: old.len() as u32,
        new_runs: new.len() as u32,
        verdict: Verdict::OneRun,
    })
}

/// Decides the verdicts on a figure over all rows. A row differs only if its interval excludes 1,
/// and if the number of rows does not make such a difference likely by chance.
fn decide(mut changes: Vec<&mut Change>, more: Verdict, less: Verdict) {
    changes.retain(|change| change.p_value.is_some());
    let p_values: Vec<f64> = changes.iter().filter_map(|change| change.p_value).collect();
    for (change, told) in changes.into_iter().zip(holm(&p_values)) {
        let (low, high) = (change.ci95_low.unwrap_or(0.0), change.ci95_high.unwrap_or(f64::MAX));
        change.verdict = match (told, change.ratio > 1.0) {
            (true, true) if low > 1.0 => more,
            (true, false) if high < 1.0 => less,
            _ => Verdict::NoDetectableDifference,
        };
    }
}

/// Returns the facts that a reader of the ratios needs to know.
pub(super) fn notes(paired: &RowPairs<'_>, rows: &[RowComparison]) -> Vec<String> {
    let lengths = paired.pairs.iter().filter(|pair| are_of_other_lengths(pair));
    let lengths = lengths.map(|pair| &pair.old.name).join(", ");
    let mut notes = Vec::new();
    if !lengths.is_empty() {
        notes.push(format!(
            "the runs of one side are more than {FACTOR_MAX:.0} times as long as those of the \
             other, and a drive may slow down after some time: {}",
            lengths
        ));
    }
    let alone = rows.iter().map(|row| &row.throughput_bytes_per_s);
    let alone = alone.filter(|change| is_only_alone(change)).count();
    if alone > 0 {
        notes.push(format!(
            "of {} rows, about one in twenty differs by chance. So {alone} whose own interval \
             excludes 1.00 {} not called different (Holm); more runs would decide",
            rows.len(),
            if alone == 1 { "is" } else { "are" },
        ));
    }
    let single = rows.iter().filter(|row| row.verdict == Verdict::OneRun).count();
    if single > 0 {
        notes.push(format!(
            "one run: {single} of {} rows can't be judged; measure with --runs 5 or more",
            rows.len()
        ));
    }
    notes
}

/// Returns whether the interval of a row shows a difference that is not significant once all rows
/// are taken into account.
fn is_only_alone(change: &Change) -> bool {
    let leaves_out_1 = change.ci95_low.is_some_and(|low| low > 1.0)
        || change.ci95_high.is_some_and(|high| high < 1.0);
    leaves_out_1 && change.verdict == Verdict::NoDetectableDifference
}

/// Returns whether the amounts of work, which the calibrations chose, differ so much that the drive
/// must have been in another state.
fn are_of_other_lengths(pair: &RowPair<'_>) -> bool {
    let [old, new] = [pair.old, pair.new].map(|row| &row.settings.asked);
    let asked_alike = old.size_bytes == new.size_bytes
        && old.messages == new.messages
        && old.runtime_s == new.runtime_s;
    let [old, new] = [pair.old, pair.new].map(|row| row.bytes_per_run as f64);
    !asked_alike && old.max(new) > FACTOR_MAX * old.min(new)
}
