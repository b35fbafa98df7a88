//! The article about a result of benchmarks or jobs.

use super::Article;
use super::{begun, moment};
use crate::fit;
use crate::group::Group;
use crate::ordered;
use crate::result::{files, overview, sections};
use crate::text::program;
use crate::tree::{Block, Role, Section};
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
pub fn article<'a>(document: &'a Document, name: &str) -> Article<'a> {
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

/// The file's name, without its folder.
pub fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}
