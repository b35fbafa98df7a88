//! An examination as text: the lines of all formats, and one file a format.

mod markdown;
mod table;

use crate::{Format, Screen, write_json};
use itertools::Itertools;
use std::io::{self, Write};
use wrote_result::doctor::{Change, Check, Examination, State};

/// Writes an examination, ending with a line feed. `all` writes fine checks at length too. An
/// examination has no CSV: it is written as a table.
///
/// # Errors
///
/// The errors of `out`.
pub fn write_examination(
    examination: &Examination,
    format: Format,
    all: bool,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Table | Format::Csv => table::write(examination, all, screen, out),
        Format::Markdown => markdown::write(examination, all, out),
        Format::Json => write_json(examination, out),
    }
}

/// The states, the worst first, with the titles of their chapters.
pub const CHAPTERS: [(State, &str); 4] = [
    (State::Risk, "Risks"),
    (State::Advice, "Advice"),
    (State::Unknown, "Unknown"),
    (State::Fine, "Fine"),
];

/// The checks of this outcome.
pub fn of(examination: &Examination, state: State) -> Vec<&Check> {
    examination.checks.iter().filter(|check| check.state == state).collect()
}

/// The number of checks of each outcome: `1 risk, 3 pieces of advice, 0 unknown, 20 fine`.
pub fn summary(examination: &Examination) -> String {
    let count = |state| of(examination, state).len();
    let counted = |count: usize, one: &str, more: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {more}"),
    };
    [
        counted(count(State::Risk), "risk", "risks"),
        counted(count(State::Advice), "piece of advice", "pieces of advice"),
        format!("{} unknown", count(State::Unknown)),
        format!("{} fine", count(State::Fine)),
    ]
    .join(", ")
}

/// The check's name, with its device: `scheduler of vda`.
pub fn title(check: &Check) -> String {
    match &check.device {
        Some(device) => format!("{} of {device}", check.id),
        None => check.id.clone(),
    }
}

/// The facts of a check before its commands, each with a label.
pub fn facts(check: &Check) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let mut add = |label, text: &Option<String>| {
        facts.extend(text.clone().map(|text| (label, text)));
    };
    add("why", &check.because);
    let mut evidence =
        check.evidence.iter().map(|found| format!("{}: {}", found.from, found.value));
    add("found", &Some(evidence.join("; ")).filter(|evidence| !evidence.is_empty()));
    add("costs", &check.costs);
    let change = check.change.as_ref();
    add("change", &change.and_then(|change| change.how.clone()));
    facts
}

/// The facts of a change behind its commands.
pub fn facts_after(change: &Change) -> Vec<(&'static str, String)> {
    let lasting = change.lasting.clone().map(|lasting| ("to last", lasting));
    lasting.into_iter().chain([("risk", change.risk.clone())]).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use wrote_result::doctor::{Evidence, SCHEMA};
    use wrote_result::document::{Host, Target};

    /// An examination with a check of each kind.
    pub fn sample() -> Examination {
        let check = |id: &str, state, text: &str| Check {
            id: id.into(),
            state,
            device: None,
            text: text.into(),
            evidence: vec![Evidence { from: "/proc/x".into(), value: "a|b".into() }],
            because: None,
            costs: None,
            change: None,
            sources: Vec::new(),
        };
        let change = Change {
            how: None,
            commands: vec!["echo none > /sys/block/vda/queue/scheduler".into()],
            lasting: Some("a rule".into()),
            risk: "little".into(),
        };
        Examination {
            schema: SCHEMA.into(),
            examined_at: "2026-01-02T03:04:05Z".into(),
            host: host(),
            target: Target { path: "/mnt/a\u{1b}[31m".into(), ..Target::default() },
            checks: vec![
                check("mount-barrier", State::Risk, "barriers are off"),
                Check {
                    device: Some("vda".into()),
                    costs: Some("CPU".into()),
                    change: Some(change),
                    ..check("scheduler", State::Advice, "a scheduler sorts")
                },
                Check { because: Some("no".into()), ..check("queue", State::Unknown, "not told") },
                check("space", State::Fine, "1 GB are free"),
            ],
        }
    }

    fn host() -> Host {
        serde_json::from_value(serde_json::json!({
            "hostname": "h", "kernel": "6.1", "cpu_model": "c", "cpus": 2,
            "memory_bytes": 1000, "virtualization": "none", "io_uring": "yes",
        }))
        .unwrap()
    }

    #[test]
    fn the_summary_counts_each_state() {
        assert_eq!(summary(&sample()), "1 risk, 1 piece of advice, 1 unknown, 1 fine");
    }
}
