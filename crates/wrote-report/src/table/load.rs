//! A workload at rising rates: its latency against the load, with the place where it bends.

use super::columns::bar;
use crate::Screen;
use crate::figures::{
    fell_back, held_to, is_reached, knee_told, latency, load_percent, operations_per_s,
};
use crate::group::Group;
use crate::paint::{Paint, Tone};
use crate::text::Text;
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;
use wrote_result::document::{Knee, Row};

/// What stands between two columns.
const GAP: &str = "  ";
const TITLES: [&str; 6] = ["LOAD", "RATE", "ACHIEVED", "P50", "P99", "P99.9"];
/// The bars are as wide as is left, within these.
const BAR_WIDTH_MIN: usize = 6;
const BAR_WIDTH_MAX: usize = 32;
/// The lowest latency has a bar, too.
const PART_MIN: f64 = 0.04;
/// Stands at what did not come to its rate.
const MISSED_MARK: &str = "~";

/// A curve.
pub struct Load<'a> {
    group: &'a Group<'a>,
    knee: Option<&'a Knee>,
}

impl<'a> Load<'a> {
    /// The curve of a group; `None` where its rows are not at parts of one load.
    pub fn of(group: &'a Group<'a>, knee: Option<&'a Knee>) -> Option<Load<'a>> {
        group.is_of_load().then_some(Load { group, knee })
    }

    /// Writes a line for each rate, and where the latency bends.
    pub fn write(&self, paint: Paint, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
        let cells: Vec<Vec<String>> = self.group.rows.iter().map(|row| cells(row)).collect();
        let width = |column: usize| {
            let cells = cells.iter().map(|line| line[column].width());
            cells.max().unwrap_or(0).max(TITLES[column].width())
        };
        let widths: Vec<usize> = (0..TITLES.len()).map(width).collect();
        let titles: Vec<String> = TITLES.iter().map(|title| (*title).to_owned()).collect();
        let heads = line(&titles, &widths) + GAP + "  P99, LOG";
        writeln!(out, "{}", paint.paint(Tone::Faint, &heads))?;
        // Two columns for the mark.
        let taken = widths.iter().map(|width| width + GAP.len()).sum::<usize>() + 2;
        let bar_width = screen.width.saturating_sub(taken).clamp(BAR_WIDTH_MIN, BAR_WIDTH_MAX);
        for (row, cells) in self.group.rows.iter().zip(&cells) {
            let mark = if self.is_knee(row) { knee_mark(screen) } else { " " };
            let bar = bar(self.part(row), bar_width, screen.unicode);
            let told = format!("{}{GAP}{mark} {bar}", line(cells, &widths));
            let tone = if self.is_knee(row) { Tone::Strong } else { Tone::Plain };
            writeln!(out, "{}", paint.paint(tone, told.trim_end()))?;
        }
        self.foot(paint, screen, out)
    }

    fn foot(&self, paint: Paint, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
        let text = Text { width: screen.width };
        let told = knee_told(self.group, self.knee);
        let told = if self.knee.is_some() { format!("{} {told}", knee_mark(screen)) } else { told };
        writeln!(out, "{}", paint.paint(Tone::Strong, &text.wrapped(&told, 2)))?;
        if self.group.rows.iter().any(|row| !is_reached(row)) {
            let told = format!(
                "{MISSED_MARK} its rate was not reached: what waits grows as long as the run goes on, \
                 and its latencies with it"
            );
            writeln!(out, "{}", text.wrapped(&told, 2))?;
        }
        if self.group.rows.iter().any(|row| fell_back(row)) {
            writeln!(out, "* not as asked: see the findings")?;
        }
        Ok(())
    }

    fn is_knee(&self, row: &Row) -> bool {
        self.knee.is_some_and(|knee| knee.row == row.name)
    }

    /// The P99 on a logarithmic scale between the least and the greatest of the curve.
    fn part(&self, row: &Row) -> f64 {
        let logarithm = |row: &Row| row.latency_ns.map_or(0.0, |of| (of.p99.max(1) as f64).ln());
        let all = || self.group.rows.iter().map(|row| logarithm(row));
        let (least, most) = (all().fold(f64::MAX, f64::min), all().fold(0.0, f64::max));
        let part = if most > least { (logarithm(row) - least) / (most - least) } else { 0.0 };
        PART_MIN + (1.0 - PART_MIN) * part
    }
}

fn knee_mark(screen: Screen) -> &'static str {
    if screen.unicode { "◀" } else { "<" }
}

fn cells(row: &Row) -> Vec<String> {
    let fell = if fell_back(row) { "* " } else { "" };
    let missed = if is_reached(row) { " " } else { MISSED_MARK };
    vec![
        format!("{fell}{}", load_percent(row)),
        held_to(row),
        format!("{} {missed}", operations_per_s(row)),
        latency(row, |of| of.p50),
        latency(row, |of| of.p99),
        latency(row, |of| of.p99_9),
    ]
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let cells = cells.iter().zip(widths);
    let cells = cells.map(|(cell, width)| " ".repeat(width - cell.width()) + cell);
    cells.collect::<Vec<_>>().join(GAP)
}
