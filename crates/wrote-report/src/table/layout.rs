//! Columns and bars on a screen.

use crate::Screen;
use crate::columns::{Column, Keep, Kind};
use crate::page::Page;
use crate::paint::{Tone, ascii};
use crate::text::plain;
use textwrap::{Options, WordSplitter};
use unicode_width::UnicodeWidthStr;

/// The gap between two columns.
pub const GAP: &str = "  ";
/// The bar takes the room that is left, within these limits.
pub const BAR_WIDTH_MIN: usize = 7;
pub const BAR_WIDTH_MAX: usize = 32;

/// The texts of a column on one screen.
pub struct Texts {
    heading: String,
    kind: Kind,
    keep: Keep,
    cells: Vec<(String, Tone)>,
}

impl Texts {
    /// Returns the texts of a column's cells, with their marks.
    pub fn of<T>(column: &Column<T>, rows: &[&T], screen: Screen) -> Texts {
        let cell = |row: &&T| {
            let text = ascii(&plain(&(column.cell)(row)), screen);
            let text = match &column.mark {
                Some(mark) => format!("{text} {}", mark(row).on(screen)),
                None => text,
            };
            (text, (column.tone)(row))
        };
        Texts {
            heading: ascii(&plain(&column.heading), screen),
            kind: column.kind,
            keep: column.keep,
            cells: rows.iter().map(cell).collect(),
        }
    }

    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|(cell, _)| cell.width());
        cells.max().unwrap_or(0).max(self.heading.width())
    }

    fn aligned(&self, text: &str) -> String {
        match self.kind {
            Kind::Words => padded(text, self.width()),
            Kind::Figures => " ".repeat(self.width() - text.width()) + text,
        }
    }

    /// The heading, as wide as the column.
    pub fn heading(&self) -> String {
        self.aligned(&self.heading)
    }

    /// The cell of a row, as wide as the column.
    pub fn cell(&self, row: usize, page: Page) -> String {
        let (text, tone) = &self.cells[row];
        page.paint(*tone, &self.aligned(text))
    }
}

/// Drops columns, the least important first, until the rest takes at most `width`.
pub fn drop_columns(columns: &mut Vec<Texts>, width: usize) {
    while taken(columns) > width {
        let last = (0..columns.len()).max_by_key(|index| columns[*index].keep);
        match last.filter(|index| columns[*index].keep != Keep::Always) {
            Some(index) => drop(columns.remove(index)),
            None => break,
        }
    }
}

/// The width of the columns, with the gaps around each.
pub fn taken(columns: &[Texts]) -> usize {
    columns.iter().map(|column| column.width() + GAP.len()).sum::<usize>() + GAP.len()
}

/// Breaks text into lines of a width.
pub fn broken(text: &str, width: usize) -> Vec<String> {
    let options = Options::new(width.max(1)).word_splitter(WordSplitter::NoHyphenation);
    textwrap::wrap(text, options).iter().map(|line| line.to_string()).collect()
}

/// Text with spaces behind it, up to a width.
pub fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// A bar for a part of the whole `width`, in eighths of a column if the screen has them. Any part
/// above zero is visible.
pub fn bar(part: f64, width: usize, unicode: bool) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if part.is_nan() || part <= 0.0 || width == 0 {
        return String::new();
    }
    let columns = part.min(1.0) * width as f64;
    if unicode {
        let eighths = ((columns * 8.0).round() as usize).max(1);
        "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
    } else {
        "#".repeat((columns.round() as usize).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_long_as_its_part_to_an_eighth_of_a_column() {
        assert_eq!(bar(1.0, 4, true), "████");
        assert_eq!(bar(0.5, 4, true), "██");
        assert_eq!(bar(0.6, 4, true), "██▍");
        assert_eq!(bar(0.6, 4, false), "##");
    }

    #[test]
    fn a_bar_of_something_is_seen_and_one_of_nothing_is_not() {
        assert_eq!(bar(1e-9, 10, true), "▏");
        assert_eq!(bar(1e-9, 10, false), "#");
        for nothing in [0.0, f64::NAN, -1.0] {
            assert_eq!(bar(nothing, 10, true), "");
        }
    }
}
