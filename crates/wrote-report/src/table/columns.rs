//! The rows of one workload as columns: as many as the screen is wide enough for.

use super::grid::Marks;
use super::saves;
use crate::Screen;
use crate::figures::{
    OPEN_LOOP_LEGEND, are_level, block_sizes, cpu_per_operation, cpu_s_per_gb, fell_back,
    is_durable, latency, mean_latency, operations_per_s, peak_memory, plus_minus, run_time,
    survives,
};
use crate::group::Group;
use crate::paint::{Paint, Tone};
use crate::text::{Text, plain};
use std::borrow::Cow;
use std::io::{self, Write};
use textwrap::{Options, WordSplitter};
use unicode_width::UnicodeWidthStr;
use wrote_result::document::Row;
use wrote_result::units;

/// What stands between two columns.
pub const GAP: &str = "  ";
/// The bar is as wide as is left, within these.
pub const BAR_WIDTH_MIN: usize = 10;
pub const BAR_WIDTH_MAX: usize = 32;
/// The way is broken into lines before a column that matters gives way to it, but not into narrower
/// ones than this.
const WAY_WIDTH_MIN: usize = 16;
/// Columns that could be dropped are, before the way is made narrower than this.
const WAY_WIDTH_EASY: usize = 28;
/// The same of saves, of which the figures are the point and the ways are short.
const SAVES_WAY_WIDTH_EASY: usize = 16;

/// Whether a column may be dropped, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Keep {
    /// On any screen.
    Always,
    /// In this order, as long as there is room.
    If(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// A title and a cell for each row.
pub struct Column {
    pub title: Cow<'static, str>,
    pub align: Align,
    pub keep: Keep,
    pub cells: Vec<String>,
}

impl Column {
    pub fn width(&self) -> usize {
        self.cells.iter().map(|cell| cell.width()).max().unwrap_or(0).max(self.title.width())
    }

    pub fn cell(&self, text: &str, width: usize) -> String {
        let space = " ".repeat(width.saturating_sub(text.width()));
        match self.align {
            Align::Left => format!("{text}{space}"),
            Align::Right => format!("{space}{text}"),
        }
    }
}

/// A workload's table, laid out for a screen.
pub struct Columns<'a> {
    group: &'a Group<'a>,
    /// Over the ways: `WAY`, or `JOB` where jobs are named instead.
    title: &'static str,
    /// The ways, broken into lines.
    ways: Vec<Vec<String>>,
    way_width: usize,
    columns: Vec<Column>,
    bar_width: usize,
}

