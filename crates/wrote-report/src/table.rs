//! Tables: the texts of columns, which a screen, Markdown and HTML lay out.

mod column;
mod screen;

pub use column::{Column, Flex, Keep, Text};
pub use screen::{write, write_list};

use crate::Format;

/// The gap between two columns on a screen.
pub const GAP: &str = "  ";

/// A table.
#[derive(Debug, Default)]
pub struct Table {
    /// The name of the table for screen readers.
    pub label: String,
    pub columns: Vec<Column>,
    /// The formats that show the table.
    pub on: On,
    /// The index of the row that an answer names.
    pub best: Option<usize>,
    /// The bars after the rows on a screen.
    pub bars: Option<Bars>,
}

/// The bars after the rows of a table.
#[derive(Debug)]
pub struct Bars {
    pub heading: &'static str,
    /// The length of each row's bar, as a part of the full width.
    pub parts: Vec<f64>,
    /// Whether columns are dropped to make space for the bars.
    pub is_reserved: bool,
}

/// A row for HTML: its class, and its cells. Each cell consists of the title of its column, its
/// text, and whether it is a figure.
pub type Line<'a> = (&'static str, Vec<(&'a str, &'a str, bool)>);

/// The formats that show a part of a report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum On {
    #[default]
    All,
    /// Only a screen, for example to explain its marks.
    Screen,
    /// Markdown and HTML.
    Pages,
}

impl Table {
    /// Returns a table of `columns`.
    pub fn of(label: &str, columns: Vec<Column>) -> Table {
        Table { label: label.into(), columns, ..Table::default() }
    }

    /// Returns the columns that `format` shows. Columns without any text are left out unless they
    /// are kept: a single run, for example, has no interval, and a read survives nothing.
    pub fn shown(&self, format: Format) -> impl Iterator<Item = &Column> {
        let has = move |column: &&Column| {
            column.only.is_none_or(|only| only == format)
                && (column.is_kept || column.cells.iter().any(Text::is_any))
        };
        self.columns.iter().filter(has)
    }

    /// Returns the number of rows.
    pub fn height(&self) -> usize {
        self.columns.first().map_or(0, |column| column.cells.len())
    }

    /// Returns the titles for HTML, each with a flag that tells whether its cells are figures.
    pub fn heads(&self) -> Vec<(&str, bool)> {
        let columns = self.shown(Format::Markdown);
        columns.map(|column| (&*column.title, column.is_of_figures())).collect()
    }

    /// Returns the rows for HTML.
    pub fn lines(&self) -> Vec<Line<'_>> {
        let columns: Vec<&Column> = self.shown(Format::Markdown).collect();
        let line = |row| {
            let class = if self.best == Some(row) { "best" } else { "" };
            let cells = columns
                .iter()
                .map(|of| (of.title.as_str(), of.cells[row].text.as_str(), of.is_of_figures()));
            (class, cells.collect())
        };
        (0..self.height()).map(line).collect()
    }
}
