//! What the evidence of a run says beside its numbers. Each finding is explained in
//! `docs/findings.md`; one that cannot be established says nothing.

mod append;
mod bytes;
mod copies;
pub(crate) mod imported;
mod jobs;
mod machine;
mod place;
mod program;
mod rates;
mod rows;
mod sustained;
#[cfg(test)]
mod tests;

pub(crate) use bytes::stayed_in_memory;
pub(crate) use machine::SLOW_CLOCKS;
pub(crate) use place::USED_SHARE_MAX;

use crate::jobs::Overlap;
use crate::machine::Watched;
use crate::result::{Finding, Host, Row, Severity, Target};
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
const NAMES_MAX: usize = 6;

/// What is known of a run once it is over.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    /// What lies under the path; its free space is that before the run.
    pub target: &'a Target,
    /// All rows that were measured.
    pub rows: &'a [Row],
    /// Whether the program was built with debug assertions.
    pub debug_build: bool,
    /// Whether the device's counters count (`queue/iostats` is on).
    pub device_counts: bool,
    /// Whether the file system lives in memory (tmpfs, ramfs).
    pub in_memory: bool,
    /// How fast data is made ready to be written, in bytes per second; 0 where not measured.
    pub generator_bytes_per_s: f64,
    /// File bytes written by all runs together.
    pub written_bytes_total: u64,
    /// The machine's memory, in bytes.
    pub memory_bytes: u64,
    /// The machine.
    pub host: Host,
    /// What the machine did to what was measured.
    pub watched: Watched,
    /// Jobs that used the same bytes at once, and not only to read them.
    pub overlaps: Vec<Overlap>,
    /// Folders that earlier runs left under the path.
    pub leftovers: Vec<String>,
    /// Rows that were called for and could not be measured, with the reason.
    pub left_out: Vec<(String, String)>,
}

/// All findings of a run: warnings first, then in the order of [`IDS`].
pub fn find(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = bytes::find(evidence);
    findings.extend(place::find(evidence).into_iter().flatten());
    findings.extend(rows::find(evidence));
    findings.extend(copies::find(evidence).into_iter().flatten());
    findings.extend(append::find(evidence).into_iter().flatten());
    findings.extend(jobs::find(evidence));
    findings.extend(machine::find(evidence));
    findings.extend(sustained::find(evidence));
    findings.extend(program::find(evidence).into_iter().flatten());
    sort(&mut findings);
    findings
}

/// Warnings first, then in the order of [`IDS`].
pub(crate) fn sort(findings: &mut [Finding]) {
    let place = |finding: &Finding| IDS.iter().position(|id| *id == finding.id);
    findings.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), place(finding)));
}

/// A figure that is not there (null) is left out.
fn finding<const N: usize>(
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
fn names(rows: &[&Row]) -> String {
    let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
    match names.len().checked_sub(NAMES_MAX) {
        Some(more @ 1..) => format!("{} and {more} more", names[..NAMES_MAX].join(", ")),
        _ => names.join(", "),
    }
}

fn listed(rows: &[&Row]) -> Value {
    rows.iter().map(|row| json!(row.name)).collect()
}
