//! Findings: their names, their order, and how one is made.

use crate::document::{Finding, Row, Severity};
use serde_json::{Value, json};

/// Every finding's stable name, in the order in which they are explained.
pub const IDS: [&str; 32] = [
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

/// A text that names more rows than this is not read.
pub const NAMES_MAX: usize = 6;

/// Warnings first, then in the order of [`IDS`].
pub fn sort(findings: &mut [Finding]) {
    let place = |finding: &Finding| IDS.iter().position(|id| *id == finding.id);
    findings.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), place(finding)));
}

/// A figure that is not there (null) is left out.
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

/// The rows' names; of many the first few, since the evidence lists them all.
pub fn names(rows: &[&Row]) -> String {
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    match names.len().checked_sub(NAMES_MAX) {
        Some(more @ 1..) => format!("{} and {more} more", names[..NAMES_MAX].join(", ")),
        _ => names.join(", "),
    }
}

/// The names of the rows as evidence.
pub fn listed(rows: &[&Row]) -> Value {
    rows.iter().map(|row| json!(row.name)).collect()
}
