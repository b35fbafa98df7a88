//! A comparison of languages for a person: a table for each workload, the fastest first, with the
//! drive and `wrote` among the languages.

use super::rows::{self, Rows};
use super::{
    Chart, MISSING, NOT_BUILT, facts, is_of_several, legend, missing, not_built, place_titles,
};
use crate::Screen;
use crate::page::{Page, made};
use crate::paint::{Tone, ascii};
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
    let marks = rows::legend(&charts, screen);
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
    Rows::of(chart, titles, page.screen).write(page, out)?;
    for note in &chart.notes {
        writeln!(out, "{}", page.prose(note, 2))?;
    }
    for failure in &chart.failures {
        writeln!(out, "{} {}", page.paint(Tone::Red, "!"), page.prose(failure, 2))?;
    }
    Ok(())
}
