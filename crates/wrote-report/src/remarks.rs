//! Findings in pages and texts.

use crate::tree::{Remark, Weight};
use wrote_result::compare;
use wrote_result::document::Finding;
use wrote_result::finding::IDS;

/// Returns the id of the chapter that explains a finding; empty if there is none.
pub fn id_of(finding: &str) -> String {
    if IDS.contains(&finding) { format!("meaning-{finding}") } else { String::new() }
}

/// Returns findings for the page, each with its evidence and its chapter.
pub fn remarks<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Vec<Remark> {
    let with_facts = |finding: &Finding| {
        let shown = |(key, value): (&String, _)| (key.clone(), compare::shown(Some(value)));
        Remark { facts: finding.evidence.iter().map(shown).collect(), ..remark(finding) }
    };
    findings.into_iter().map(with_facts).collect()
}

/// Returns a finding with its chapter, without its evidence.
pub fn remark(finding: &Finding) -> Remark {
    Remark {
        weight: Weight::Finding(finding.severity),
        id: finding.id.clone(),
        chapter: id_of(&finding.id),
        text: finding.text.clone(),
        facts: Vec::new(),
        commands: Vec::new(),
        after: Vec::new(),
    }
}
