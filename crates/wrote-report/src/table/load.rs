//! A workload at rising rates: its latency against the load, and the bend.

use super::{FELL_BACK_LEGEND, GAP, Texts, bar};
use crate::Format;
use crate::columns::{columns, shown};
use crate::figures::{fell_back, is_reached};
use crate::group::Group;
use crate::page::Page;
use crate::paint::{Mark, Tone};
use itertools::Itertools;
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;
use wrote_result::document::Row;

/// The bars take the room that is left, within these limits.
const BAR_WIDTH_MIN: usize = 6;
const BAR_WIDTH_MAX: usize = 32;
/// The part of the lowest latency's bar.
const PART_MIN: f64 = 0.04;

/// Writes a line for each rate, and the bend.
pub fn write(group: &Group, page: Page, out: &mut dyn Write) -> io::Result<()> {
    let mut columns = shown(columns(group), Format::Table, &group.rows);
    let load = std::mem::replace(&mut columns[0].cell, Box::new(|_| String::new()));
    columns[0].cell =
        Box::new(move |row| format!("{}{}", if fell_back(row) { "* " } else { "" }, load(row)));
    let screen = page.screen;
    let columns: Vec<Texts> =
        columns.iter().map(|column| Texts::of(column, &group.rows, screen)).collect();
    let line = |cell: &dyn Fn(&Texts) -> String| columns.iter().map(cell).join(GAP) + GAP;
    let headings = line(&Texts::heading);
    writeln!(out, "{}", page.paint(Tone::Faint, &format!("{headings}  P99, LOG")))?;
    // The mark takes two columns.
    let left = screen.width.saturating_sub(headings.width() + 2);
    let bar_width = left.clamp(BAR_WIDTH_MIN, BAR_WIDTH_MAX);
    for (index, row) in group.rows.iter().enumerate() {
        let is_knee = group.knee.is_some_and(|knee| knee.row == row.name);
        let (mark, tone) =
            if is_knee { (Mark::Best, Tone::Strong) } else { (Mark::None, Tone::Plain) };
        let bar = bar(part(group, row), bar_width, screen.unicode);
        let line = format!("{}{} {bar}", line(&|of| of.cell(index, page)), mark.on(screen));
        writeln!(out, "{}", page.paint(tone, line.trim_end()))?;
    }
    let knee = match group.knee {
        Some(_) => format!("{} {}", Mark::Best.on(screen), group.knee_line()),
        None => group.knee_line(),
    };
    writeln!(out, "{}", page.paint(Tone::Strong, &page.wide(&knee, 2)))?;
    if group.rows.iter().any(|row| !is_reached(row)) {
        let missed = Mark::Missed.on(screen);
        let legend = format!(
            "{missed} its rate was not reached: the queue, and with it latency, grows as long as \
             the run continues"
        );
        writeln!(out, "{}", page.wide(&legend, 2))?;
    }
    if group.rows.iter().any(|row| fell_back(row)) {
        writeln!(out, "{FELL_BACK_LEGEND}")?;
    }
    Ok(())
}

/// The P99 on a logarithmic scale between the minimum and the maximum of the curve.
fn part(group: &Group, row: &Row) -> f64 {
    let logarithm = |row: &Row| row.latency().map_or(0.0, |of| (of.p99.max(1) as f64).ln());
    let all = || group.rows.iter().map(|row| logarithm(row));
    let (least, most) = (all().fold(f64::MAX, f64::min), all().fold(0.0, f64::max));
    let part = if most > least { (logarithm(row) - least) / (most - least) } else { 0.0 };
    PART_MIN + (1.0 - PART_MIN) * part
}
