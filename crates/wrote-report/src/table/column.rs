//! A column of a table: the texts of its cells, and how a screen and Markdown show them.

use crate::Format;
use crate::paint::{Mark, Tone};

/// A column of a table.
#[derive(Debug)]
pub struct Column {
    /// The title on a screen.
    pub heading: String,
    /// The title in other formats.
    pub title: String,
    /// The content of the column's cells.
    pub kind: Kind,
    /// The rank of the column on a narrow screen.
    pub keep: Keep,
    /// The widths within which the column is broken into lines on a screen, if it may be.
    pub flex: Option<Flex>,
    /// The only format that shows the column; `None` if all formats do.
    pub only: Option<Format>,
    /// Whether the column is shown even if it is empty.
    pub is_kept: bool,
    pub cells: Vec<Text>,
}

/// The text of a cell.
#[derive(Debug, Default)]
pub struct Text {
    pub text: String,
    /// The sign in front of the text on a screen.
    pub before: &'static str,
    /// The text for a screen without space for the whole text.
    pub short: Option<String>,
    /// The mark after the text on a screen.
    pub mark: Option<Mark>,
    /// The colour of the text on a screen.
    pub tone: Tone,
}

/// The widths of a column that is broken into lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flex {
    /// The minimum width of the column.
    pub least: usize,
    /// The width below which other columns are dropped before this column becomes narrower.
    pub easy: usize,
}

/// The content of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Words, which are aligned to the left.
    Words,
    /// Figures, which are aligned to the right.
    Figures,
}

/// The rank of a column on a narrow screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keep {
    /// Shown on every screen.
    Always,
    /// Shown on every screen, but below the row if the row's line has no space for it.
    Below,
    /// Dropped when no other column is left to drop.
    Last,
    /// Shown if there is space. The column with the highest number is dropped first.
    If(u8),
}

impl Column {
    /// Returns a column of figures, with a cell for each of `rows`.
    pub fn figures<'r, T: 'r, C: Into<Text>>(
        heading: impl Into<String>,
        keep: Keep,
        rows: impl IntoIterator<Item = &'r T>,
        cell: impl Fn(&'r T) -> C,
    ) -> Column {
        let heading = heading.into();
        Column {
            title: heading.clone(),
            heading,
            kind: Kind::Figures,
            keep,
            flex: None,
            only: None,
            is_kept: false,
            cells: rows.into_iter().map(|row| cell(row).into()).collect(),
        }
    }

    /// Returns a column of words, with a cell for each of `rows`.
    pub fn words<'r, T: 'r, C: Into<Text>>(
        heading: impl Into<String>,
        keep: Keep,
        rows: impl IntoIterator<Item = &'r T>,
        cell: impl Fn(&'r T) -> C,
    ) -> Column {
        Column { kind: Kind::Words, ..Column::figures(heading, keep, rows, cell) }
    }

    /// Gives the column a different title in Markdown and HTML.
    pub fn titled(self, title: impl Into<String>) -> Column {
        Column { title: title.into(), ..self }
    }

    /// Shows the column only in this format.
    pub fn only(self, format: Format) -> Column {
        Column { only: Some(format), ..self }
    }

    /// Allows the cells to be broken into lines on a narrow screen.
    pub fn flexible(self, least: usize, easy: usize) -> Column {
        Column { flex: Some(Flex { least, easy }), ..self }
    }

    /// Shows the column even if none of its cells has text.
    pub fn kept(self) -> Column {
        Column { is_kept: true, ..self }
    }

    /// Returns whether the cells are figures, which are aligned to the right.
    pub fn is_of_figures(&self) -> bool {
        self.kind == Kind::Figures
    }
}

impl Text {
    /// Returns whether the text or its mark is visible.
    pub fn is_any(&self) -> bool {
        !self.text.is_empty() || self.mark.is_some_and(|mark| mark != Mark::None)
    }
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Text {
        Text { text: text.into(), ..Text::default() }
    }
}
