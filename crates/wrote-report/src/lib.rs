//! All texts that are created from documents: tables for a screen, Markdown, CSV, JSON and HTML.
//!
//! [`Content::write`] lays out a document of any kind. [`write_html`] lays out several documents as
//! one page for a browser. This file only names the modules.

#![forbid(unsafe_code)]

mod chart;
mod ci;
mod columns;
mod comparison;
mod content;
mod csv;
mod doctor;
mod evidence;
mod figures;
mod fit;
mod group;
mod html;
mod languages;
mod markdown;
mod paint;
mod result;
mod screen;
mod summary;
mod sustained;
mod table;
mod target;
mod text;
mod trace;
mod tree;

pub use ci::{write_junit, write_sarif};
pub use content::{Content, write_crash_test, write_json};
pub use figures::per_second;
pub use html::{Named, write_html};
pub use languages::write_languages;
pub use summary::so_far;
pub use table::write_list;
pub use text::{plain, wrapped};
pub use trace::CHECK_FAILED;

use tree::{Role, Section};

/// A format of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Tables for a person at a screen.
    Table,
    /// The whole document, as JSON.
    Json,
    /// A line for each run or row, for a spreadsheet. Examinations and traces are written as tables
    /// instead.
    Csv,
    /// Markdown with the tables of GitHub Flavored Markdown, to be pasted into an issue.
    Markdown,
    /// Annotations of a GitHub workflow, for a traced program. Other documents are written as
    /// tables.
    Github,
}

/// The capabilities of the screen or file for which a table is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// The number of columns in a line.
    pub width: usize,
    /// Whether colours may be used.
    pub colour: bool,
    /// Whether characters beyond ASCII may be used.
    pub unicode: bool,
}

/// Returns the sections that have one of these roles, in the order of the roles.
fn ordered<'a>(mut sections: Vec<Section<'a>>, order: &[Role]) -> Vec<Section<'a>> {
    let place = |section: &Section| order.iter().position(|role| *role == section.role);
    sections.retain(|section| place(section).is_some());
    sections.sort_by_key(place);
    sections
}