impl<'a> Columns<'a> {
    /// Chooses the columns that `screen` has room for.
    pub fn of(group: &'a Group<'a>, screen: Screen) -> Columns<'a> {
        let (title, label) = group.label();
        let ways: Vec<String> = group
            .rows
            .iter()
            .map(|row| group.loop_mark(row).to_owned() + &marked(label(row), row))
            .collect();
        let way_width_whole =
            ways.iter().map(|way| way.width()).max().unwrap_or(0).max(title.width());
        let mut columns = columns(group, Marks::of(screen));
        if !screen.unicode {
            columns.iter_mut().for_each(to_ascii);
        }
        // Of saves it is the latency that counts, and a bar that is longer where it is worse misleads.
        let (way_width_easy, bar_width_min, bar_width_max) = match group.is_of_saves() {
            true => (SAVES_WAY_WIDTH_EASY, 0, 0),
            false => (WAY_WIDTH_EASY, BAR_WIDTH_MIN, BAR_WIDTH_MAX),
        };
        let way_width_easy = way_width_whole.min(way_width_easy);
        drop_columns(&mut columns, screen.width.saturating_sub(way_width_easy + bar_width_min));
        let left = screen.width.saturating_sub(taken(&columns));
        let way_width = left.saturating_sub(bar_width_min).max(WAY_WIDTH_MIN).min(way_width_whole);
        let bar_width = left.saturating_sub(way_width).clamp(bar_width_min, bar_width_max);
        let options = Options::new(way_width).word_splitter(WordSplitter::NoHyphenation);
        let ways = ways.iter().map(|way| broken(way, &options)).collect();
        Columns { group, title, ways, way_width, columns, bar_width }
    }

    /// Writes the titles and a line for each row, and a line about fallbacks where there are any.
    pub fn write(&self, paint: Paint, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
        let titles = self.columns.iter().map(|column| column.cell(&column.title, column.width()));
        let titles = titles
            .fold(format!("{:<1$}", self.title, self.way_width), |line, title| line + GAP + &title);
        writeln!(out, "{}", paint.paint(Tone::Faint, titles.trim_end()))?;
        for index in 0..self.group.rows.len() {
            writeln!(out, "{}", self.line(index, paint, screen).trim_end())?;
            for rest in self.ways[index].iter().skip(1) {
                writeln!(out, "{rest}")?;
            }
        }
        self.explain_marks(Marks::of(screen), out)?;
        if self.group.rows.iter().any(|row| fell_back(row)) {
            writeln!(out, "* not as asked: see the findings")?;
        }
        if self.group.mixes_loops() {
            let text = Text { width: screen.width };
            writeln!(out, "{}", text.wrapped(OPEN_LOOP_LEGEND, 2))?;
        }
        Ok(())
    }

    /// What the marks at throughputs mean, where there are any.
    fn explain_marks(&self, marks: Marks, out: &mut dyn Write) -> io::Result<()> {
        let rows = || self.group.rows.iter().filter(|_| self.group.is_of_whole_files());
        let marked = |mark: &str| rows().any(|row| rate(self.group, row, marks).ends_with(mark));
        if marked(marks.best) {
            writeln!(out, "{} the fastest that survives a power loss", marks.best)?;
        }
        if marked(marks.level) {
            let level = marks.level;
            writeln!(out, "{level} can't be told apart from it: the 95 % intervals touch")?;
        }
        Ok(())
    }

    fn line(&self, index: usize, paint: Paint, screen: Screen) -> String {
        let row = self.group.rows[index];
        let way = self.ways[index].first().map_or("", String::as_str);
        let mut line = format!("{way}{}", " ".repeat(self.way_width.saturating_sub(way.width())));
        for column in &self.columns {
            let cell = column.cell(&column.cells[index], column.width());
            let tone = match column.title.as_ref() {
                "SURVIVES" => Tone::of_survives(row.survives),
                saves::CRASH_LEAVES => saves::tone(row.crash_leaves),
                _ => Tone::Plain,
            };
            line = line + GAP + &paint.paint(tone, &cell);
        }
        let part = row.throughput_bytes_per_s.median / self.group.fastest_bytes_per_s();
        line + GAP + &bar(part, self.bar_width, screen.unicode)
    }
}

