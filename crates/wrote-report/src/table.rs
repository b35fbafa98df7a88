//! Tables: the texts of columns, which a screen, Markdown and HTML lay out.

mod column;
mod screen;

pub use column::{Column, Flex, Keep, Kind};
pub use screen::write_list;

use crate::Format;
use crate::paint::{Mark, Tone};
use std::ptr;

/// The gap between two columns on a screen.
pub const GAP: &str = "  ";

/// A table.
#[derive(Debug, Default)]
pub struct Table {
    /// Its name for screen readers.
    pub label: String,
    pub columns: Vec<Texts>,
    /// The formats that have it.
    pub on: On,
    /// The row that an answer names.
    pub best: Option<usize>,
    /// Bars after the rows of a screen.
    pub bars: Option<Bars>,
}

/// The texts of a column.
#[derive(Debug)]
pub struct Texts {
    /// The title on a screen.
    pub heading: String,
    /// The title elsewhere.
    pub title: String,
    pub kind: Kind,
    pub keep: Keep,
    pub flex: Option<Flex>,
    pub only: Option<Format>,
    /// Whether it is shown even if empty.
    pub is_kept: bool,
    pub cells: Vec<Text>,
}

/// The text of a cell.
#[derive(Debug, Default)]
pub struct Text {
    pub text: String,
    /// The sign in front of it on a screen.
    pub before: &'static str,
    /// The text for a screen without room for the whole.
    pub short: Option<String>,
    /// The mark after it on a screen.
    pub mark: Option<Mark>,
    pub tone: Tone,
}

/// Bars after the rows of a table.
#[derive(Debug)]
pub struct Bars {
    pub heading: &'static str,
    /// The part of the whole width for each row.
    pub parts: Vec<f64>,
    /// Whether columns are dropped to make room for them.
    pub is_reserved: bool,
}

/// A row for HTML: its class, and its cells; each is marked as a figure or text.
pub type Line = (&'static str, Vec<(String, bool)>);

/// The formats that show a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum On {
    #[default]
    All,
    /// A screen only, for example to explain its marks.
    Screen,
    /// A screen where tables took short texts.
    ShortScreen,
    /// Markdown and HTML.
    Pages,
}

impl On {
    /// Whether Markdown and HTML have it.
    pub fn is_of_pages(self) -> bool {
        matches!(self, On::All | On::Pages)
    }

    /// Whether a screen has it, which did or did not take short texts.
    pub fn is_of_screen(self, is_short: bool) -> bool {
        match self {
            On::All | On::Screen => true,
            On::ShortScreen => is_short,
            On::Pages => false,
        }
    }
}

impl Table {
    /// Makes a table of `columns`.
    pub fn of<'a, T: 'a>(label: &str, columns: &[Column<'a, T>], rows: &[&T]) -> Table {
        let columns = columns.iter().map(|column| column.texts(rows)).collect();
        Table { label: label.into(), columns, ..Table::default() }
    }

    /// Names the best of its `rows`.
    pub fn with_best<T>(self, rows: &[&T], best: Option<&T>) -> Table {
        let best = best.and_then(|best| rows.iter().position(|row| ptr::eq(*row, best)));
        Table { best, ..self }
    }

    /// Gives the rows bars on a screen.
    pub fn with_bars(self, bars: Option<Bars>) -> Table {
        Table { bars, ..self }
    }

    /// The columns of a format that have any text. A single run has no interval; a read survives
    /// nothing.
    pub fn shown(&self, format: Format) -> impl Iterator<Item = &Texts> {
        let has = move |column: &&Texts| {
            column.only.is_none_or(|only| only == format)
                && (column.is_kept || column.cells.iter().any(Text::is_any))
        };
        self.columns.iter().filter(has)
    }

    /// The number of rows.
    pub fn height(&self) -> usize {
        self.columns.first().map_or(0, |column| column.cells.len())
    }

    /// The titles for HTML, each with whether its cells are figures.
    pub fn heads(&self) -> Vec<(String, bool)> {
        let columns = self.shown(Format::Markdown);
        columns.map(|column| (column.title.clone(), column.is_of_figures())).collect()
    }

    /// The rows for HTML.
    pub fn lines(&self) -> Vec<Line> {
        let columns: Vec<&Texts> = self.shown(Format::Markdown).collect();
        let line = |row| {
            let class = if self.best == Some(row) { "best" } else { "" };
            let cell = |of: &&Texts| (of.cells[row].text.clone(), of.is_of_figures());
            (class, columns.iter().map(cell).collect())
        };
        (0..self.height()).map(line).collect()
    }
}

impl Texts {
    /// A column that every format has, without cells.
    pub fn new(heading: &str, kind: Kind) -> Texts {
        Texts {
            heading: heading.into(),
            title: heading.into(),
            kind,
            keep: Keep::Always,
            flex: None,
            only: None,
            is_kept: false,
            cells: Vec::new(),
        }
    }

    /// Whether its cells end at the right.
    pub fn is_of_figures(&self) -> bool {
        self.kind == Kind::Figures
    }
}

impl Text {
    fn is_any(&self) -> bool {
        !self.text.is_empty() || self.mark.is_some_and(|mark| mark != Mark::None)
    }
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Text {
        Text { text: text.into(), ..Text::default() }
    }
}
