//! The comparison of two results: what changed, by how much, and how certain the change is.

mod differ;
mod document;
mod pair;
mod ratio;
mod rows;
#[cfg(test)]
mod tests;

pub use document::{
    Because, Change, Comparison, Difference, Measure, NotCompared, RowComparison, SCHEMA, Side,
    Verdict, shown,
};
pub use pair::{Allowed, allowable, is_allowable};

use crate::Error;
use crate::document::{Document, Finding, Severity};
use crate::finding::NAMES_MAX;
use crate::units::some_of;
use itertools::Itertools;

/// Compares `new` with `old`, row by row. No setting may differ.
///
/// # Errors
///
/// [`Error::Failed`], with the differences, if no row did the same work on both sides.
pub fn compare(old: &Document, new: &Document) -> Result<Comparison, Error> {
    compare_allowing(old, new, &Allowed::Only(Vec::new()))
}

/// Compares `new` with `old`, row by row. Some settings may differ.
///
/// Pairs rows by their names. If differences are allowed, also pairs rows by position, in workloads
/// that have the same number of rows and no common name.
///
/// # Errors
///
/// Like [`compare`].
pub fn compare_allowing(
    old: &Document,
    new: &Document,
    allowed: &Allowed,
) -> Result<Comparison, Error> {
    let paired = pair::rows(old, new, allowed);
    let (rows, not_compared) = rows::compared(&paired);
    if rows.is_empty() {
        return Err(nothing_in_common(&not_compared));
    }
    Ok(Comparison {
        schema: SCHEMA.into(),
        old: side("OLD", old),
        new: side("NEW", new),
        differences: differ::documents(old, new),
        notes: rows::notes(&paired, &rows),
        rows,
        not_compared,
        results: Vec::new(),
    })
}

fn side(name: &str, document: &Document) -> Side {
    let warns = |finding: &&Finding| finding.severity >= Severity::Warning;
    Side {
        name: name.into(),
        command: document.command.clone(),
        started_at: document.started_at.clone(),
        wrote: document.wrote.clone(),
        warnings: document.findings.iter().filter(warns).cloned().collect(),
    }
}

/// Returns an error that explains why no row was compared: the differences of a row that is on both
/// sides, a row without transferred bytes, or else an example of the rows of each side.
fn nothing_in_common(not_compared: &[NotCompared]) -> Error {
    if let Some(row) = not_compared.iter().find(|row| !row.differences.is_empty()) {
        let (name, differences) = (&row.name, row.differences.iter().join("; "));
        return Error::Failed(format!(
            "no row did the same work in OLD and NEW. {name}: {differences}. Next: --allow KEY \
             compares rows that differ in KEY"
        ));
    }
    if let Some(row) = not_compared.iter().find(|row| row.because == Because::NothingMoved) {
        return Error::Failed(format!("nothing to compare: a run of {} moved no bytes", row.name));
    }
    let one = |because: Because| {
        let row = not_compared.iter().find(|row| row.because == because);
        row.map_or("nothing", |row| row.name.as_str())
    };
    Error::Failed(format!(
        "OLD and NEW have no row in common: OLD has rows such as {}, NEW such as {}",
        one(Because::OnlyInOld),
        one(Because::OnlyInNew)
    ))
}

/// Fails if a row became slower by more than `share` (0.05 is 5 %), or if a row of the old result
/// was not compared. A check of no rows must not pass.
///
/// A row is slower if its verdict is [`Verdict::Slower`] (its whole 95 % interval is on the slow
/// side) and its ratio is worse than `1 - share`. For rows at a rate, the P99 must be more than
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
            "some rows of OLD were not compared: {}",
            some_of(&missing, NAMES_MAX)
        )));
    }
    if comparison.rows.iter().all(|row| row.verdict == Verdict::OneRun) {
        return Err(Error::Failed(
            "one run on each side proves nothing: measure both with --runs 5 or more".into(),
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

/// Returns the name of a row with its ratio: `stream/cached (x 0.82)`.
fn told(row: &RowComparison) -> String {
    match (row.by, &row.p99_latency_ns) {
        (Measure::P99LatencyNs, Some(change)) => {
            format!("{} (P99 x {:.2})", row.name, change.ratio)
        }
        _ => format!("{} (x {:.2})", row.name, row.throughput_bytes_per_s.ratio),
    }
}

/// Returns a share in percent, rounded to the digits that matter.
fn percent(share: f64) -> f64 {
    (share * 1e6).round() / 1e4
}
