//! The article about a result of benchmarks or jobs.

use super::answers;
use super::article::{article as begun, facts_section, moment, program, section};
use super::chapters;
use super::groups::{Charts, blocks};
use super::page::{Article, Block, Section};
use super::table::Table;
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
        (false, false) => {
            ("wrote bench".into(), format!("How fast does {path} take writes, and how to write?"))
        }
    };
    article.ledes = vec![made(document)];
    let mut blocks = Vec::new();
    if let Some(summary) = Summary::of(document) {
        let answers: Vec<&[String; 4]> = summary.answers.iter().collect();
        let table = Table::of("The answers", Summary::columns(), &answers, None);
        blocks.extend([Block::Table(table), Block::Notes(summary.notes())]);
    }
    let cards = answers::cards(document);
    blocks.extend((!cards.is_empty()).then_some(Block::Cards(cards)));
    if !blocks.is_empty() {
        let lede = "Each figure is the median of several runs with its 95 % interval.";
        article.sections.push(section("The answer", lede, blocks));
    }
    if !document.target.path.is_empty() {
        let facts = target::facts_of(document);
        article.sections.push(facts_section("Disk and machine", facts));
    }
    if !document.findings.is_empty() {
        let lede = "Caveats. Click an ID for details.";
        let remarks = chapters::remarks(&document.findings);
        article.sections.push(section("Findings", lede, vec![Block::Findings(remarks)]));
    }
    let mut charts = Charts::new();
    let scenarios = document.scenarios.iter().map(|scenario| of_scenario(scenario, &mut charts));
    article.sections.extend(scenarios);
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
