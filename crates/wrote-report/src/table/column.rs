//! A column of a table: the texts of its cells, and how a screen and Markdown show them.

use crate::Format;
use crate::paint::{Mark, Tone};

/// A column.
#[derive(Debug)]
pub struct Column {
    /// The title on a screen.
    pub heading: String,
    /// The title elsewhere.
    pub title: String,
    /// The content of its cells.
    pub kind: Kind,
    /// Its rank on a narrow screen.
    pub keep: Keep,
    /// How it is broken into lines on a screen, if it may be.
    pub flex: Option<Flex>,
    /// The only format that has the column, if not all formats have it.
    pub only: Option<Format>,
    /// Whether it is shown even if empty.
    pub is_kept: bool,
    pub cells: Vec<Text>,
}

/// The text of a cell.
#[derive(Debug, Default)]
pub struct Text {
    pub text: String,
    /// The sign in front of the cell on a screen.
    pub before: &'static str,
    /// The text for a screen without room for the whole.
    pub short: Option<String>,
    /// The mark after the cell on a screen.
    pub mark: Option<Mark>,
    /// Its colour on a screen.
    pub tone: Tone,
}

/// The widths of a column broken into lines before others are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flex {
    /// The smallest width of the column.
    pub least: usize,
    /// The width below which other columns are dropped before this one becomes narrower.
    pub easy: usize,
}

/// The content of a column's cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Words from outside, which begin at the left.
    Words,
    /// Figures, which end at the right.
    Figures,
}

/// The rank of a column on a narrow screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keep {
    /// Every screen has the column.
    Always,
    /// Every screen has it: below the row where the row's line has no room for it.
    Below,
    /// It is dropped when no other column is left to drop.
    Last,
    /// Shown on a screen if there is room; the highest number is dropped first.
    If(u8),
}

impl Column {
    /// Returns a column of figures, made of `rows`.
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

    /// Returns a column of words, made of `rows`.
    pub fn words<'r, T: 'r, C: Into<Text>>(
        heading: impl Into<String>,
        keep: Keep,
        rows: impl IntoIterator<Item = &'r T>,
        cell: impl Fn(&'r T) -> C,
    ) -> Column {
        Column { kind: Kind::Words, ..Column::figures(heading, keep, rows, cell) }
    }

    /// Gives the column another title in Markdown.
    pub fn titled(self, title: impl Into<String>) -> Column {
        Column { title: title.into(), ..self }
    }

    /// Shows the column in this format alone.
    pub fn only(self, format: Format) -> Column {
        Column { only: Some(format), ..self }
    }

    /// Breaks the cells into lines on a narrow screen.
    pub fn flexible(self, least: usize, easy: usize) -> Column {
        Column { flex: Some(Flex { least, easy }), ..self }
    }

    /// Shows the column even if none of its cells has text.
    pub fn kept(self) -> Column {
        Column { is_kept: true, ..self }
    }

    /// Returns whether its cells end at the right.
    pub fn is_of_figures(&self) -> bool {
        self.kind == Kind::Figures
    }
}

impl Text {
    /// Returns whether a reader sees anything of it.
    pub fn is_any(&self) -> bool {
        !self.text.is_empty() || self.mark.is_some_and(|mark| mark != Mark::None)
    }
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Text {
        Text { text: text.into(), ..Text::default() }
    }
}
