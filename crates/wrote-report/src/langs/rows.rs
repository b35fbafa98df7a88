//! The lines of one workload, laid out for a screen.

use super::figures::{figures, names, paths};
use super::{Chart, Line, Who};
use crate::columns::{Column, shown};
use crate::page::Page;
use crate::paint::{Mark, Tone};
use crate::table::{
    BAR_WIDTH_MAX, BAR_WIDTH_MIN, GAP, Texts, bar, broken, drop_columns, padded, taken,
};
use crate::text::plain;
use crate::{Format, Screen};
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;

/// HOW is broken into lines before a figure is dropped, but never into narrower lines than this,
/// nor, up to the second width, within its words.
const HOW_WIDTH_MIN: usize = 16;
const HOW_WORD_WIDTH_MAX: usize = 26;
const WROTE_MARK: &str = ">";
const DRIVE_MARK: &str = "-";

/// A workload's table.
pub struct Rows<'a> {
    chart: &'a Chart<'a>,
    names: Column<'a, Line<'a>>,
    name_width: usize,
    /// In lines; empty where the screen has no such column.
    hows: Vec<Vec<String>>,
    how_width: usize,
    columns: Vec<Texts>,
    bar_width: usize,
}

impl<'a> Rows<'a> {
    /// Chooses the columns that `screen` has room for. Several paths have `titles`.
    pub fn of(chart: &'a Chart<'a>, titles: Option<&'a [String]>, screen: Screen) -> Rows<'a> {
        let lines: Vec<&Line> = chart.lines.iter().collect();
        let mut names = names(chart);
        let how = (names.len() > 1).then(|| names.remove(1));
        let names = names.remove(0);
        let widths = lines.iter().map(|line| line.name.width());
        // The mark takes two columns.
        let name_width = widths.max().unwrap_or(0).max(names.heading.width()) + 2;
        let room = screen.width.saturating_sub(name_width);
        let texts = |columns: Vec<Column<'a, Line<'a>>>| -> Vec<Texts> {
            let columns = match titles {
                None => shown(columns, Format::Table, &lines),
                Some(_) => columns,
            };
            columns.iter().map(|column| Texts::of(column, &lines, screen)).collect()
        };
        let mut columns = match titles {
            None => texts(figures(chart)),
            Some(titles) => {
                // The figures of all paths matter more than their spread.
                let whole = texts(paths(chart, titles, true));
                let fits = taken(&whole) - GAP.len() <= room;
                if fits { whole } else { texts(paths(chart, titles, false)) }
            }
        };
        let hows: Vec<String> = lines.iter().map(|line| plain(&line.how)).collect();
        let whole = hows.iter().map(|how| how.width()).max().unwrap_or(0);
        let whole = how.as_ref().map_or(0, |how| whole.max(how.heading.width()));
        let words = hows.iter().flat_map(|how| how.split(' ')).map(|word| word.width());
        let easy = words.max().unwrap_or(0).clamp(HOW_WIDTH_MIN, HOW_WORD_WIDTH_MAX).min(whole);
        let gap = if how.is_some() { GAP.len() } else { 0 };
        // Without a bar there is no gap in front of it.
        drop_columns(&mut columns, (room + GAP.len()).saturating_sub(easy + gap));
        let left = (room + GAP.len()).saturating_sub(taken(&columns) + gap);
        let how_width = if left < easy { 0 } else { left.min(whole) };
        let bar_width = left.saturating_sub(how_width + GAP.len()).min(BAR_WIDTH_MAX);
        let has_bar = titles.is_none() && !chart.is_of_saves && bar_width >= BAR_WIDTH_MIN;
        let hows = if how_width == 0 { Vec::new() } else { hows };
        Rows {
            chart,
            names,
            name_width,
            hows: hows.iter().map(|how| broken(how, how_width)).collect(),
            how_width,
            columns,
            bar_width: if has_bar { bar_width } else { 0 },
        }
    }

    /// Writes the headings and a line for each language.
    pub fn write(&self, page: Page, out: &mut dyn Write) -> io::Result<()> {
        if self.chart.lines.is_empty() {
            return writeln!(out, "no language did it");
        }
        let mut headings = padded(&format!("  {}", self.names.heading), self.name_width);
        if !self.hows.is_empty() {
            headings = headings + GAP + &padded("HOW", self.how_width);
        }
        for column in &self.columns {
            headings = headings + GAP + &column.heading();
        }
        writeln!(out, "{}", page.paint(Tone::Faint, headings.trim_end()))?;
        for (index, line) in self.chart.lines.iter().enumerate() {
            writeln!(out, "{}", self.line(index, line, page).trim_end())?;
            for rest in self.hows.get(index).iter().flat_map(|how| how.iter().skip(1)) {
                writeln!(out, "{}{GAP}{rest}", " ".repeat(self.name_width))?;
            }
        }
        Ok(())
    }

    fn line(&self, index: usize, of: &Line<'a>, page: Page) -> String {
        let mark = match of.who {
            Who::Language => " ",
            Who::Wrote => WROTE_MARK,
            Who::Drive => DRIVE_MARK,
        };
        let name = format!("{mark} {}", plain(&of.name));
        let pad = " ".repeat(self.name_width - name.width());
        let mut line = page.paint((self.names.tone)(of), &name) + &pad;
        if let Some(how) = self.hows.get(index) {
            line = line + GAP + &padded(how.first().map_or("", |how| how), self.how_width);
        }
        for column in &self.columns {
            line = line + GAP + &column.cell(index, page);
        }
        let rate = |line: &Line| line.first().map_or(0.0, |cell| cell.throughput.median);
        let part = rate(of) / self.chart.lines.iter().map(rate).fold(0.0, f64::max);
        line + GAP + &bar(part, self.bar_width, page.screen.unicode)
    }
}

/// Explains the marks that stand in any of the tables.
pub fn legend(charts: &[Chart], screen: Screen) -> Option<String> {
    let lines = || charts.iter().flat_map(|chart| &chart.lines);
    let has = |who| lines().any(|line| line.who == who);
    let first = if lines().any(|line| line.cells.len() > 1) { " in the first path" } else { "" };
    let level =
        format!("no measurable difference from the line above{first}: the 95 % intervals touch");
    let drive = "is what the drive takes or gives by itself, past the page cache";
    let marks = [
        (has(Who::Drive), DRIVE_MARK, drive),
        (has(Who::Wrote), WROTE_MARK, "is this library"),
        (lines().any(|line| line.is_level), Mark::Level.on(screen), &level),
    ];
    let marks = marks.iter().filter(|(is_there, ..)| *is_there);
    let marks: Vec<String> = marks.map(|(_, mark, means)| format!("{mark} {means}")).collect();
    (!marks.is_empty()).then(|| marks.join("; ") + ".")
}
