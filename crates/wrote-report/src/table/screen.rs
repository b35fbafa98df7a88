//! A table on a screen: as many columns as there is space for, and bars in the space that is left.

use super::{Column, Flex, GAP, Table, Text};
use crate::paint::{Mark, Tone, ascii};
use crate::table::Keep;
use crate::text::{Page, plain, wrapped};
use crate::{Format, Screen};
use std::io::{self, Write};
use textwrap::{Options, WordSplitter};
use unicode_width::UnicodeWidthStr;

/// The minimum and the maximum width of the bars, which take the space that is left.
const BAR_WIDTH_MIN: usize = 7;
const BAR_WIDTH_MAX: usize = 32;

/// A column as a screen shows it.
struct Fitted<'a> {
    of: &'a Column,
    heading: String,
    cells: Vec<String>,
    width: usize,
}

/// Writes the headings and the rows.
pub fn write(table: &Table, page: Page, out: &mut dyn Write) -> io::Result<()> {
    let width = page.screen.width;
    let fitted = |short| -> Vec<Fitted> {
        table.shown(Format::Table).map(|column| Fitted::of(column, short, page)).collect()
    };
    let mut columns = fitted(false);
    if needed(&columns) > width {
        columns = fitted(true);
    }
    let is_reserved = table.bars.as_ref().is_some_and(|bars| bars.is_reserved);
    let reserved = if is_reserved { GAP.len() + BAR_WIDTH_MIN } else { 0 };
    let below = if needed(&columns) > width { split_off_below(&mut columns) } else { None };
    fit(&mut columns, width, reserved);
    let left = width.saturating_sub(taken(&columns));
    let bar_width = left.saturating_sub(GAP.len()).min(BAR_WIDTH_MAX);
    let bars = table.bars.as_ref().filter(|_| bar_width >= BAR_WIDTH_MIN);
    let heading = |column: &Fitted| column.aligned(&column.heading, Tone::Plain, page);
    let mut headings: Vec<String> = columns.iter().map(heading).collect();
    headings.extend(bars.map(|bars| bars.heading.to_owned()));
    writeln!(out, "{}", page.paint(Tone::Faint, headings.join(GAP).trim_end()))?;
    for row in 0..table.height() {
        let bar = bars.map(|bars| bar(bars.parts[row], bar_width, page.screen.unicode));
        write_row(&columns, row, bar, page, out)?;
        if let Some(below) = &below {
            writeln!(out, "{GAP}{}", page.wide(&below.cells[row], GAP.len()))?;
        }
    }
    Ok(())
}

/// The width below which the last column of a list is broken into lines.
const LAST_WIDTH_MIN: usize = 30;

/// Writes a list of texts under their headings. On a narrow screen, the last column is broken into
/// lines.
///
/// # Errors
/// The errors of `out`.
/// The errors of `out`.
pub fn write_list<const COLUMNS: usize>(
    headings: [&str; COLUMNS],
    rows: &[[&str; COLUMNS]],
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let column = |index: usize| {
        let column = Column::words(headings[index], Keep::Always, rows, |row| row[index]);
        if index + 1 == COLUMNS { column.flexible(1, LAST_WIDTH_MIN) } else { column }
    };
    let table = Table::of("", (0..COLUMNS).map(column).collect());
    write(&table, Page { screen }, out).map(drop)
}

fn write_row(
    columns: &[Fitted],
    row: usize,
    bar: Option<String>,
    page: Page,
    out: &mut dyn Write,
) -> io::Result<()> {
    let lines = |(number, column): (usize, &Fitted)| column.lines(row, number + 1 == columns.len());
    let cells: Vec<Vec<String>> = columns.iter().enumerate().map(lines).collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0);
    for number in 0..height {
        let piece = |(column, lines): (&Fitted, &Vec<String>)| {
            let tone = column.of.cells[row].tone;
            column.aligned(lines.get(number).map_or("", String::as_str), tone, page)
        };
        let mut line: Vec<String> = columns.iter().zip(&cells).map(piece).collect();
        line.extend(bar.clone().filter(|_| number == 0));
        writeln!(out, "{}", line.join(GAP).trim_end())?;
    }
    Ok(())
}

