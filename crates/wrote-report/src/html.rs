//! Documents as one HTML page, which can be read without a network and without scripts.
//!
//! Text reaches the page through templates that escape it. Charts are SVG.

use crate::Content;
use crate::tree::{Block, Role, Section, Weight, id_of};
use askama::Template;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html};
use serde::Serialize;
use std::io::{self, Write};
use wrote_result::document::{Finding, Severity};
use wrote_result::finding::{self, IDS};
use wrote_result::{quoted, units};

mod articles;
mod several;
mod strips;
mod trace;

/// A document with a name.
#[derive(Clone, Debug)]
pub struct Named {
    /// The name of the document, such as the name of its file.
    pub name: String,
    /// The document.
    pub content: Content,
}

/// Writes documents as one page. A page with several results begins with their rows side by side.
///
/// # Errors
///
/// The errors of `out`.
pub fn write_html(documents: &[Named], out: &mut dyn Write) -> io::Result<()> {
    let mut articles: Vec<Article> = several::article(documents).into_iter().collect();
    articles.extend(documents.iter().map(article));
    add_chapters(&mut articles, documents);
    for (number, section) in
        articles.iter_mut().flat_map(|article| &mut article.sections).enumerate()
    {
        section.id = format!("section-{}", number + 1);
    }
    let title = articles.first().map(|article| article.title.clone()).unwrap_or_default();
    Page { title, articles, version: env!("CARGO_PKG_VERSION") }.write_into(&mut &mut *out)
}

fn article(document: &Named) -> Article<'_> {
    let name = &document.name;
    let mut article = match &document.content {
        Content::Result(result) => articles::result(result, name),
        Content::Comparison(comparison) => articles::comparison(comparison, name),
        Content::Examination { of, .. } => articles::examination(of, name),
        Content::Trace(trace) => trace::article(trace, name),
    };
    article.sections.retain(|section| section.role != Role::Foot);
    article.limit_charts();
    article.chart_first();
    article
}

const STYLE: &str = include_str!("../templates/style.css");
/// The page's script. It copies code, and shows the values under the pointer.
const SCRIPT: &str = include_str!("../templates/script.js");
/// The SHA-256 of [`SCRIPT`] in Base64. The browser runs only the script with this hash.
const SCRIPT_SHA256: &str = "e5VvhmUIQEmth4lFSM42874NbAYhGQOtnwt9lbGu0fs=";

/// The maximum number of workloads of an article that have charts.
const FIGURES_MAX: usize = 60;

/// An HTML page.
#[derive(Template)]
#[template(path = "page.html")]
pub struct Page<'a> {
    /// The title of the browser window.
    pub title: String,
    /// An article for each document, after the comparison of several results.
    pub articles: Vec<Article<'a>>,
    /// The version of the program that wrote the page.
    pub version: &'static str,
}

/// The part of a page about one document.
#[derive(Default)]
pub struct Article<'a> {
    /// The line above the title: the program, and the question that it answers.
    pub kicker: String,
    /// The title: the answer.
    pub title: String,
    /// The sentence below the title.
    pub lede: String,
    /// The command that created the document; empty if it is unknown.
    pub command: String,
    /// The document as a file to save, if there is one.
    pub saved: Option<Saved>,
    /// The sections.
    pub sections: Vec<Section<'a>>,
    /// The number of sections that precede the table of contents: the caveats and the first chart.
    pub leading: usize,
}

/// A document that is embedded in the page.
#[derive(Debug)]
pub struct Saved {
    /// The name of the document's file.
    pub name: String,
    /// The size of the document, as text.
    pub size: String,
    /// The document as a `data:` address.
    pub address: String,
}

impl Article<'_> {
    /// Moves the caveats, and the first chart with its heading, to the top.
    pub fn chart_first(&mut self) {
        let is_caveats = |of: &Section| of.role == Role::Findings && of.title.is_empty();
        let caveats = self.sections.iter().position(is_caveats);
        let caveats = caveats.map(|at| badge(self.sections.remove(at)));
        let is_drawn = |of: &Block| matches!(of, Block::Figures(of) if !of.draw().is_empty());
        let chart = self.sections.iter_mut().find_map(|of| {
            let at = of.blocks.iter().position(is_drawn)?;
            let chart = vec![of.blocks.remove(at)];
            let (title, lede) = match at.checked_sub(1).map(|before| &of.blocks[before]) {
                Some(Block::Heading(title, rest)) => (&**title, &**rest),
                _ => ("", ""),
            };
            Some(Section::new(Role::Page, title, lede, chart))
        });
        let leading: Vec<Section> = caveats.into_iter().chain(chart).collect();
        self.leading = leading.len();
        self.sections.retain(|of| !of.blocks.is_empty() || !of.lede.is_empty());
        self.sections.splice(0..0, leading);
    }

    /// Removes the charts of all workloads but the first [`FIGURES_MAX`].
    pub fn limit_charts(&mut self) {
        let sections = self.sections.iter_mut().map(|section| &mut section.blocks);
        let mut left = FIGURES_MAX;
        for blocks in sections {
            blocks.retain(|block| match block {
                Block::Figures(_) => {
                    let has = left > 0;
                    left = left.saturating_sub(1);
                    has
                }
                _ => true,
            });
        }
    }
}

