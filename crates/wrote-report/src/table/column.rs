//! A column of a table of any rows.

use super::{Text, Texts};
use crate::Format;
use crate::paint::{Mark, Tone};
use std::borrow::Cow;

/// The text of a cell, its mark, or its colour.
type Cell<'a, T, V> = Box<dyn Fn(&T) -> V + 'a>;

/// A column of a table of `T`s.
pub struct Column<'a, T> {
    /// The title on a screen.
    pub heading: Cow<'a, str>,
    /// The title in Markdown.
    pub title: Cow<'a, str>,
    /// The content of its cells.
    pub kind: Kind,
    /// Its rank on a narrow screen.
    pub keep: Keep,
    /// How it is broken into lines on a screen, if it may be.
    pub flex: Option<Flex>,
    /// The only format that has the column, where not all have it.
    pub only: Option<Format>,
    /// Whether it is shown even if empty.
    is_kept: bool,
    cell: Cell<'a, T, String>,
    /// The sign in front of a cell on a screen.
    before: Option<Cell<'a, T, &'static str>>,
    /// The text of a cell on a screen without room for all of it.
    short: Option<Cell<'a, T, String>>,
    /// The mark after a cell on a screen.
    mark: Option<Cell<'a, T, Mark>>,
    /// The colour of a cell on a screen.
    tone: Cell<'a, T, Tone>,
}

/// The widths of a column broken into lines before others are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flex {
    /// It never becomes narrower.
    pub least: usize,
    /// Columns are dropped before it becomes narrower.
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
    /// Every screen has it.
    Always,
    /// Every screen has it: below the row where the row's line has no room for it.
    Below,
    /// It is dropped when no other column is left to drop.
    Last,
    /// Shown on a screen if there is room; the highest number is dropped first.
    If(u8),
}

impl<'a, T> Column<'a, T> {
    /// A column of figures.
    pub fn figures(
        heading: impl Into<Cow<'a, str>>,
        keep: Keep,
        cell: impl Fn(&T) -> String + 'a,
    ) -> Column<'a, T> {
        let heading = heading.into();
        Column {
            title: heading.clone(),
            heading,
            kind: Kind::Figures,
            keep,
            flex: None,
            only: None,
            is_kept: false,
            cell: Box::new(cell),
            before: None,
            short: None,
            mark: None,
            tone: Box::new(|_| Tone::Plain),
        }
    }

    /// A column of words.
    pub fn words(
        heading: impl Into<Cow<'a, str>>,
        keep: Keep,
        cell: impl Fn(&T) -> String + 'a,
    ) -> Column<'a, T> {
        Column { kind: Kind::Words, ..Column::figures(heading, keep, cell) }
    }

    /// Gives the column another title in Markdown.
    pub fn titled(self, title: impl Into<Cow<'a, str>>) -> Column<'a, T> {
        Column { title: title.into(), ..self }
    }

    pub fn only(self, format: Format) -> Column<'a, T> {
        Column { only: Some(format), ..self }
    }

    /// Marks the cells on a screen.
    pub fn marked(self, mark: impl Fn(&T) -> Mark + 'a) -> Column<'a, T> {
        Column { mark: Some(Box::new(mark)), ..self }
    }

    /// Puts a sign in front of the cells on a screen.
    pub fn before(self, before: impl Fn(&T) -> &'static str + 'a) -> Column<'a, T> {
        Column { before: Some(Box::new(before)), ..self }
    }

    /// Gives the cells shorter texts for a screen without room for the whole.
    pub fn short(self, short: impl Fn(&T) -> String + 'a) -> Column<'a, T> {
        Column { short: Some(Box::new(short)), ..self }
    }

    /// Colours the cells on a screen.
    pub fn toned(self, tone: impl Fn(&T) -> Tone + 'a) -> Column<'a, T> {
        Column { tone: Box::new(tone), ..self }
    }

    /// Breaks the cells into lines on a narrow screen.
    pub fn flexible(self, least: usize, easy: usize) -> Column<'a, T> {
        Column { flex: Some(Flex { least, easy }), ..self }
    }

    /// Shows the column even without any text in it.
    pub fn kept(self) -> Column<'a, T> {
        Column { is_kept: true, ..self }
    }

    /// Returns the texts of `rows`.
    pub fn texts(&self, rows: &[&T]) -> Texts {
        let text = |row: &&T| Text {
            text: (self.cell)(row),
            before: self.before.as_ref().map_or("", |before| before(row)),
            short: self.short.as_ref().map(|short| short(row)),
            mark: self.mark.as_ref().map(|mark| mark(row)),
            tone: (self.tone)(row),
        };
        Texts {
            heading: self.heading.to_string(),
            title: self.title.to_string(),
            kind: self.kind,
            keep: self.keep,
            flex: self.flex,
            only: self.only,
            is_kept: self.is_kept,
            cells: rows.iter().map(text).collect(),
        }
    }
}
