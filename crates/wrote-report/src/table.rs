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
    /// Its name for screen readers.
    pub label: String,
    pub columns: Vec<Column>,
    /// The formats that have the table.
    pub on: On,
    /// The row that an answer names.
    pub best: Option<usize>,
    /// Bars after the rows of a screen.
    pub bars: Option<Bars>,
}

/// Bars after the rows of a table.
#[derive(Debug)]
pub struct Bars {
    pub heading: &'static str,
    /// The part of the whole width for each row.
    pub parts: Vec<f64>,
    /// Whether columns are dropped to make room for the bars.
    pub is_reserved: bool,
}

/// A row for HTML: its class, and its cells: the column's title, the text, and whether it is a
/// figure.
pub type Line<'a> = (&'static str, Vec<(&'a str, &'a str, bool)>);

/// The formats that show a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum On {
    #[default]
    All,
    /// A screen only, for example to explain its marks.
    Screen,
    /// Markdown and HTML.
    Pages,
}

impl Table {
    /// Makes a table of `columns`.
    pub fn of(label: &str, columns: Vec<Column>) -> Table {
        Table { label: label.into(), columns, ..Table::default() }
    }

    /// Returns the columns of a format that have any text. A single run has no interval; a read
    /// survives nothing.
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

    /// Returns the titles for HTML, each with whether its cells are figures.
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
