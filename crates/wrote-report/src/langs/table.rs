//! A comparison of languages for a person: a table for each workload, the fastest first, with the
//! drive and `wrote` among the languages.

use super::{
    Chart, MISSING, NOT_BUILT, Who, facts, is_of_several, legend, missing, not_built, place_titles,
    table_of,
};
use crate::Screen;
use crate::page::{Page, made};
use crate::paint::{Mark, Tone, ascii};
use std::io::{self, Write};
use wrote_result::langs::Document;

pub fn write(document: &Document, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    let page = Page { screen };
    let shown = |facts: Vec<String>| facts.iter().map(|fact| ascii(fact, screen)).collect();
    let facts = facts(document).into_iter().map(|(name, facts)| (name, shown(facts)));
    page.facts(&facts.collect::<Vec<(String, Vec<String>)>>(), out)?;
    let titles = is_of_several(document).then(|| place_titles(document));
    let charts = Chart::all_of(document);
    for chart in &charts {
        write_chart(chart, titles.as_deref(), page, out)?;
    }
    page.list(NOT_BUILT, &not_built(document), 4, out)?;
    page.list(MISSING, &missing(document), 4, out)?;
    let marks = marks(&charts, screen);
    let legend = ascii(&legend(document), screen);
    let made = made(&document.wrote, &document.started_at, document.elapsed_s);
    page.foot(marks.as_deref().into_iter().chain([legend.as_str(), &made]), out)
}

fn write_chart(
    chart: &Chart,
    titles: Option<&[String]>,
    page: Page,
    out: &mut dyn Write,
) -> io::Result<()> {
    let summary = page.prose(&format!("{}: {}", chart.name, chart.summary), 2);
    let summary = summary.strip_prefix(chart.name).unwrap_or(&summary);
    page.heading(chart.name, summary, out)?;
    if chart.lines.is_empty() {
        writeln!(out, "no language did it")?;
    } else {
        table_of(chart, titles).write(page, out)?;
    }
    for note in &chart.notes {
        writeln!(out, "{}", page.prose(note, 2))?;
    }
    for failure in &chart.failures {
        writeln!(out, "{} {}", page.paint(Tone::Red, "!"), page.prose(failure, 2))?;
    }
    Ok(())
}

/// Explains the marks that stand in any of the tables.
fn marks(charts: &[Chart], screen: Screen) -> Option<String> {
    let lines = || charts.iter().flat_map(|chart| &chart.lines);
    let has = |who| lines().any(|line| line.who == who);
    let first = if lines().any(|line| line.cells.len() > 1) { " in the first path" } else { "" };
    let level =
        format!("no measurable difference from the line above{first}: the 95 % intervals touch");
    let drive = "is what the drive takes or gives by itself, past the page cache";
    let marks = [
        (has(Who::Drive), "-", drive),
        (has(Who::Wrote), ">", "is this library"),
        (lines().any(|line| line.is_level), Mark::Level.on(screen), &level),
    ];
    let marks = marks.iter().filter(|(is_there, ..)| *is_there);
    let marks: Vec<String> = marks.map(|(_, mark, means)| format!("{mark} {means}")).collect();
    (!marks.is_empty()).then(|| marks.join("; ") + ".")
}