/// The columns between the way and the bar.
fn columns(group: &Group, marks: Marks) -> Vec<Column> {
    let figures = |title: &'static str, keep, cell: &dyn Fn(&Row) -> String| Column {
        title: title.into(),
        align: Align::Right,
        keep,
        cells: group.rows.iter().map(|row| cell(row)).collect(),
    };
    let words = |title, keep, cell: &dyn Fn(&Row) -> String| Column {
        align: Align::Left,
        ..figures(title, keep, cell)
    };
    if group.is_of_saves() {
        return saves::columns(group);
    }
    if group.is_of_messages() {
        return vec![
            figures(group.counted(), Keep::Always, &operations_per_s),
            figures("±95%", Keep::If(3), &plus_minus),
            figures("MEAN", Keep::If(4), &mean_latency),
            figures("P50", Keep::If(2), &|row| latency(row, |of| of.p50)),
            figures("P90", Keep::If(5), &|row| latency(row, |of| of.p90)),
            figures("P99", Keep::Always, &|row| latency(row, |of| of.p99)),
            figures("P99.9", Keep::If(6), &|row| latency(row, |of| of.p99_9)),
            figures("CPU/op", Keep::If(1), &cpu_per_operation),
            figures("BYTES", Keep::If(8), &|row| units::bytes(row.bytes_per_run)),
            figures("TIME", Keep::If(7), &run_time),
            words("SURVIVES", Keep::Always, &|row| survives(row)),
        ];
    }
    let mut columns = Vec::new();
    if group.common(|row| row.settings.effective.rw.clone()).is_none() {
        columns.push(words("RW", Keep::If(2), &|row| plain(&row.settings.effective.rw)));
    }
    if group.common(block_sizes).is_none() && !group.is_of_whole_files() {
        columns.push(figures("BS", Keep::If(3), &block_sizes));
    }
    columns.extend([
        figures("THROUGHPUT", Keep::Always, &|row| rate(group, row, marks)),
        figures("±95%", Keep::Always, &plus_minus),
    ]);
    if group.is_counted() {
        columns.push(figures(group.counted(), Keep::If(1), &operations_per_s));
    }
    let (per_operation, per_gb) = if group.costs_by_operation() { (5, 8) } else { (8, 5) };
    columns.extend([
        figures("P50", Keep::If(4), &|row| latency(row, |of| of.p50)),
        figures("P99", Keep::Always, &|row| latency(row, |of| of.p99)),
        figures("P99.9", Keep::If(7), &|row| latency(row, |of| of.p99_9)),
        figures("MAX", Keep::If(6), &|row| latency(row, |of| of.max)),
        figures("CPU s/GB", Keep::If(per_gb), &cpu_s_per_gb),
    ]);
    if group.is_counted() {
        columns.push(figures("CPU/op", Keep::If(per_operation), &cpu_per_operation));
    }
    if group.is_of_whole_files() {
        columns.push(figures("MEMORY", Keep::Always, &peak_memory));
    }
    columns.push(words("SURVIVES", Keep::Always, &|row| survives(row)));
    // The interval of single runs, and what reads survive.
    columns.retain(|column| column.cells.iter().any(|cell| !cell.is_empty()));
    columns
}

/// The throughput; of whole files marked, where it is the best that survives a power loss or can't be
/// told apart from that.
fn rate(group: &Group, row: &Row, marks: Marks) -> String {
    let rate = units::rate(row.throughput_bytes_per_s.median);
    let best = group.fastest_durable().filter(|_| group.is_of_whole_files());
    let mark = match best {
        None => return rate,
        Some(best) if std::ptr::eq(best, row) => marks.best,
        Some(best) if is_durable(row) && are_level(best, row) => marks.level,
        Some(_) => " ",
    };
    format!("{rate} {mark}")
}

/// Drops columns, those that matter least first, until the rest takes at most `width`.
pub fn drop_columns(columns: &mut Vec<Column>, width: usize) {
    while taken(columns) > width {
        let last = (0..columns.len()).max_by_key(|index| columns[*index].keep);
        match last.filter(|index| columns[*index].keep != Keep::Always) {
            Some(index) => drop(columns.remove(index)),
            None => break,
        }
    }
}

/// What the columns take, with the gaps around each.
pub fn taken(columns: &[Column]) -> usize {
    columns.iter().map(|column| column.width() + GAP.len()).sum::<usize>() + GAP.len()
}

/// The way or name, marked where it was not as asked.
fn marked(label: &str, row: &Row) -> String {
    format!("{}{}", plain(label), if fell_back(row) { " *" } else { "" })
}

/// Text in lines of a width.
pub fn broken(way: &str, options: &Options) -> Vec<String> {
    textwrap::wrap(way, options).iter().map(|line| line.to_string()).collect()
}

/// A column as a screen has it that shows nothing beyond ASCII.
pub fn to_ascii(column: &mut Column) {
    if column.title == "±95%" {
        column.title = "+-95%".into();
    }
    column.cells.iter_mut().for_each(|cell| *cell = cell.replace('±', "+-"));
}

/// A bar for a part of the whole `width`, in eighths of a column where the screen has them. What is
/// there at all is seen.
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
