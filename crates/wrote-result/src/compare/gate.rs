//! The gate for continuous integration: whether a comparison shows that something became slower.

use super::document::{Because, Comparison, Measure, RowComparison, Verdict};
use crate::Error;
use crate::finding::NAMES_MAX;
use crate::units::some_of;

/// Fails where a row became slower by more than `share` (0.05 is 5 %), and where a row of the old
/// result was not compared: a check of no row must not pass.
///
/// A row is slower if its verdict is [`Verdict::Slower`], so that its 95 % interval is wholly on
/// the slow side, and its ratio is worse than `1 - share`. For rows at a rate, the P99 is more than
/// `1 + share` times as long.
///
/// # Errors
///
/// [`Error::Failed`], in one line that names the rows.
pub fn fail_if_slower(comparison: &Comparison, share: f64) -> Result<(), Error> {
    let slower = comparison.rows.iter().filter(|row| is_slower(row, share)).map(told);
    let slower: Vec<String> = slower.collect();
    if !slower.is_empty() {
        return Err(Error::Failed(format!(
            "slower by more than {} %: {}",
            percent(share),
            some_of(&slower, NAMES_MAX)
        )));
    }
    let missing = comparison.not_compared.iter().filter(|row| row.because != Because::OnlyInNew);
    let missing: Vec<String> = missing.map(|row| row.name.clone()).collect();
    if !missing.is_empty() {
        return Err(Error::Failed(format!(
            "rows of OLD that could not be compared: {}",
            some_of(&missing, NAMES_MAX)
        )));
    }
    if comparison.rows.iter().all(|row| row.verdict == Verdict::OneRun) {
        return Err(Error::Failed(
            "one run a side tells nothing: measure both with --runs 5 or more".into(),
        ));
    }
    Ok(())
}

fn is_slower(row: &RowComparison, share: f64) -> bool {
    let beyond = match (row.by, &row.p99_latency_ns) {
        (Measure::P99LatencyNs, Some(change)) => change.ratio > 1.0 + share,
        _ => row.throughput_bytes_per_s.ratio < 1.0 - share,
    };
    row.verdict == Verdict::Slower && beyond
}

/// Shows a row with its ratio: `stream/cached (0.82)`.
fn told(row: &RowComparison) -> String {
    match (row.by, &row.p99_latency_ns) {
        (Measure::P99LatencyNs, Some(change)) => {
            format!("{} (P99 x {:.2})", row.name, change.ratio)
        }
        _ => format!("{} (x {:.2})", row.name, row.throughput_bytes_per_s.ratio),
    }
}

/// Returns percents, rounded to meaningful digits.
fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}
