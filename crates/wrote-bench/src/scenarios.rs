//! The scenarios.

pub mod append;
pub mod grid;
pub mod ladder;
pub mod latency;
pub mod load;
pub mod sustained;
pub mod ways;

use wrote_jobs::findings::{self, Evidence};
use wrote_result::document::{Advice, Finding};
use wrote_result::finding;

/// All findings of a benchmark: those of any jobs, and those of its scenarios.
pub fn findings(evidence: &Evidence) -> Vec<Finding> {
    let mut found = findings::find(evidence);
    found.extend(ways::findings::find(evidence).into_iter().flatten());
    found.extend(append::findings::find(evidence).into_iter().flatten());
    found.extend(sustained::findings::find(evidence));
    finding::sort(&mut found);
    found
}

/// How to write here: for streaming, for small durable records, for data that may be lost, for writing
/// and copying whole files, for short messages, for saving a small file. A purpose for which nothing
/// was measured is left out.
pub fn advice(evidence: &Evidence) -> Vec<Advice> {
    ladder::advice::advise(evidence)
        .chain(ways::advice::advise(evidence).into_iter().flatten())
        .chain(append::advice::advise(evidence))
        .chain(latency::advice::advise(evidence))
        .collect()
}
