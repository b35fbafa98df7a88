//! Findings: facts that the evidence of a run adds to its numbers, explained in `docs/findings.md`.
//! Without enough evidence a finding is absent.

mod bytes;
mod evidence;
mod jobs;
mod machine;
mod moved;
mod place;
mod program;
mod rates;
mod rows;
#[cfg(test)]
mod tests;

pub use evidence::Evidence;
pub use moved::{counts, source_bytes, stayed_in_memory};

use wrote_result::document::Finding;
use wrote_result::finding;

/// Returns all findings of a run: warnings first, then in the order of [`finding::IDS`].
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
