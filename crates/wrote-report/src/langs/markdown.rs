//! A comparison of languages to paste in an issue.

use super::{
    Chart, MISSING, NOT_BUILT, facts, is_of_several, legend, missing, not_built, place_titles,
    table_of,
};
use crate::markdown::{inline, write_head, write_list, write_table};
use std::io::{self, Write};
use wrote_result::langs::Document;

pub fn write(document: &Document, out: &mut dyn Write) -> io::Result<()> {
    let paths: Vec<&str> = document.places.iter().map(|place| &*place.target.path).collect();
    write_head(&format!("wrote langs {}", paths.join(" ")), &facts(document), out)?;
    let titles = is_of_several(document).then(|| place_titles(document));
    for chart in Chart::all_of(document) {
        writeln!(out, "\n### {}: {}\n", inline(chart.name), inline(&chart.summary))?;
        write_chart(&chart, titles.as_deref(), out)?;
        if !chart.notes.is_empty() || !chart.failures.is_empty() {
            writeln!(out)?;
        }
        chart.notes.iter().try_for_each(|note| writeln!(out, "- {}", inline(note)))?;
        let mut failures = chart.failures.iter();
        failures.try_for_each(|failure| writeln!(out, "- **failed**: {}", inline(failure)))?;
    }
    write_list(NOT_BUILT, &not_built(document), out)?;
    write_list(MISSING, &missing(document), out)?;
    writeln!(out, "\n{}", inline(&legend(document)))
}

fn write_chart(chart: &Chart, titles: Option<&[String]>, out: &mut dyn Write) -> io::Result<()> {
    if chart.lines.is_empty() {
        return writeln!(out, "No language did it.");
    }
    write_table(&table_of(chart, titles), out)
}
