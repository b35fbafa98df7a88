//! Documents as one HTML page, which needs no network and no script to be read.
//!
//! Text reaches the page through templates that escape it; charts are drawn by plotters.

mod article;
mod chapters;
mod comparison;
mod examination;
mod langs;
mod page;
mod result;
mod several;
mod trace;

use crate::Content;
use crate::tree::{Block, Role};
use page::{Article, Page};
use std::collections::HashMap;
use std::io::{self, Write};

/// A document with its name.
#[derive(Clone, Debug)]
pub struct Named {
    /// The name of its file, for example.
    pub name: String,
    /// The document.
    pub content: Content,
}

/// Writes documents as one page. Several results begin with their rows side by side.
///
/// # Errors
///
/// The errors of `out`.
pub fn write_html(documents: &[Named], out: &mut dyn Write) -> io::Result<()> {
    let mut articles: Vec<Article> = several::article(documents).into_iter().collect();
    articles.extend(documents.iter().map(article));
    chapters::add(&mut articles, documents);
    label(&mut articles);
    for (number, section) in
        articles.iter_mut().flat_map(|article| &mut article.sections).enumerate()
    {
        section.id = format!("section-{}", number + 1);
    }
    let title = articles.first().map(|article| article.title.clone()).unwrap_or_default();
    Page { title, articles, version: env!("CARGO_PKG_VERSION") }.write(out)
}

/// Gives each table its own name, for screen readers.
fn label(articles: &mut [Article]) {
    let mut known: HashMap<String, usize> = HashMap::new();
    let sections = articles.iter_mut().flat_map(|article| &mut article.sections);
    for block in sections.flat_map(|section| &mut section.blocks) {
        if let Block::Table(table) = block {
            let count = known.entry(table.label.clone()).or_default();
            *count += 1;
            if *count > 1 {
                table.label += &format!(" ({count})");
            }
        }
    }
}

fn article(document: &Named) -> Article<'_> {
    let name = &document.name;
    let mut article = match &document.content {
        Content::Result(result) => result::article(result, name),
        Content::Comparison(comparison) => comparison::article(comparison, name),
        Content::Langs(langs) => langs::article(langs, name),
        Content::Examination { of, .. } => examination::article(of, name),
        Content::Trace(trace) => trace::article(trace, name),
    };
    article.sections.retain(|section| section.role != Role::Foot);
    article.limit_charts();
    article
}