/// Turns the caveats into a badge that unfolds. The badge is open at first if a caveat is critical.
fn badge(caveats: Section) -> Section {
    let mut weights = Vec::new();
    for block in &caveats.blocks {
        if let Block::Remarks(of) = block {
            weights.extend(of.remarks.iter().map(|of| of.weight));
        }
    }
    let is_critical = |of: &Weight| matches!(of, Weight::Finding(Severity::Critical));
    let is_folded = !weights.iter().any(is_critical);
    let title = format!("{} to know", units::counted(weights.len() as u64, "thing"));
    Section { title, is_folded, ..caveats }
}

/// Returns a new article that contains the document and the command that created it.
pub fn begun<'a>(document: &impl Serialize, name: &str, command: &[String]) -> Article<'a> {
    Article { command: quoted(command), saved: saved(document, name), ..Article::default() }
}

/// Returns the document as a file that a browser can save, even without scripts.
fn saved(document: &impl Serialize, name: &str) -> Option<Saved> {
    let bytes = serde_json::to_vec(document).ok()?;
    Some(Saved {
        name: file_name(name),
        size: units::bytes(bytes.len() as u64),
        address: format!("data:application/json;base64,{}", STANDARD.encode(&bytes)),
    })
}

/// Returns the name for a JSON file, derived from a name that may be a path or empty.
fn file_name(name: &str) -> String {
    let last = name.rsplit('/').next().unwrap_or_default();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let plain: String =
        last.chars().map(|letter| if is_plain(letter) { letter } else { '-' }).collect();
    let stem = plain.strip_suffix(".json").unwrap_or(&plain).trim_matches(['-', '.']);
    format!("{}.json", if stem.is_empty() { "result" } else { stem })
}

/// Returns an RFC 3339 time in a form for people: `2026-03-21 09:30 UTC`.
pub fn moment(started_at: &str) -> String {
    match (started_at.get(..10), started_at.get(11..16)) {
        (Some(date), Some(time)) if started_at.ends_with('Z') => format!("{date} {time} UTC"),
        _ => started_at.into(),
    }
}

/// Adds a section to the last article that explains each kind of finding in the documents once.
pub fn add_chapters(articles: &mut [Article], documents: &[Named]) {
    let made: Vec<&Finding> = documents.iter().flat_map(|named| findings(&named.content)).collect();
    let blocks = IDS.iter().filter(|id| made.iter().any(|finding| finding.id == **id));
    let blocks: Vec<Block> = blocks
        .filter_map(|id| Some(Block::Chapter((*id).into(), id_of(id), chapter(id)?)))
        .collect();
    if let (Some(last), false) = (articles.last_mut(), blocks.is_empty()) {
        last.sections.push(Section {
            title: "What the findings mean".into(),
            blocks,
            is_folded: true,
            ..Section::default()
        });
    }
}

fn findings(content: &Content) -> Vec<&Finding> {
    match content {
        Content::Result(result) => result.findings.iter().collect(),
        Content::Comparison(comparison) => {
            comparison.old.warnings.iter().chain(&comparison.new.warnings).collect()
        }
        Content::Examination { .. } | Content::Trace(_) => Vec::new(),
    }
}

/// Returns a chapter as HTML, without its heading and without links, because the pages that it
/// links to are not part of the page.
fn chapter(id: &str) -> Option<String> {
    let text = finding::chapter(id)?;
    let is_kept =
        |event: &Event| !matches!(event, Event::Start(Tag::Link { .. }) | Event::End(TagEnd::Link));
    let mut chapter = String::new();
    html::push_html(&mut chapter, Parser::new_ext(text, Options::ENABLE_TABLES).filter(is_kept));
    Some(chapter)
}

#[cfg(test)]
mod article_tests {
    use super::*;

    #[test]
    fn a_saved_file_has_a_plain_name() {
        assert_eq!(file_name("/data/a b.json"), "a-b.json");
        assert_eq!(file_name("disk.json"), "disk.json");
        assert_eq!(file_name("../.."), "result.json");
        assert_eq!(file_name("-"), "result.json");
        assert_eq!(file_name("<b>.txt"), "b-.txt.json");
    }

    #[test]
    fn a_moment_is_to_the_minute() {
        assert_eq!(moment("2026-03-21T09:30:00Z"), "2026-03-21 09:30 UTC");
        assert_eq!(moment("yesterday"), "yesterday");
    }
}

#[cfg(test)]
mod chapters_tests {
    use super::*;

    #[test]
    fn every_finding_has_a_chapter_without_links() {
        for id in IDS.iter() {
            let chapter = chapter(id).unwrap_or_else(|| panic!("no chapter {id}"));
            assert!(chapter.contains("<p>") && !chapter.contains("<a"), "{id}: {chapter}");
        }
        assert_eq!((chapter("none"), id_of("none")), (None, String::new()));
    }
}
