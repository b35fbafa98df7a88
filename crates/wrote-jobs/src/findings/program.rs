//! Findings on the run itself: how the program was built, what it found there, what it left out.

use super::Evidence;
use serde_json::{Value, json};
use wrote_result::document::{Finding, Severity};
use wrote_result::finding::finding;

pub(super) fn find(evidence: &Evidence) -> [Option<Finding>; 3] {
    [debug_build(evidence), leftovers(evidence), left_out(evidence)]
}

fn debug_build(evidence: &Evidence) -> Option<Finding> {
    let text = "this program was built without optimisation: its CPU figures and its fastest rows \
                mean little; build with --release";
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

fn left_out(evidence: &Evidence) -> Option<Finding> {
    if evidence.left_out.is_empty() {
        return None;
    }
    let each = evidence.left_out.iter().map(|(row, because)| format!("{row} ({because})"));
    let text = format!("not measured: {}", each.collect::<Vec<_>>().join(", "));
    let figures = evidence.left_out.iter().map(|(row, because)| (row.clone(), json!(because)));
    let figures = Value::Object(figures.collect());
    Some(finding("left-out", Severity::Info, text, [("rows", figures)]))
}
