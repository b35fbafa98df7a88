//! A workload whose rows are the cells of a grid: block sizes from top to bottom, methods from left
//! to right, and the best cell marked.

use crate::figures::{
    cpu_s_per_gb, fell_back, operations_per_s, p99, peak_memory, range, text, throughput,
};
use crate::group::Group;
use crate::paint::{Mark, Tone};
use crate::table::{Column, Keep, Table, Text};
use crate::tree::{Note, On};
use itertools::Itertools;
use wrote_result::document::{Cell, Row, Torn, View, fastest};

/// The last lines of a grid of pages.
const SURVIVES: &str = "SURVIVES";
const TORN: &str = "TORN";

/// The cells of a workload, in their positions.
pub struct Grid<'a> {
    group: &'a Group<'a>,
    pub title: &'a str,
    /// The titles of the lines, such as `512 KiB x 64`, in the order of the rows.
    pub sides: Vec<&'a str>,
    /// The titles of the columns, such as `plain` and `registered`, in the order of the rows.
    pub heads: Vec<&'a str>,
    pub cells: Vec<(&'a Cell, &'a Row)>,
    pub best: &'a Row,
    /// Whether the rows are pages of a database. The best cell of each line is then the fastest one
    /// that is never torn.
    pub is_of_pages: bool,
}

impl<'a> Grid<'a> {
    /// Returns the grid of a group; `None` if its rows form no grid. At a rate, all cells have the
    /// same throughput, and their latencies need a table.
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
        let is_of_pages = group.rows.iter().any(|row| row.torn.is_some());
        Some(Grid { group, title: &cells[0].0.title, sides, heads, cells, best, is_of_pages })
    }

    /// Returns the best row of the grid; for pages, the best row of this line, because each line is
    /// different work, or `None` if every row of the line may be torn.
    pub fn best_of(&self, side: &str) -> Option<&'a Row> {
        if !self.is_of_pages {
            return Some(self.best);
        }
        let line = self.cells.iter().filter(|(cell, _)| cell.side == side).map(|(_, row)| *row);
        fastest(line.filter(|row| row.torn == Some(Torn::Never)))
    }

    /// Returns the table of the cells.
    pub fn table(&self) -> Table {
        let words = [SURVIVES, TORN].into_iter().filter(|_| self.is_of_pages);
        let lines: Vec<&str> = self.sides.iter().copied().chain(words).collect();
        let sides = Column::words(self.title, Keep::Always, &lines, |side| *side);
        let column = |head: &&str| {
            // The mark occupies two columns of the screen.
            let heading = format!("{head}  ");
            Column::figures(heading, Keep::Always, &lines, |side| self.text(side, head))
        };
        let columns = [sides].into_iter().chain(self.heads.iter().map(column)).collect();
        Table { columns, on: On::Screen, ..Table::default() }
    }

    fn text(&self, side: &str, head: &str) -> Text {
        let is_of = |cell: &Cell| [SURVIVES, TORN, cell.side.as_str()].contains(&side);
        let is_here = |(cell, _): &&(&Cell, &Row)| is_of(cell) && cell.head == head;
        let Some((_, row)) = self.cells.iter().find(is_here) else {
            return Text { mark: Some(Mark::None), ..Text::default() };
        };
        match side {
            // These words are wider than a figure, and occupy the columns of the mark, too.
            SURVIVES => return text(row.survives).into(),
            TORN => return Text { mark: Some(Mark::None), ..text(row.torn).into() },
            _ => {}
        }
        let mark = match self.best_of(side) {
            Some(best) if std::ptr::eq(*row, best) => Mark::Best,
            Some(best) if self.is_level(row, best) => Mark::Level,
            _ => Mark::None,
        };
        let before = if fell_back(row) { "* " } else { "" };
        Text { before, mark: Some(mark), ..self.figure(row).into() }
    }

    /// Returns the figure that decides which row is best.
    pub fn figure(&self, row: &Row) -> String {
        if self.is_of_pages { operations_per_s(row) } else { throughput(row) }
    }

    /// Returns whether a row is as good as the best row.
    fn is_level(&self, row: &Row, best: &Row) -> bool {
        row.is_tied_with(best) && row.torn == best.torn
    }

    /// Returns a full description of the best cell, and explanations of the marks.
    pub fn notes(&self) -> Vec<Note> {
        let best = self.best;
        if self.is_of_pages {
            let line = "the fastest of its line that is never torn";
            let is_level = |row: &Row| {
                let of_line = row.cell.as_ref().and_then(|cell| self.best_of(&cell.side));
                of_line.is_some_and(|best| row.name != best.name && self.is_level(row, best))
            };
            let marks = self.group.marks(best, is_level);
            return [Note::of_mark(Mark::Best, line)].into_iter().chain(marks).collect();
        }
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
