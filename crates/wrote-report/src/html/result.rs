//! The article about a result of benchmarks or jobs.

use super::answers;
use super::article::{article as begun, facts_section, folded, moment, program, section};
use super::chapters;
use super::groups::{Charts, blocks, overview};
use super::page::{Article, Block, Section};
use crate::group::Group;
use crate::summary::Summary;
use crate::target;
use itertools::Itertools;
use wrote_result::document::{Document, Scenario, is_imported};
use wrote_result::units;

/// Returns the article of a result. The answer comes first.
pub fn article(document: &Document, name: &str) -> Article {
    let mut article = begun(document, name, &document.command);
    let is_of_jobs = document.command.get(1).is_some_and(|verb| verb == "run");
    let path = &document.target.path;
    (article.kicker, article.title) = match (is_imported(document), is_of_jobs) {
        (true, _) => (program(&document.wrote), format!("The jobs of {}", last(name))),
        (false, true) => {
            let files = document.scenarios.iter().map(|scenario| scenario.name.as_str()).join(" ");
            ("wrote run".into(), format!("The jobs of {files}"))
        }
        (false, false) => (
            "wrote bench".into(),
            format!("How fast can you write to {path}, and what is the best way?"),
        ),
    };
    article.ledes = vec![made(document)];
    // A result without an answer of its own begins with its scenarios.
    let is_answered = Summary::of(document).map(|summary| {
        let blocks = vec![Block::Table(summary.table()), Block::Notes(summary.notes())];
        article.sections.push(section("The answer", "", blocks));
    });
    let is_answered = is_answered.is_some();
    let fold = |section: Section| if is_answered { folded(section) } else { section };
    let cards = answers::cards(document);
    let advice = (!cards.is_empty()).then(|| {
        let lede = "Each figure is the median of several runs with its 95 % interval.";
        section("How to write", lede, vec![Block::Cards(cards)])
    });
    let (folded_advice, first_advice) =
        if is_answered { (advice.map(folded), None) } else { (None, advice) };
    article.sections.extend(first_advice);
    if !document.findings.is_empty() {
        let lede = "Caveats. Click an ID for details.";
        let remarks = chapters::remarks(&document.findings);
        article.sections.push(section("Findings", lede, vec![Block::Findings(remarks)]));
    }
    let groups: Vec<Group> = document.scenarios.iter().flat_map(Group::all_of).collect();
    if let Some(overview) = overview(&groups).filter(|_| is_answered) {
        article.sections.push(section("Overview", "", vec![Block::Figure(overview)]));
    }
    article.sections.extend(folded_advice);
    let mut charts = Charts::new();
    let scenarios = document.scenarios.iter().map(|scenario| of_scenario(scenario, &mut charts));
    article.sections.extend(scenarios.map(fold));
    if !document.target.path.is_empty() {
        let facts = target::facts_of(document);
        article.sections.push(fold(facts_section("Disk and machine", facts)));
    }
    if document.scenarios.iter().all(|scenario| scenario.rows.is_empty()) {
        article.sections.push(section("No rows", "This document holds no measured row.", vec![]));
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

fn of_scenario(scenario: &Scenario, charts: &mut Charts) -> Section {
    let blocks = Group::all_of(scenario).iter().flat_map(|group| blocks(group, charts)).collect();
    section(&scenario.name, &scenario.question, blocks)
}
