//! Tables: the columns of every format, as text for the template.

use crate::Format;
use crate::columns::{Column, Kind, shown};
use std::ptr;

/// A table.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Its name for readers that do not see it.
    pub label: String,
    /// The titles of its columns, and whether their cells are figures.
    pub heads: Vec<(String, bool)>,
    /// The cells of each row. The first cell names the row.
    pub rows: Vec<Line>,
}

/// A row of a table.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Its class: `best` for the row that an answer names.
    pub class: &'static str,
    /// Its cells.
    pub cells: Vec<String>,
}

impl Table {
    /// Makes a table of columns that have any text. `best` is marked.
    pub fn of<'a, T: 'a>(
        label: &str,
        columns: Vec<Column<'a, T>>,
        rows: &[&T],
        best: Option<&T>,
    ) -> Table {
        let columns = shown(columns, Format::Markdown, rows);
        let head = |column: &Column<T>| (column.title.to_string(), column.kind == Kind::Figures);
        let line = |row: &&T| Line {
            class: if best.is_some_and(|best| ptr::eq(best, *row)) { "best" } else { "" },
            cells: columns.iter().map(|column| (column.cell)(row)).collect(),
        };
        Table {
            label: label.into(),
            heads: columns.iter().map(head).collect(),
            rows: rows.iter().map(line).collect(),
        }
    }
}
