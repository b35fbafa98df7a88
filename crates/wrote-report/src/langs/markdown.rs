//! A comparison of languages to paste in an issue.

use super::figures::{RATES, SAVES, of_path};
use super::{
    Chart, Line, MISSING, NOT_BUILT, Who, facts, is_of_several, legend, missing, not_built,
    place_titles,
};
use crate::markdown::inline;
use std::io::{self, Write};
use wrote_result::langs::Document;

/// Markdown with the tables of GitHub Flavored Markdown.
pub fn write(document: &Document, out: &mut dyn Write) -> io::Result<()> {
    let paths: Vec<&str> = document.places.iter().map(|place| &*place.target.path).collect();
    writeln!(out, "## {}\n", inline(&format!("wrote langs {}", paths.join(" "))))?;
    for (name, facts) in facts(document) {
        writeln!(out, "- **{}**: {}", inline(&name), inline(&facts.join(", ")))?;
    }
    let titles = is_of_several(document).then(|| place_titles(document));
    for chart in Chart::all_of(document) {
        writeln!(out, "\n### {}: {}\n", inline(chart.name), inline(&chart.summary))?;
        match &titles {
            None => write_figures(&chart, out)?,
            Some(titles) => write_paths(&chart, titles, out)?,
        }
        if !chart.notes.is_empty() || !chart.failures.is_empty() {
            writeln!(out)?;
        }
        chart.notes.iter().try_for_each(|note| writeln!(out, "- {}", inline(note)))?;
        let mut failures = chart.failures.iter();
        failures.try_for_each(|failure| writeln!(out, "- **failed**: {}", inline(failure)))?;
    }
    list(NOT_BUILT, &not_built(document), out)?;
    list(MISSING, &missing(document), out)?;
    writeln!(out, "\n{}", inline(&legend(document)))
}

/// The table of one path: every figure.
fn write_figures(chart: &Chart, out: &mut dyn Write) -> io::Result<()> {
    let figures = if chart.is_of_saves { &SAVES[..] } else { &RATES[..] };
    let cells = |line: &Line| -> Vec<String> {
        let cell = line.first();
        figures.iter().map(|(_, text)| cell.map(text).unwrap_or_default()).collect()
    };
    let titles: Vec<&str> = figures.iter().map(|(title, _)| *title).collect();
    write_table(chart, &titles, cells, out)
}

/// The table of several: a column for each.
fn write_paths(chart: &Chart, titles: &[String], out: &mut dyn Write) -> io::Result<()> {
    let titles: Vec<String> = titles.iter().map(|title| inline(title)).collect();
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let cells = |line: &Line| -> Vec<String> {
        let text = |cell| of_path(cell, chart.is_of_saves);
        line.cells.iter().map(|cell| cell.map(text).unwrap_or_default()).collect()
    };
    write_table(chart, &titles, cells, out)
}

fn write_table(
    chart: &Chart,
    titles: &[&str],
    cells: impl Fn(&Line) -> Vec<String>,
    out: &mut dyn Write,
) -> io::Result<()> {
    if chart.lines.is_empty() {
        return writeln!(out, "No language did it.");
    }
    let (how, how_rule) = if chart.is_of_saves { ("", "") } else { (" how |", " --- |") };
    writeln!(out, "| language |{how} {} |", titles.join(" | "))?;
    writeln!(out, "| --- |{how_rule} {} |", vec!["---:"; titles.len()].join(" | "))?;
    for line in &chart.lines {
        let name = match line.who {
            Who::Language => inline(&line.name),
            Who::Wrote | Who::Drive => format!("**{}**", inline(&line.name)),
        };
        let how =
            if chart.is_of_saves { String::new() } else { format!(" {} |", inline(&line.how)) };
        writeln!(out, "| {name} |{how} {} |", cells(line).join(" | "))?;
    }
    Ok(())
}

fn list(title: &str, lines: &[String], out: &mut dyn Write) -> io::Result<()> {
    if !lines.is_empty() {
        writeln!(out, "\n### {title}\n")?;
    }
    lines.iter().try_for_each(|line| writeln!(out, "- {}", inline(line)))
}
