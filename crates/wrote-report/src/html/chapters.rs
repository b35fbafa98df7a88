//! The meanings of findings: the chapters of `docs/findings.md` that a page needs.

use super::page::Article;
use super::{Content, Named};
use crate::remarks::id_of;
use crate::tree::{Block, Section};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd, html};
use wrote_result::document::Finding;
use wrote_result::finding::IDS;

/// `docs/findings.md`, by a link that a package resolves.
const FINDINGS: &str = include_str!("../../findings.md");

/// Adds a section to the last article that explains every finding of the documents once.
pub fn add(articles: &mut [Article], documents: &[Named]) {
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
        Content::Langs(_) | Content::Examination { .. } | Content::Trace(_) => Vec::new(),
    }
}

/// Returns a chapter as HTML, without its heading and its links: the page has nothing to link to.
fn chapter(id: &str) -> Option<String> {
    let heading = format!("\n## `{id}`\n");
    let begin = FINDINGS.find(&heading)? + heading.len();
    let rest = &FINDINGS[begin..];
    let text = &rest[..rest.find("\n## ").unwrap_or(rest.len())];
    let is_kept =
        |event: &Event| !matches!(event, Event::Start(Tag::Link { .. }) | Event::End(TagEnd::Link));
    let mut chapter = String::new();
    html::push_html(&mut chapter, Parser::new_ext(text, Options::ENABLE_TABLES).filter(is_kept));
    Some(chapter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_has_a_chapter_without_links() {
        for id in IDS {
            let chapter = chapter(id).unwrap_or_else(|| panic!("no chapter {id}"));
            assert!(chapter.contains("<p>") && !chapter.contains("<a"), "{id}: {chapter}");
        }
        assert_eq!((chapter("none"), id_of("none")), (None, String::new()));
    }
}
