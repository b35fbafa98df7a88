//! A workload whose rows are cells of a grid: block sizes down, ways across, the best marked.

use super::rows::level_legend;
use super::{FELL_BACK_LEGEND, GAP, padded};
use crate::figures::{cpu_s_per_gb, fell_back, p99, peak_memory, plus_minus, text, throughput};
use crate::group::Group;
use crate::page::Page;
use crate::paint::{Mark, Tone, ascii};
use crate::text::plain;
use itertools::Itertools;
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;
use wrote_result::document::{Cell, Row, View, fastest};

/// A workload's cells in their places.
pub struct Grid<'a> {
    group: &'a Group<'a>,
    title: &'static str,
    /// `512 KiB x 64`, in the order of the rows.
    sides: Vec<&'a str>,
    /// `plain`, `registered`, in the order of the rows.
    heads: Vec<&'a str>,
    cells: Vec<(Cell<'a>, &'a Row)>,
    best: &'a Row,
}

impl<'a> Grid<'a> {
    /// The grid of a group; `None` where its rows are no cells of one. At a rate all cells have the
    /// same throughput, and their latencies need a table.
    pub fn of(group: &'a Group<'a>) -> Option<Grid<'a>> {
        if group.rows.iter().any(|row| row.is_open_loop()) {
            return None;
        }
        let cell = |row: &&'a Row| Some((Cell::of(row)?, *row));
        let cells: Vec<(Cell, &Row)> = group.rows.iter().map(cell).collect::<Option<_>>()?;
        let unique = |part: fn(&Cell<'a>) -> &'a str| {
            cells.iter().map(|(cell, _)| part(cell)).unique().collect()
        };
        let (sides, heads) = (unique(|cell| cell.side), unique(|cell| cell.head));
        let best = fastest(group.rows.iter().copied())?;
        Some(Grid { group, title: cells[0].0.title, sides, heads, cells, best })
    }

    /// Writes the grid, the meaning of its marks, and the best cell in full.
    pub fn write(&self, page: Page, out: &mut dyn Write) -> io::Result<()> {
        let sides = self.sides.iter().map(|side| side.width());
        let side_width = sides.max().unwrap_or(0).max(self.title.width());
        let line_of = |side: &&str| -> Vec<String> {
            self.heads.iter().map(|head| self.text(side, head, page)).collect()
        };
        let lines: Vec<Vec<String>> = self.sides.iter().map(line_of).collect();
        let width = |column: usize| {
            let cells = lines.iter().map(|line| line[column].width());
            cells.max().unwrap_or(0).max(self.heads[column].width() + 2)
        };
        let line = |first: &str, cells: &[String]| {
            let mut line = padded(first, side_width);
            for (column, cell) in cells.iter().enumerate() {
                line = line + GAP + &" ".repeat(width(column) - cell.width()) + cell;
            }
            line.trim_end().to_owned()
        };
        // The mark takes two columns.
        let heads: Vec<String> = self.heads.iter().map(|head| plain(head) + "  ").collect();
        writeln!(out, "{}", page.paint(Tone::Faint, &line(self.title, &heads)))?;
        for (side, cells) in self.sides.iter().zip(&lines) {
            writeln!(out, "{}", line(&plain(side), cells))?;
        }
        self.write_foot(page, out)
    }

    fn text(&self, side: &str, head: &str, page: Page) -> String {
        let is_here = |(cell, _): &&(Cell, &Row)| cell.side == side && cell.head == head;
        let Some((_, row)) = self.cells.iter().find(is_here) else { return "  ".into() };
        let mark = match *row {
            row if std::ptr::eq(row, self.best) => Mark::Best,
            row if row.is_tied_with(self.best) => Mark::Level,
            _ => Mark::None,
        };
        let fell_back = if fell_back(row) { "* " } else { "" };
        format!("{fell_back}{} {}", throughput(row), mark.on(page.screen))
    }

    fn write_foot(&self, page: Page, out: &mut dyn Write) -> io::Result<()> {
        let best = self.best;
        let labelled = |label: &str, figure: String| match figure.is_empty() {
            true => figure,
            false => format!("{label}{figure}"),
        };
        let is_of_files = self.group.view() == View::Files;
        let memory = if is_of_files { peak_memory(best) } else { String::new() };
        let facts = [
            throughput(best),
            ascii(&plus_minus(best), page.screen),
            labelled("P99 ", p99(best.latency())),
            format!("{} CPU s/GB", cpu_s_per_gb(best)),
            text(best.survives),
            labelled("memory ", memory),
        ];
        let facts = facts.iter().filter(|fact| !fact.is_empty()).join(", ");
        let line = format!("the best: {}: {facts}", best.way);
        let mark = Mark::Best.on(page.screen);
        writeln!(out, "{mark} {}", page.paint(Tone::Strong, &page.wide(&line, 2)))?;
        let mut others = self.group.rows.iter().filter(|row| !std::ptr::eq(**row, best));
        if others.any(|row| row.is_tied_with(best)) {
            writeln!(out, "{}", level_legend(page))?;
        }
        if self.group.rows.iter().any(|row| fell_back(row)) {
            writeln!(out, "{FELL_BACK_LEGEND}")?;
        }
        Ok(())
    }
}
