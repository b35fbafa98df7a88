//! A comparison for a person: a table for each workload, then differences, rows that were left out,
//! notes.

use super::{UNDECIDED_SHORT, blocks, differences, not_compared, other_latencies, side, warnings};
use crate::Screen;
use crate::page::Page;
use std::io::{self, Write};
use wrote_result::compare::Comparison;

pub fn write(comparison: &Comparison, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    let page = Page { screen };
    let (old, new) = (&comparison.old, &comparison.new);
    page.facts(&[("OLD", side(old)), ("NEW", side(new))], out)?;
    let mut short = false;
    for block in blocks(comparison) {
        page.heading(&block.title, "", out)?;
        short |= block.table().write(page, out)?;
    }
    if let Some(text) = other_latencies(comparison) {
        writeln!(out, "\n{}", page.prose(&text, 0))?;
    }
    page.list("What differs (OLD | NEW)", &differences(comparison), 2, out)?;
    page.list("Not compared", &not_compared(comparison), 2, out)?;
    page.list("Warnings", &warnings(comparison), 2, out)?;
    page.list("Notes", &comparison.notes, 2, out)?;
    writeln!(out, "\n{}", page.prose(&legend(short), 0))
}

fn legend(short: bool) -> String {
    let undecided = if short {
        format!("{UNDECIDED_SHORT}: no detectable difference. ")
    } else {
        String::new()
    };
    format!(
        "RATIO is NEW / OLD of the medians; 95 % is its bootstrap interval. {undecided}Verdicts \
         are corrected for multiple comparisons (Holm, at 5 %)."
    )
}