/// Removes and returns the column that may be shown below the rows, if there is one.
fn split_off_below<'a>(columns: &mut Vec<Fitted<'a>>) -> Option<Fitted<'a>> {
    let place = columns.iter().position(|column| column.of.keep == Keep::Below)?;
    Some(columns.remove(place))
}

/// Drops columns, the least important first, until the others fit, and sets the width of the
/// flexible column. Columns with a number leave `reserved` columns of the screen to the bars;
/// columns that are dropped last may use that space, too.
fn fit(columns: &mut Vec<Fitted>, width: usize, reserved: usize) {
    let beside_bars = width.saturating_sub(reserved);
    while let Some(last) = (0..columns.len()).max_by_key(|index| columns[*index].of.keep) {
        let is_wide = match columns[last].of.keep {
            Keep::Always | Keep::Below => break,
            Keep::Last => narrowed(columns, |flex| flex.least) > width,
            Keep::If(_) => needed(columns) > beside_bars,
        };
        if !is_wide {
            break;
        }
        columns.remove(last);
    }
    if let Some(flexible) = columns.iter().position(|column| column.of.flex.is_some()) {
        let others = taken(columns) - columns[flexible].width;
        let column = &mut columns[flexible];
        let least = column.of.flex.map_or(0, |of| of.least).min(column.width);
        column.width = beside_bars.saturating_sub(others).clamp(least, column.width);
    }
}

/// Returns the width that the columns need, with the flexible column at its easy width.
fn needed(columns: &[Fitted]) -> usize {
    narrowed(columns, |flex| flex.easy)
}

/// Returns the width of the columns if the flexible column is only as wide as `width` says.
fn narrowed(columns: &[Fitted], width: fn(&Flex) -> usize) -> usize {
    let of_flexible = |column: &Fitted| column.of.flex.as_ref().map_or(usize::MAX, width);
    let spared = |column: &Fitted| column.width.saturating_sub(of_flexible(column));
    taken(columns) - columns.iter().map(spared).sum::<usize>()
}

/// Returns the width of the columns, including the gaps between them.
fn taken(columns: &[Fitted]) -> usize {
    let widths = columns.iter().map(|column| column.width).sum::<usize>();
    widths + columns.len().saturating_sub(1) * GAP.len()
}

impl<'a> Fitted<'a> {
    fn of(column: &'a Column, short: bool, page: Page) -> Fitted<'a> {
        let cell = |of: &Text| {
            let text = of.short.as_ref().filter(|_| short).unwrap_or(&of.text);
            let text = format!("{}{}", of.before, ascii(&plain(text), page.screen));
            match of.mark {
                Some(Mark::None) if !column.is_of_figures() => text,
                Some(mark) if text.is_empty() => mark.on(page.screen).into(),
                Some(mark) => format!("{text} {}", mark.on(page.screen)),
                None => text,
            }
        };
        let cells: Vec<String> = column.cells.iter().map(cell).collect();
        let heading = ascii(&plain(&column.heading), page.screen);
        let width = cells.iter().map(|cell| cell.width()).max().unwrap_or(0).max(heading.width());
        Fitted { of: column, heading, cells, width }
    }

    /// Returns a text padded to the width of the column.
    fn aligned(&self, text: &str, tone: Tone, page: Page) -> String {
        let pad = " ".repeat(self.width.saturating_sub(text.width()));
        let text = if text.is_empty() { String::new() } else { page.paint(tone, text) };
        if self.of.is_of_figures() { pad + &text } else { text + &pad }
    }

    /// Returns the lines of a cell. In the last column, words are not broken, because a reader
    /// copies commands from it.
    fn lines(&self, row: usize, is_last: bool) -> Vec<String> {
        let text = &self.cells[row];
        if self.of.flex.is_none() {
            return vec![text.clone()];
        }
        let options = Options::new(self.width.max(1)).word_splitter(WordSplitter::HyphenSplitter);
        match is_last {
            true => wrapped(text, self.width, 0).lines().map(str::to_owned).collect(),
            false => textwrap::wrap(text, options).iter().map(|line| line.to_string()).collect(),
        }
    }
}

/// Returns a bar for a part of the full `width`, in eighths of a column if the screen can show
/// them. Any part above zero is visible.
fn bar(part: f64, width: usize, unicode: bool) -> String {
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
