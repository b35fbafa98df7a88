//! Findings: their ids, their order, and their construction.

use crate::document::{Finding, Row, Severity};
use crate::units::some_of;
use itertools::Itertools;
use serde_json::{Value, json};

/// The stable id of each finding, in the order of `docs/findings.md`.
pub const IDS: [&str; 33] = [
    "no-io",
    "ram-not-disk",
    "no-block-device",
    "counters-off",
    "nearly-full",
    "within-drive-cache",
    "busy-neighbour",
    "same-device",
    "read-from-memory",
    "memory-grows",
    "direct-not-honoured",
    "compressible-data",
    "unwritten-read",
    "same-offsets",
    "flush-outside-clock",
    "cache-cliff",
    "not-steady",
    "rate-not-reached",
    "write-amplification",
    "throttled",
    "cpu-limited",
    "too-hot",
    "link-downgraded",
    "slow-clock",
    "records-lost",
    "records-out-of-order",
    "noisy",
    "fallback",
    "depth-not-reached",
    "generator-limited",
    "debug-build",
    "leftovers",
    "left-out",
];

/// The most rows that a text names.
pub const NAMES_MAX: usize = 6;

/// Sorts `findings`: warnings first, then in the order of [`IDS`].
pub fn sort(findings: &mut [Finding]) {
    let place = |finding: &Finding| IDS.iter().position(|id| *id == finding.id);
    findings.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), place(finding)));
}

/// Makes a finding; a figure that is null is left out.
pub fn finding<const N: usize>(
    id: &str,
    severity: Severity,
    text: String,
    evidence: [(&str, Value); N],
) -> Finding {
    let evidence = evidence.into_iter().filter(|(_, value)| !value.is_null());
    let evidence = evidence.map(|(key, value)| (key.to_owned(), value)).collect();
    Finding { id: id.into(), severity, text, evidence }
}

/// Makes the finding `left-out` of the rows that could not be measured, each with the reason.
pub fn left_out(rows: &[(String, String)]) -> Option<Finding> {
    let each = rows.iter().map(|(row, because)| format!("{row} ({because})")).join(", ");
    let text = format!("not measured: {each}");
    let figures = rows.iter().map(|(row, because)| (row.clone(), json!(because))).collect();
    let figures = [("rows", Value::Object(figures))];
    (!rows.is_empty()).then(|| finding("left-out", Severity::Info, text, figures))
}

/// Joins the names of the first [`NAMES_MAX`] rows. The evidence lists them all.
pub fn names(rows: &[&Row]) -> String {
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    some_of(&names, NAMES_MAX)
}

/// Lists the names of the rows as evidence.
pub fn listed(rows: &[&Row]) -> Value {
    rows.iter().map(|row| json!(row.name)).collect()
}
