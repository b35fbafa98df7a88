//! The kinds of documents, and their text in every format.

use crate::tree::{Role, Section};
use crate::{
    Format, Screen, ci, comparison, csv, doctor, markdown, ordered, result, screen, trace,
};
use serde::Serialize;
use std::io::{self, Write};
use wrote_result::compare::Comparison;
use wrote_result::doctor::Examination;
use wrote_result::document::Document;
use wrote_result::trace::{CrashTest, Trace};

/// A document of any kind.
#[derive(Clone, Debug)]
pub enum Content {
    /// The result of benchmarks or jobs, `wrote.result/1`.
    Result(Box<Document>),
    /// A comparison of two results, `wrote.compare/1`.
    Comparison(Box<Comparison>),
    /// The result of `wrote doctor`, `wrote.doctor/1`.
    Examination {
        /// The document.
        of: Box<Examination>,
        /// Whether texts show the details of checks that found nothing. HTML pages always do.
        all: bool,
    },
    /// The trace of a program, `wrote.trace/1`.
    Trace(Box<Trace>),
}

/// The order of the sections on a screen. The headline comes first. The whole answer comes last,
/// because a terminal shows the end of a text.
const ON_SCREEN: [Role; 8] = [
    Role::Headline,
    Role::Facts,
    Role::Scenario,
    Role::Part,
    Role::Findings,
    Role::Advice,
    Role::Foot,
    Role::Answer,
];
const ON_PAPER: [Role; 8] = [
    Role::Headline,
    Role::Facts,
    Role::Answer,
    Role::Scenario,
    Role::Part,
    Role::Findings,
    Role::Advice,
    Role::Foot,
];

impl Content {
    /// Writes the document, with a line feed at its end. Examinations and traces have no CSV
    /// format, and are written as tables.
    ///
    /// # Errors
    ///
    /// The errors of `out`.
    pub fn write(&self, format: Format, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
        match (format, self) {
            (Format::Json, Content::Result(of)) => write_json(of, out),
            (Format::Json, Content::Comparison(of)) => write_json(of, out),
            (Format::Json, Content::Examination { of, .. }) => write_json(of, out),
            (Format::Json, Content::Trace(of)) => write_json(of, out),
            (Format::Github, Content::Trace(of)) => ci::write_github(of, out),
            (Format::Csv, Content::Result(of)) => csv::write(of, out),
            (Format::Csv, Content::Comparison(of)) => comparison::write_csv(of, out),
            (Format::Markdown, _) => {
                let (title, sections) = self.on_paper();
                markdown::write(&title, &sections, out)
            }
            (Format::Table | Format::Csv | Format::Github, _) => {
                screen::write(&self.on_screen(), screen, out)
            }
        }
    }

    fn on_screen(&self) -> Vec<Section<'_>> {
        match self {
            Content::Result(of) => ordered(result::on_screen(of), &ON_SCREEN),
            Content::Comparison(of) => comparison::sections(of),
            Content::Examination { of, all } => doctor::on_screen(of, *all),
            Content::Trace(of) => trace::sections(of, trace::FILES_MAX),
        }
    }

    /// Returns the title and the sections of the Markdown report.
    fn on_paper(&self) -> (String, Vec<Section<'_>>) {
        match self {
            Content::Result(of) => (result::title(of), ordered(result::sections(of), &ON_PAPER)),
            Content::Comparison(of) => (comparison::title(of), comparison::sections(of)),
            Content::Examination { of, all } => (doctor::title(of), doctor::on_paper(of, *all)),
            Content::Trace(of) => (trace::title(of), trace::on_paper(of)),
        }
    }
}

/// Writes the failed state of a crash test, if there is one, and the outcome of the test.
///
/// # Errors
///
/// The errors of `out`.
pub fn write_crash_test(test: &CrashTest, to: Screen, out: &mut dyn Write) -> io::Result<()> {
    screen::write(&trace::crash_test(test), to, out)
}

/// Writes the whole document as pretty-printed JSON, with a line feed at its end.
///
/// # Errors
///
/// The errors of `out`.
pub fn write_json(document: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, document)?;
    writeln!(out)
}
