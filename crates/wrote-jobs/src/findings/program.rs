//! Findings on the program: its build, the leftovers of earlier runs, and rows it left out.

use super::Evidence;
use serde_json::json;
use wrote_result::document::{Finding, Severity};
use wrote_result::finding::{finding, left_out};

pub(super) fn find(evidence: &Evidence) -> [Option<Finding>; 3] {
    [debug_build(evidence), leftovers(evidence), left_out(&evidence.left_out)]
}

fn debug_build(evidence: &Evidence) -> Option<Finding> {
    let text = "this program was built without optimisation: its CPU figures and its fastest rows \
                mean little; build it with --release";
    let figures = [("debug_build", json!(true))];
    evidence.debug_build.then(|| finding("debug-build", Severity::Warning, text.into(), figures))
}

fn leftovers(evidence: &Evidence) -> Option<Finding> {
    if evidence.leftovers.is_empty() {
        return None;
    }
    let text = format!(
        "an earlier run was killed and left {}; `wrote clean {}` removes it",
        evidence.leftovers.join(", "),
        evidence.target.path
    );
    let figures = [("folders", json!(evidence.leftovers))];
    Some(finding("leftovers", Severity::Info, text, figures))
}
