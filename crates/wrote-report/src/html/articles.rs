//! The articles about one document: the result of benchmarks or jobs, a comparison of two results,
//! or an examination by `wrote doctor`. The article about a trace draws a picture, and has a
//! separate module.

use super::{Article, begun, moment};
use crate::comparison::WARNINGS;
use crate::group::Group;
use crate::html::strips::{sources, standings, strips};
use crate::paint::Mark;
use crate::result::{files, overview, sections};
use crate::text::program;
use crate::tree::{Block, Remarks, Role, Section, remarks};
use crate::{comparison, doctor, fit, ordered, summary};
use wrote_result::compare::Comparison;
use wrote_result::doctor::Examination;
use wrote_result::document::{Document, FitVerdict, Source};
use wrote_result::units;

/// The order of the sections below the caveats and the chart.
const ORDER: [Role; 7] = [
    Role::Page,
    Role::Answer,
    Role::Advice,
    Role::Scenario,
    Role::Part,
    Role::Facts,
    Role::Findings,
];
/// The sections below an answer that are folded, so that only their titles are shown.
const FOLDED: [Role; 3] = [Role::Advice, Role::Scenario, Role::Facts];

/// Returns the article of a result. Its title is the answer.
pub fn result<'a>(document: &'a Document, name: &str) -> Article<'a> {
    let mut article = begun(document, name, &document.command);
    let path = &document.target.path;
    article.kicker = match document.source {
        Some(Source::Fio) => format!("{}: the jobs of {}", program(&document.wrote), last(name)),
        Some(Source::Run) => format!("wrote run: the jobs of {}", files(document)),
        Some(Source::Fit) => format!("wrote fit: does {path} suit {}?", fit::programs(document)),
        Some(Source::Langs) => {
            format!("wrote langs: what does each language's own I/O cost in {path}?")
        }
        Some(Source::Bench) | None => {
            format!("wrote bench: how fast can you write to {path}, and what is the best method?")
        }
    };
    let groups: Vec<Group> = document.scenarios.iter().flat_map(Group::all_of).collect();
    article.lede = made(document);
    let mut sections = sections(document);
    let answer = sections.iter().find(|section| section.role == Role::Answer);
    let is_answered = answer.is_some();
    let title = match answer.and_then(|section| section.blocks.first()) {
        // This is the verdict of `wrote fit`, without its advice.
        Some(Block::Heading(title, rest)) => {
            let busy = (FitVerdict::BUSY, "other programs used the disk or the CPUs");
            Some(format!("{title}: {}", rest.replace(busy.0, busy.1)))
        }
        _ => summary::headline(document).or_else(|| summary::fastest_of(document)),
    };
    article.title = title.unwrap_or("This result has no measured row.".into());
    if let Some(chart) = fit::margins(document).or_else(|| overview(&groups)) {
        let chart = vec![Block::figures(move || vec![chart.clone()])];
        sections.push(Section::new(Role::Page, "", "", chart));
    }
    if path.is_empty() {
        sections.retain(|section| section.role != Role::Facts);
    }
    for section in &mut sections {
        section.is_folded = is_answered && FOLDED.contains(&section.role);
        match section.role {
            Role::Answer => {
                for block in &mut section.blocks {
                    if let Block::Notes(of) = block {
                        // The badge contains the warnings, and a strip contains the typical
                        // figures.
                        of.notes.retain(|note| {
                            note.mark != Some(Mark::Warning)
                                && !standings(document).any(|(_, of)| note.text.contains(&of.text))
                        });
                    }
                }
                section.blocks.push(Block::figures(move || strips(document)));
            }
            Role::Findings => section.title.clear(),
            _ => {}
        }
    }
    article.sections = ordered(sections, &ORDER);
    article.sections.extend(sources(document));
    article
}

/// Returns the time, the duration and the program of a measurement.
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

/// Returns the name of a file, without its folder.
pub fn last(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Returns the article of a comparison.
pub fn comparison<'a>(comparison: &'a Comparison, name: &str) -> Article<'a> {
    let command = &comparison.new.command;
    let both = comparison.results.len() == 2;
    let mut article = begun(comparison, name, if both { command } else { &[] });
    let program = if both { "wrote bench --vs" } else { "wrote compare" };
    let (old, new) = (&comparison.old, &comparison.new);
    article.kicker = format!("{program}: what changed from {} to {}?", old.name, new.name);
    article.title = comparison::answer(comparison);
    article.sections = comparison::sections(comparison);
    // Instead, the page shows the warnings of each side with their evidence.
    article.sections.retain(|section| section.title != WARNINGS);
    // The rows come first.
    article.sections.swap(0, 1);
    article.sections[0].lede =
        "The median of NEW divided by that of OLD, with its 95 % interval.".into();
    let warned = [("OLD", &old.warnings), ("NEW", &new.warnings)];
    let warned = warned.into_iter().filter(|(_, warnings)| !warnings.is_empty());
    let blocks = warned.flat_map(|(side, warnings)| {
        let remarks = Remarks { remarks: remarks(warnings), is_brief: false };
        [Block::Heading(side.into(), String::new()), Block::Remarks(remarks)]
    });
    let caveats = Section::new(Role::Findings, "", "", blocks.collect());
    article.sections.extend((!caveats.blocks.is_empty()).then_some(caveats));
    article
}

/// Returns the article of an examination. The risks come first.
pub fn examination<'a>(examination: &'a Examination, name: &str) -> Article<'a> {
    let mut article = begun(examination, name, &[]);
    let path = &examination.target.path;
    article.kicker = format!("wrote doctor: what slows {path} down?");
    article.title = format!("{path}: {}", doctor::summary(examination));
    article.lede = format!("Examined {}.", moment(&examination.examined_at));
    article.sections = doctor::sections(examination, true);
    article.sections.retain(|section| ![Role::Page, Role::Answer].contains(&section.role));
    article.sections.rotate_left(1);
    for section in &mut article.sections {
        section.is_folded = section.title == doctor::FINE;
    }
    article
}
