//! Every text made from a document: tables for a screen, Markdown, CSV, JSON, HTML.
//!
//! A document of benchmarks or jobs is laid out by [`fn@write`], a comparison by
//! [`write_comparison`], an examination of the doctor by [`write_examination`], a comparison of
//! languages by [`write_langs`], a traced program by [`write_trace`], and any of them as a page
//! for a browser by [`write_html`].

#![forbid(unsafe_code)]

mod chart;
mod columns;
mod comparison;
mod csv;
mod doctor;
mod figures;
mod fit;
mod group;
mod html;
mod langs;
mod markdown;
mod page;
mod paint;
mod ranks;
mod remarks;
mod result;
mod screen;
mod summary;
mod sustained;
mod table;
mod target;
mod text;
mod trace;
mod tree;

pub use comparison::write_comparison;
pub use doctor::write_examination;
pub use html::{Content, Named, write_html};
pub use langs::{write_langs, write_languages};
pub use summary::so_far;
pub use table::write_list;
pub use text::plain;
pub use trace::write_trace;

use std::io::{self, Write};
use tree::{Role, Section};
use wrote_result::document::Document;

/// A kind of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Tables for a person at a screen.
    Table,
    /// The whole document.
    Json,
    /// A line for each run or row, for a spreadsheet. An examination has none: it is written as a
    /// table.
    Csv,
    /// Markdown with the tables of GitHub Flavored Markdown, to paste in an issue.
    Markdown,
}

/// The capabilities of the screen or file that a table is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Screen {
    /// Columns in a line.
    pub width: usize,
    /// Whether colours may be used.
    pub colour: bool,
    /// Whether characters beyond ASCII may be used.
    pub unicode: bool,
}

/// Writes the result of a benchmark or of jobs, ending with a line feed.
///
/// # Errors
///
/// The errors of `out`.
pub fn write(
    document: &Document,
    format: Format,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Table => {
            screen::write(&ordered(result::sections(document), &ON_SCREEN), screen, out)
        }
        Format::Json => write_json(document, out),
        Format::Csv => csv::write(document, out),
        Format::Markdown => {
            let sections = ordered(result::sections(document), &ON_PAPER);
            markdown::write(&result::title(document), &sections, out)
        }
    }
}

/// The answer comes last: a terminal then shows the end of the text.
const ON_SCREEN: [Role; 6] =
    [Role::Facts, Role::Scenario, Role::Findings, Role::Advice, Role::Foot, Role::Answer];
const ON_PAPER: [Role; 6] =
    [Role::Facts, Role::Answer, Role::Scenario, Role::Findings, Role::Advice, Role::Foot];

/// Returns the sections that have one of these roles, in the order of the roles.
fn ordered<'a>(mut sections: Vec<Section<'a>>, order: &[Role]) -> Vec<Section<'a>> {
    let place = |section: &Section| order.iter().position(|role| *role == section.role);
    sections.retain(|section| place(section).is_some());
    sections.sort_by_key(place);
    sections
}

/// Writes a document whole, as pretty-printed JSON with a line feed at its end.
///
/// # Errors
///
/// The errors of `out`.
pub fn write_json(document: &impl serde::Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, document)?;
    writeln!(out)
}
