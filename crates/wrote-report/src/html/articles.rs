//! The articles about one document each: a result of benchmarks or jobs, a comparison of two, an
//! examination of the doctor. The one about a trace draws a picture, and has a room of its own.

use super::{Article, begun, moment};
use crate::comparison::WARNINGS;
use crate::group::Group;
use crate::result::{files, overview, sections};
use crate::text::program;
use crate::tree::{Block, Remarks, Role, Section, remarks};
use crate::{comparison, doctor, fit, ordered};
use wrote_result::compare::{Comparison, Verdict};
use wrote_result::doctor::Examination;
use wrote_result::document::{Document, Source};
use wrote_result::units;

/// The order of the sections, with and without an answer.
const ANSWERED: [Role; 6] =
    [Role::Answer, Role::Findings, Role::Page, Role::Advice, Role::Scenario, Role::Facts];
const UNANSWERED: [Role; 5] =
    [Role::Advice, Role::Findings, Role::Scenario, Role::Part, Role::Facts];
/// The sections below an answer that are folded: only their titles are shown.
const FOLDED: [Role; 3] = [Role::Advice, Role::Scenario, Role::Facts];

/// Returns the article of a result. The answer comes first.
pub fn result<'a>(document: &'a Document, name: &str) -> Article<'a> {
    let mut article = begun(document, name, &document.command);
    let path = &document.target.path;
    (article.kicker, article.title) = match document.source {
        Some(Source::Fio) => (program(&document.wrote), format!("The jobs of {}", last(name))),
        Some(Source::Run) => ("wrote run".into(), format!("The jobs of {}", files(document))),
        Some(Source::Fit) => {
            ("wrote fit".into(), format!("Does {path} suit {}?", fit::programs(document)))
        }
        Some(Source::Langs) => {
            ("wrote langs".into(), format!("What does each language's own I/O cost in {path}?"))
        }
        Some(Source::Bench) | None => (
            "wrote bench".into(),
            format!("How fast can you write to {path}, and what is the best way?"),
        ),
    };
    article.ledes = vec![made(document)];
    let mut sections = sections(document);
    let groups: Vec<Group> = document.scenarios.iter().flat_map(Group::all_of).collect();
    // A result without an answer begins with its advice and its scenarios.
    let is_answered = sections.iter().any(|section| section.role == Role::Answer);
    if let Some(overview) = overview(&groups).filter(|_| is_answered) {
        let blocks = vec![Block::figures(move || vec![overview.clone()])];
        sections.push(Section::new(Role::Page, "Overview", "", blocks));
    }
    if document.target.path.is_empty() {
        sections.retain(|section| section.role != Role::Facts);
    }
    for section in &mut sections {
        section.is_folded = is_answered && FOLDED.contains(&section.role);
        match section.role {
            Role::Findings => section.lede = "Caveats. Click an ID for details.".into(),
            Role::Advice => {
                section.lede =
                    "Each figure is the median of several runs with its 95 % interval.".into();
            }
            _ => {}
        }
    }
    article.sections = ordered(sections, if is_answered { &ANSWERED } else { &UNANSWERED });
    if document.scenarios.iter().all(|scenario| scenario.rows.is_empty()) {
        let lede = "This document holds no measured row.";
        article.sections.push(Section::new(Role::Part, "No rows", lede, Vec::new()));
    }
    article
}

/// Returns the time, length and program of a measurement.
pub fn made(document: &Document) -> String {
    let took = match document.elapsed_s {
        s if s > 0.0 => format!(", in {}", units::seconds(s)),
        _ => String::new(),
    };
    let host = match document.host.hostname.as_str() {
        "" => String::new(),
        hostname => format!(" on {hostname}"),
    };
    format!(
        "Measured {}{took}{host}, by {}.",
        moment(&document.started_at),
        program(&document.wrote)
    )
}

/// Returns the file's name, without its folder.
pub fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Returns the article of a comparison.
pub fn comparison<'a>(comparison: &'a Comparison, name: &str) -> Article<'a> {
    let command = &comparison.new.command;
    let both = comparison.results.len() == 2;
    let mut article = begun(comparison, name, if both { command } else { &[] });
    article.kicker = if both { "wrote bench --vs" } else { "wrote compare" }.into();
    article.title =
        format!("What changed from {} to {}?", comparison.old.name, comparison.new.name);
    article.ledes = vec![answer(comparison)];
    article.sections = comparison::sections(comparison);
    // A page has the warnings of each side with their evidence.
    article.sections.retain(|section| section.title != WARNINGS);
    // The rows come first.
    article.sections.swap(0, 1);
    article.sections[0].lede =
        "The ratio of the medians, NEW over OLD, with its 95 % interval.".into();
    for (title, of) in [("Warnings of OLD", &comparison.old), ("Warnings of NEW", &comparison.new)]
    {
        if !of.warnings.is_empty() {
            let remarks = Remarks { remarks: remarks(&of.warnings), is_brief: false };
            let blocks = vec![Block::Remarks(remarks)];
            article.sections.push(Section::new(Role::Page, title, "", blocks));
        }
    }
    article
}

/// Returns the number of rows by verdict: `2 rows are slower, 1 is faster, ..`.
fn answer(comparison: &Comparison) -> String {
    let count = |of: Verdict| comparison.rows.iter().filter(|row| row.verdict == of).count();
    let told = [
        (count(Verdict::Slower), "slower"),
        (count(Verdict::Faster), "faster"),
        (count(Verdict::NoDetectableDifference), "without a difference found"),
        (count(Verdict::OneRun), "of one run, which tells nothing"),
    ];
    let told = told.iter().filter(|(count, _)| *count > 0);
    let told: Vec<String> = told.map(|(count, words)| format!("{count} {words}")).collect();
    format!("Of {} rows: {}.", comparison.rows.len(), told.join(", "))
}

/// Returns the article of an examination: the risks first.
pub fn examination<'a>(examination: &'a Examination, name: &str) -> Article<'a> {
    let mut article = begun(examination, name, &[]);
    article.kicker = "wrote doctor".into();
    article.title = format!("What holds {} back?", examination.target.path);
    article.ledes = vec![
        format!("{}.", doctor::summary(examination)),
        format!("Examined {}.", moment(&examination.examined_at)),
    ];
    article.sections = doctor::sections(examination, true);
    article.sections.retain(|section| ![Role::Page, Role::Answer].contains(&section.role));
    article.sections.rotate_left(1);
    article
}
