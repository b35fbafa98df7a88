//! Findings: their ids, their order, and their construction. The module is separate because both
//! jobs and scenarios create findings.

use crate::document::{Finding, Row, Severity};
use crate::units::some_of;
use itertools::Itertools;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The text of `docs/findings.md`, through a link that a package resolves.
const TEXT: &str = include_str!("../findings.md");

/// The stable ids of all findings, in their order. They are the titles of the chapters of
/// `docs/findings.md`.
pub static IDS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let titles = TEXT.lines().filter_map(|line| line.strip_prefix("## `")?.strip_suffix('`'));
    titles.collect()
});

/// Returns the Markdown text of the chapter about a finding, without its title.
pub fn chapter(id: &str) -> Option<&'static str> {
    let (_, rest) = TEXT.split_once(&format!("\n## `{id}`\n"))?;
    Some(rest.split("\n## ").next().unwrap_or(rest))
}

/// The maximum number of rows that the text of a finding names.
pub const NAMES_MAX: usize = 3;

/// Sorts `findings` by severity, the worst first, and then in the order of [`IDS`].
pub fn sort(findings: &mut [Finding]) {
    let place = |finding: &Finding| IDS.iter().position(|id| *id == finding.id);
    findings.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), place(finding)));
}

impl Finding {
    /// Returns a finding of [`Severity::Warning`] without figures.
    pub fn warning(id: &str, text: impl Into<String>) -> Finding {
        Finding::new(id, Severity::Warning, text)
    }

    /// Returns a finding of [`Severity::Info`] without figures.
    pub fn info(id: &str, text: impl Into<String>) -> Finding {
        Finding::new(id, Severity::Info, text)
    }

    /// Returns a finding without figures.
    pub fn new(id: &str, severity: Severity, text: impl Into<String>) -> Finding {
        Finding { id: id.into(), severity, text: text.into(), evidence: BTreeMap::new() }
    }

    /// Adds the names of all `rows` as a figure, and the first few of them at the end of the text.
    pub fn about(mut self, rows: &[&Row]) -> Finding {
        // The row of jobs that ran at the same time has the names of all these jobs.
        let names: Vec<&str> = rows.iter().flat_map(|row| row.name.split(", ")).collect();
        let word = if names.len() == 1 { "Row" } else { "Rows" };
        self.text += &format!(". {word}: {}", some_of(&names, NAMES_MAX));
        self.with("rows", names)
    }

    /// Adds a figure, unless it is null.
    pub fn with(mut self, key: &str, figure: impl Serialize) -> Finding {
        let figure = serde_json::to_value(figure).expect("a figure is JSON");
        self.evidence.extend((!figure.is_null()).then(|| (key.into(), figure)));
        self
    }
}

/// Returns the finding `left-out` about the rows that could not be measured, each with the reason;
/// `None` if there are none.
pub fn left_out(rows: &[(String, String)]) -> Option<Finding> {
    let of = |because: &String| {
        let of = rows.iter().filter(|(_, reason)| reason == because);
        let names: Vec<&str> = of.map(|(row, _)| row.as_str()).collect();
        format!("{} ({because})", some_of(&names, NAMES_MAX))
    };
    let each = rows.iter().map(|(_, because)| because).unique().map(of).join(", ");
    let text = format!("Not measured: {each}");
    let figures: BTreeMap<_, _> = rows.iter().map(|(row, because)| (row, because)).collect();
    (!rows.is_empty()).then(|| Finding::info("left-out", text).with("rows", figures))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_ends_with_three_rows_at_most_and_the_evidence_has_all() {
        let row = |name: &str| Row { name: name.into(), ..Row::default() };
        let rows = [row("a"), row("b, c, d"), row("e")];
        let about = |rows: &[&Row]| Finding::info("noisy", "noisy: more runs").about(rows);
        assert_eq!(about(&[&rows[0]]).text, "noisy: more runs. Row: a");
        let finding = about(&rows.iter().collect::<Vec<_>>());
        assert_eq!(finding.text, "noisy: more runs. Rows: a, b, c and 2 more");
        assert_eq!(finding.evidence["rows"], serde_json::json!(["a", "b", "c", "d", "e"]));
    }
}
