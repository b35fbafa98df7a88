//! A workload whose rows are cells of a grid: block sizes down, ways across, the best marked.

use crate::figures::{cpu_s_per_gb, fell_back, p99, peak_memory, range, text, throughput};
use crate::group::Group;
use crate::paint::{Mark, Tone};
use crate::table::{Column, Keep, Table, Text};
use crate::tree::{Note, On};
use itertools::Itertools;
use wrote_result::document::{Cell, Row, View, fastest};

/// A workload's cells in their places.
pub struct Grid<'a> {
    group: &'a Group<'a>,
    pub title: &'a str,
    /// `512 KiB x 64`, in the order of the rows.
    pub sides: Vec<&'a str>,
    /// The names of the columns, such as `plain` and `registered`, in the order of the rows.
    pub heads: Vec<&'a str>,
    pub cells: Vec<(&'a Cell, &'a Row)>,
    pub best: &'a Row,
}

impl<'a> Grid<'a> {
    /// Returns the grid of a group; `None` where its rows do not form one. At a rate all cells have
    /// the same throughput, and their latencies need a table.
    pub fn of(group: &'a Group<'a>) -> Option<Grid<'a>> {
        if group.rows.iter().any(|row| row.is_open_loop()) {
            return None;
        }
        let cell = |row: &&'a Row| Some((row.cell.as_ref()?, *row));
        let cells: Vec<(&Cell, &Row)> = group.rows.iter().map(cell).collect::<Option<_>>()?;
        let unique = |part: fn(&'a Cell) -> &'a str| {
            cells.iter().map(|(cell, _)| part(cell)).unique().collect()
        };
        let (sides, heads) = (unique(|cell| &cell.side), unique(|cell| &cell.head));
        let best = fastest(group.rows.iter().copied())?;
        Some(Grid { group, title: &cells[0].0.title, sides, heads, cells, best })
    }

    /// Returns the table of the cells.
    pub fn table(&self) -> Table {
        let sides = Column::words(self.title, Keep::Always, &self.sides, |side| *side);
        let column = |head: &&str| {
            // The mark takes two columns.
            let heading = format!("{head}  ");
            Column::figures(heading, Keep::Always, &self.sides, |side| self.text(side, head))
        };
        let columns = [sides].into_iter().chain(self.heads.iter().map(column)).collect();
        Table { columns, on: On::Screen, ..Table::default() }
    }

    fn text(&self, side: &str, head: &str) -> Text {
        let is_here = |(cell, _): &&(&Cell, &Row)| cell.side == side && cell.head == head;
        let Some((_, row)) = self.cells.iter().find(is_here) else {
            return Text { mark: Some(Mark::None), ..Text::default() };
        };
        let mark = match *row {
            row if std::ptr::eq(row, self.best) => Mark::Best,
            row if row.is_tied_with(self.best) => Mark::Level,
            _ => Mark::None,
        };
        let before = if fell_back(row) { "* " } else { "" };
        Text { before, mark: Some(mark), ..throughput(row).into() }
    }

    /// Returns the best cell in full, and the meaning of the marks.
    pub fn notes(&self) -> Vec<Note> {
        let best = self.best;
        let labelled = |label: &str, figure: String| match figure.is_empty() {
            true => figure,
            false => format!("{label}{figure}"),
        };
        let is_of_files = self.group.view() == View::Files;
        let memory = if is_of_files { peak_memory(best) } else { String::new() };
        let facts = [
            throughput(best),
            range(best),
            labelled("P99 ", p99(best.latency())),
            format!("{} CPU s/GB", cpu_s_per_gb(best)),
            text(best.survives),
            labelled("memory ", memory),
        ];
        let facts = facts.iter().filter(|fact| !fact.is_empty()).join(", ");
        let line = format!("the best: {}: {facts}", best.way);
        let is_level = |row: &Row| row.is_tied_with(best);
        let best_of_all = Note { tone: Tone::Strong, ..Note::of_mark(Mark::Best, &line) };
        [best_of_all].into_iter().chain(self.group.marks(best, is_level)).collect()
    }
}
