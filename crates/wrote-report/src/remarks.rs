//! Findings as a page and a text show them.

use crate::tree::{Remark, Weight};
use wrote_result::document::Finding;
use wrote_result::finding::IDS;

/// Returns the id of the chapter that explains a finding; empty where there is none.
pub fn id_of(finding: &str) -> String {
    if IDS.contains(&finding) { format!("meaning-{finding}") } else { String::new() }
}

/// Returns findings for the page, each with its evidence and its chapter.
pub fn remarks<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<Remark> {
    let remark = |finding: &Finding| Remark {
        weight: Weight::Finding(finding.severity),
        id: finding.id.clone(),
        chapter: id_of(&finding.id),
        text: finding.text.clone(),
        facts: finding
            .evidence
            .iter()
            .map(|(key, value)| (key.clone(), wrote_result::compare::shown(Some(value))))
            .collect(),
        commands: Vec::new(),
        after: Vec::new(),
    };
    findings.into_iter().map(remark).collect()
}
