//! The report of an examination by `wrote doctor`.

use crate::paint::Tone;
use crate::target;
use crate::tree::{Block, Note, On, Remark, Remarks, Role, Section, Style, Weight};
use wrote_result::doctor::{Check, Examination, State};

/// Returns the title of the Markdown report.
pub fn title(examination: &Examination) -> String {
    format!("wrote doctor {}", examination.target.path)
}

/// Returns the sections for a screen. They begin with the answer. A screen shows the end of a long
/// text, so the most important section comes last.
pub fn on_screen(examination: &Examination, all: bool) -> Vec<Section<'_>> {
    let mut sections = sections(examination, all);
    sections[1..=CHAPTERS.len()].reverse();
    let lead = format!("{}: {}.", examination.target.path, summary(examination));
    let lead = vec![Block::notes(Style::Lead, [lead])];
    sections.insert(0, Section::new(Role::Headline, "", "", lead));
    sections
}

/// Returns the sections of the Markdown report, which begin with the answer.
pub fn on_paper(examination: &Examination, all: bool) -> Vec<Section<'_>> {
    let mut sections = sections(examination, all);
    sections[1..=CHAPTERS.len() + 1].rotate_right(1);
    sections
}

/// Returns the sections of an examination, with the details of checks that found nothing if `all`.
pub fn sections(examination: &Examination, all: bool) -> Vec<Section<'_>> {
    let facts = target::facts(&examination.target, &examination.host);
    let mut sections = vec![Section::facts("Disk and machine", facts)];
    sections.extend(CHAPTERS.into_iter().map(|(state, chapter)| {
        let remarks: Vec<Remark> = of(examination, state).into_iter().map(remark).collect();
        let role = if remarks.is_empty() { Role::Page } else { Role::Part };
        let remarks = Remarks { remarks, is_brief: state == State::Fine && !all };
        Section::new(role, chapter, "", vec![Block::Remarks(remarks)])
    }));
    let summary = Note { tone: Tone::Strong, ..format!("{}.", summary(examination)).into() };
    let examined = format!(
        "Nothing was written, and no command was run. Commands need root; docs/doctor.md says what \
         each check means and where that comes from. Examined at {}.",
        examination.examined_at
    );
    let examined = Note { on: On::Screen, ..examined.into() };
    let summary = vec![Block::notes(Style::Apart, [summary])];
    sections.push(Section::new(Role::Answer, "", "", summary));
    let foot = vec![Block::notes(Style::Foot, [examined])];
    sections.push(Section::new(Role::Foot, "", "", foot));
    sections
}

/// Returns a check with the facts that come before and after its commands.
fn remark(check: &Check) -> Remark {
    // A setting that is fine needs no command.
    let change = check.change.as_ref().filter(|_| check.state != State::Fine);
    let evidence = check.evidence.iter().map(|found| format!("{}: {}", found.from, found.value));
    let evidence = Some(evidence.collect::<Vec<_>>().join("; ")).filter(|text| !text.is_empty());
    let fact = |label: &str, text: Option<&String>| Some((label.to_owned(), text?.clone()));
    let facts = [
        fact("why", check.because.as_ref()),
        fact("found", evidence.as_ref()),
        fact("costs", check.costs.as_ref()),
    ];
    let before = [
        fact("change", change.and_then(|change| change.how.as_ref())),
        fact("risk", change.map(|change| &change.risk)),
    ];
    let after = fact("persist", change.and_then(|change| change.lasting.as_ref()));
    Remark {
        weight: Weight::Check(check.state),
        id: name(check),
        chapter: String::new(),
        text: check.text.clone(),
        facts: facts.into_iter().flatten().collect(),
        before: before.into_iter().flatten().collect(),
        commands: change.map(|change| change.commands.clone()).unwrap_or_default(),
        after: after.into_iter().collect(),
    }
}

/// The states, from the worst to the best, with the titles of their chapters.
const CHAPTERS: [(State, &str); 4] = [
    (State::Risk, "Risks"),
    (State::Advice, "Advice"),
    (State::Unknown, "Unknown"),
    (State::Fine, FINE),
];

/// The title of the checks that found nothing.
pub const FINE: &str = "Fine";

/// Returns the checks with this outcome.
fn of(examination: &Examination, state: State) -> Vec<&Check> {
    examination.checks.iter().filter(|check| check.state == state).collect()
}

/// Returns the number of checks with each outcome:
/// `1 risk, 3 pieces of advice, 0 unknown, 20 fine`.
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

/// Returns the name of the check, with its device: `scheduler of vda`.
fn name(check: &Check) -> String {
    match &check.device {
        Some(device) => format!("{} of {device}", check.id),
        None => check.id.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Content, Format, Screen};
    use unicode_width::UnicodeWidthStr;
    use wrote_result::doctor::{Change, Evidence, SCHEMA};
    use wrote_result::document::{Host, Target};

    /// Returns an examination with a check of each kind.
    fn sample() -> Examination {
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

    #[test]
    fn commands_are_code_and_everything_else_is_plain() {
        let text = text(Format::Markdown, false);
        assert!(
            text.contains("  - command: `echo none > /sys/block/vda/queue/scheduler`\n"),
            "{text}"
        );
        assert!(text.contains("  - found: /proc/x: a\\|b\n"), "{text}");
        assert!(text.contains("- **space**: 1 GB are free\n"), "{text}");
        assert!(text.find("1 risk, ") < text.find("### Risks"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    fn text(format: Format, all: bool) -> String {
        let screen = Screen { width: 80, colour: false, unicode: false };
        let mut text = Vec::new();
        Content::Examination { of: Box::new(sample()), all }
            .write(format, screen, &mut text)
            .unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn the_worst_comes_last_with_its_command_on_a_line_of_its_own() {
        let text = text(Format::Table, false);
        let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
        assert!(place("! mount-barrier") > place("- scheduler of vda"), "{text}");
        assert!(place("- scheduler of vda") > place("? queue"), "{text}");
        assert!(place("? queue") > place("space (--all has the details)"), "{text}");
        let last = text.rfind("1 risk, ").expect("a summary");
        assert!(last > place("! mount-barrier"), "{text}");
        assert!(
            text.contains("\n    command  echo none > /sys/block/vda/queue/scheduler\n"),
            "{text}"
        );
        assert!(!text.contains('\u{1b}'), "{text}");
    }

    #[test]
    fn fine_checks_are_shown_at_length_only_when_asked_for() {
        let (short, long) = (text(Format::Table, false), text(Format::Table, true));
        assert!(!short.contains("+ space") && short.contains("  space (--all"), "{short}");
        let check = long.split("+ space").nth(1).unwrap();
        assert!(check.split("  ? ").next().unwrap().contains("found"), "{long}");
    }

    #[test]
    fn prose_keeps_to_the_width_of_the_screen() {
        assert!(
            text(Format::Table, true).lines().all(|line| line.width() <= 80),
            "{}",
            text(Format::Table, true)
        );
    }
}
