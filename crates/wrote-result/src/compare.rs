//! The comparison of two results: what changed, by how much, and with which confidence.

mod differ;
mod document;
mod gate;
mod pair;
mod ratio;
mod rows;
#[cfg(test)]
mod tests;

pub use document::{
    Because, Change, Comparison, Difference, Measure, NotCompared, RowComparison, SCHEMA, Side,
    Verdict, schema, shown,
};
pub use gate::fail_if_slower;
pub use pair::{Allowed, allowable, is_allowable};

use crate::Error;
use crate::document::{Document, Finding, Severity};
use itertools::Itertools;

/// Compares `new` with `old`, row by row; no setting may differ.
///
/// # Errors
///
/// [`Error::Failed`] where no row did the same work on both sides, with the differences.
pub fn compare(old: &Document, new: &Document) -> Result<Comparison, Error> {
    compare_allowing(old, new, &Allowed::Only(Vec::new()))
}

/// Compares `new` with `old`, row by row, where some settings may differ.
///
/// Pairs rows by their names. With allowed differences it also pairs them by their places, in a
/// workload without a common name and with equally many rows.
///
/// # Errors
///
/// As [`compare`].
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
    let warns = |finding: &&Finding| finding.severity == Severity::Warning;
    Side {
        name: name.into(),
        command: document.command.clone(),
        started_at: document.started_at.clone(),
        wrote: document.wrote.clone(),
        warnings: document.findings.iter().filter(warns).cloned().collect(),
    }
}

/// Explains why no row was compared: the first row on both sides, else rows of each.
fn nothing_in_common(not_compared: &[NotCompared]) -> Error {
    if let Some(row) = not_compared.iter().find(|row| !row.differences.is_empty()) {
        let (name, differences) = (&row.name, row.differences.iter().join("; "));
        return Error::Failed(format!(
            "no row did the same work in OLD and NEW; {name}: {differences} (--allow KEY compares them \
             all the same)"
        ));
    }
    if let Some(row) = not_compared.iter().find(|row| row.because == Because::NothingMoved) {
        return Error::Failed(format!("nothing to compare: a run of {} moved nothing", row.name));
    }
    let one = |because: Because| {
        let row = not_compared.iter().find(|row| row.because == because);
        row.map_or("nothing", |row| row.name.as_str())
    };
    Error::Failed(format!(
        "OLD and NEW have no row in common: OLD has {}, NEW has {}",
        one(Because::OnlyInOld),
        one(Because::OnlyInNew)
    ))
}
