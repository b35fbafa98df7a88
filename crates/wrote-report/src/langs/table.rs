//! A comparison of languages for a person: a table for each workload, the fastest first, with the drive and
//! `wrote` among the languages; who failed, who is not installed.

use super::rows::{self, Rows};
use super::{
    Chart, MISSING, NOT_BUILT, facts, is_of_several, legend, missing, not_built, place_titles,
};
use crate::Screen;
use crate::paint::Tone;
use crate::table::{Table, made};
use std::io::{self, Write};
use wrote_result::langs::Document;

/// Writes a comparison for `screen`.
pub fn write(document: &Document, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    let table = Table::new(screen);
    table.facts(facts(document).into_iter().map(|fact| table.shown_fact(fact)).collect(), out)?;
    let titles = is_of_several(document).then(|| place_titles(document));
    let charts = Chart::all_of(document);
    for chart in &charts {
        table.chart(chart, titles.as_deref(), out)?;
    }
    table.bullets(NOT_BUILT, &not_built(document), out)?;
    table.bullets(MISSING, &missing(document), out)?;
    let made = made(&document.wrote, &document.started_at, document.elapsed_s);
    writeln!(out)?;
    let marks = rows::legend(&charts, screen);
    let figures = legend(document);
    for paragraph in marks.as_deref().into_iter().chain([figures.as_str(), &made]) {
        for line in table.text().wrapped(&table.shown(paragraph), 0).lines() {
            writeln!(out, "{}", table.paint.paint(Tone::Faint, line))?;
        }
    }
    Ok(())
}

impl Table {
    fn chart(
        &self,
        chart: &Chart,
        titles: Option<&[String]>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let summary = self.text().wrapped(&format!("{}: {}", chart.name, chart.summary), 2);
        let summary = summary.strip_prefix(chart.name).unwrap_or(&summary);
        writeln!(out, "\n{}{summary}", self.paint.paint(Tone::Strong, chart.name))?;
        Rows::of(chart, titles, self.screen).write(self.paint, self.screen, out)?;
        for note in &chart.notes {
            writeln!(out, "{}", self.text().wrapped(note, 2))?;
        }
        for failure in &chart.failures {
            let mark = self.paint.paint(Tone::Red, "!");
            writeln!(out, "{mark} {}", self.text().wrapped(failure, 2))?;
        }
        Ok(())
    }

    /// A list under a title; nothing of nothing.
    fn bullets(&self, title: &str, lines: &[String], out: &mut dyn Write) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        writeln!(out, "\n{}", self.paint.paint(Tone::Strong, title))?;
        lines.iter().try_for_each(|line| writeln!(out, "  {}", self.text().wrapped(line, 4)))
    }

    fn shown_fact(&self, (name, facts): (String, Vec<String>)) -> (String, Vec<String>) {
        (name, facts.iter().map(|fact| self.shown(fact)).collect())
    }

    /// Text of ours as the screen can show it.
    fn shown(&self, text: &str) -> String {
        if self.screen.unicode { text.to_owned() } else { text.replace('±', "+-") }
    }
}
