//! What the evidence of a run says beside its numbers. Each finding is explained in
//! `docs/findings.md`; one that cannot be established says nothing.

mod bytes;
mod jobs;
mod machine;
mod place;
mod program;
mod rates;
mod rows;
#[cfg(test)]
mod tests;

pub use bytes::{counts, source_bytes, stayed_in_memory};

use crate::jobs::Overlap;
use wrote_machine::watch::Watched;
use wrote_result::document::{Finding, Host, Row, Target};
use wrote_result::finding;

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
    findings.extend(jobs::find(evidence));
    findings.extend(machine::find(evidence));
    findings.extend(program::find(evidence).into_iter().flatten());
    finding::sort(&mut findings);
    findings
}
