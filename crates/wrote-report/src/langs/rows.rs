//! The rows of one workload, laid out for a screen.

use super::figures::{Figure, RATES, SAVES, megabytes, of_path};
use super::{Cell, Chart, Line, Who};
use crate::Screen;
use crate::paint::{Paint, Tone};
use crate::table::columns::{
    Align, BAR_WIDTH_MAX, BAR_WIDTH_MIN, Column, GAP, Keep, bar, broken, drop_columns, taken,
    to_ascii,
};
use crate::table::grid::Marks;
use crate::text::plain;
use std::io::{self, Write};
use textwrap::{Options, WordSplitter};
use unicode_width::UnicodeWidthStr;

/// Over the names.
const TITLE: &str = "LANGUAGE";
/// Over what a program writes and reads by.
const HOW: &str = "HOW";
/// HOW is broken into lines before a figure gives way to it, but not into narrower ones than this, nor,
/// up to the second width, within its words.
const HOW_WIDTH_MIN: usize = 16;
const HOW_WORD_WIDTH_MAX: usize = 26;
/// Stands at our own rows.
const WROTE_MARK: &str = ">";
/// Stands at the drive.
const DRIVE_MARK: &str = "-";

/// The figures that a narrow screen does without, in this order from the last.
const DISPENSABLE: [&str; 10] =
    ["x DRIVE", "CPU s/GB", "MAX", "P99.9", "P90", "MIN", "MEMORY", "MEAN", "TOTAL", "P95"];

/// A workload's table.
pub struct Rows<'a> {
    chart: &'a Chart<'a>,
    /// Marked.
    names: Vec<String>,
    /// In lines; empty where there is no such column.
    hows: Vec<Vec<String>>,
    how_width: usize,
    columns: Vec<Column>,
    bar_width: usize,
}

impl<'a> Rows<'a> {
    /// Chooses the columns that `screen` has room for. `titles` are those of several paths.
    pub fn of(chart: &'a Chart<'a>, titles: Option<&[String]>, screen: Screen) -> Rows<'a> {
        let names: Vec<String> = chart.lines.iter().map(marked).collect();
        let name_width = width_of(&names, &format!("  {TITLE}"));
        let room = screen.width.saturating_sub(name_width);
        let marks = Marks::of(screen);
        let mut columns = match titles {
            None => figures(chart, marks),
            Some(titles) => {
                let whole = paths(chart, titles, marks, of_path);
                // Without the spread: what is told of all paths is worth more than how sure it is.
                let rate = |cell: Cell, is_of_saves: bool| match is_of_saves {
                    true => of_path(cell, true),
                    false => megabytes(cell.throughput.median),
                };
                if taken(&whole) - GAP.len() <= room {
                    whole
                } else {
                    paths(chart, titles, marks, rate)
                }
            }
        };
        if !screen.unicode {
            columns.iter_mut().for_each(to_ascii);
        }
        let hows: Vec<String> = chart.lines.iter().map(|line| plain(&line.how)).collect();
        let how_width_whole = if chart.is_of_saves { 0 } else { width_of(&hows, HOW) };
        let words = hows.iter().flat_map(|how| how.split(' ')).map(|word| word.width());
        let easy = words.max().unwrap_or(0).clamp(HOW_WIDTH_MIN, HOW_WORD_WIDTH_MAX);
        let easy = how_width_whole.min(easy);
        let gap = if chart.is_of_saves { 0 } else { GAP.len() };
        // The gap in front of the bar is none where there is no bar.
        drop_columns(&mut columns, (room + GAP.len()).saturating_sub(easy + gap));
        let left = (room + GAP.len()).saturating_sub(taken(&columns) + gap);
        let how_width = if left < easy { 0 } else { left.min(how_width_whole) };
        let bar_width = left.saturating_sub(how_width + GAP.len()).min(BAR_WIDTH_MAX);
        let has_bar = titles.is_none() && !chart.is_of_saves && bar_width >= BAR_WIDTH_MIN;
        let options = Options::new(how_width.max(1)).word_splitter(WordSplitter::NoHyphenation);
        let hows = if how_width == 0 {
            Vec::new()
        } else {
            hows.iter().map(|how| broken(how, &options)).collect()
        };
        let bar_width = if has_bar { bar_width } else { 0 };
        Rows { chart, names, hows, how_width, columns, bar_width }
    }

    /// Writes the titles and a line for each language.
    pub fn write(&self, paint: Paint, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
        if self.chart.lines.is_empty() {
            return writeln!(out, "no language did it");
        }
        let name_width = width_of(&self.names, &format!("  {TITLE}"));
        let mut titles = padded(&format!("  {TITLE}"), name_width);
        if !self.hows.is_empty() {
            titles = titles + GAP + &padded(HOW, self.how_width);
        }
        for column in &self.columns {
            titles = titles + GAP + &column.cell(&column.title, column.width());
        }
        writeln!(out, "{}", paint.paint(Tone::Faint, titles.trim_end()))?;
        for index in 0..self.chart.lines.len() {
            let line = self.line(index, name_width, paint, screen);
            writeln!(out, "{}", line.trim_end())?;
            for rest in self.hows.get(index).iter().flat_map(|how| how.iter().skip(1)) {
                writeln!(out, "{}{GAP}{rest}", " ".repeat(name_width))?;
            }
        }
        Ok(())
    }

    fn line(&self, index: usize, name_width: usize, paint: Paint, screen: Screen) -> String {
        let of = &self.chart.lines[index];
        let tone = match of.who {
            Who::Language => Tone::Plain,
            Who::Wrote => Tone::Green,
            Who::Drive => Tone::Cyan,
        };
        let name = &self.names[index];
        let mut line = paint.paint(tone, name) + &" ".repeat(name_width - name.width());
        if let Some(how) = self.hows.get(index) {
            line = line + GAP + &padded(how.first().map_or("", |how| how), self.how_width);
        }
        for column in &self.columns {
            line = line + GAP + &column.cell(&column.cells[index], column.width());
        }
        line + GAP + &bar(self.part(of), self.bar_width, screen.unicode)
    }

    /// The part of the fastest.
    fn part(&self, line: &Line) -> f64 {
        let rate = |line: &Line| line.first().map_or(0.0, |cell| cell.throughput.median);
        rate(line) / self.chart.lines.iter().map(rate).fold(0.0, f64::max)
    }
}

/// What the marks mean that stand in any of these tables.
pub fn legend(charts: &[Chart], screen: Screen) -> Option<String> {
    let has = |who| charts.iter().any(|chart| chart.lines.iter().any(|line| line.who == who));
    let is_level = charts.iter().any(|chart| chart.lines.iter().any(|line| line.is_level));
    let is_of_several =
        charts.iter().flat_map(|chart| &chart.lines).any(|line| line.cells.len() > 1);
    let first = if is_of_several { " in the first path" } else { "" };
    let level = format!("can't be told apart from the line above{first}: the 95 % intervals touch");
    let told = [
        (
            has(Who::Drive),
            DRIVE_MARK,
            "is what the drive takes or gives by itself, past the page cache",
        ),
        (has(Who::Wrote), WROTE_MARK, "is this library"),
        (is_level, Marks::of(screen).level, &level),
    ];
    let told = told.iter().filter(|(is_there, ..)| *is_there);
    let told: Vec<String> = told.map(|(_, mark, means)| format!("{mark} {means}")).collect();
    (!told.is_empty()).then(|| told.join("; ") + ".")
}

fn marked(line: &Line) -> String {
    let mark = match line.who {
        Who::Language => " ",
        Who::Wrote => WROTE_MARK,
        Who::Drive => DRIVE_MARK,
    };
    format!("{mark} {}", plain(&line.name))
}

/// The columns of one path: a figure each.
fn figures(chart: &Chart, marks: Marks) -> Vec<Column> {
    let all: &[Figure] = if chart.is_of_saves { &SAVES } else { &RATES };
    let column = |(number, (title, text)): (usize, &Figure)| {
        let dispensable = DISPENSABLE.iter().position(|known| known == title);
        let cell = |line: &Line| {
            let text = line.first().map(text).unwrap_or_default();
            if number == 0 { with_level(text, line, chart, marks) } else { text }
        };
        Column {
            title: over(title, number, chart).into(),
            align: Align::Right,
            keep: dispensable.map_or(Keep::Always, |order| Keep::If(order as u8)),
            cells: chart.lines.iter().map(cell).collect(),
        }
    };
    let columns = all.iter().enumerate().map(column);
    // The interval of single runs; the drive's rate where there is none.
    columns.filter(|column| column.cells.iter().any(|cell| !cell.is_empty())).collect()
}

/// A column for each path.
fn paths(
    chart: &Chart,
    titles: &[String],
    marks: Marks,
    figure: impl Fn(Cell, bool) -> String,
) -> Vec<Column> {
    let column = |(number, title): (usize, &String)| {
        let cell = |line: &Line| {
            let cell = line.cells.get(number).copied().flatten();
            let text = cell.map(|cell| figure(cell, chart.is_of_saves)).unwrap_or_default();
            if number == 0 { with_level(text, line, chart, marks) } else { text }
        };
        Column {
            title: over(&plain(title), number, chart).into(),
            align: Align::Right,
            keep: Keep::Always,
            cells: chart.lines.iter().map(cell).collect(),
        }
    };
    titles.iter().enumerate().map(column).collect()
}

/// The figure by which lines are ranked, marked where it can't be told apart from the one above.
fn with_level(text: String, line: &Line, chart: &Chart, marks: Marks) -> String {
    match chart.lines.iter().any(|line| line.is_level) {
        false => text,
        true => format!("{text} {}", if line.is_level { marks.level } else { " " }),
    }
}

/// A title; that of the figure by which lines are ranked stands clear of the marks.
fn over(title: &str, number: usize, chart: &Chart) -> String {
    let is_marked = number == 0 && chart.lines.iter().any(|line| line.is_level);
    title.to_owned() + if is_marked { "  " } else { "" }
}

fn width_of(texts: &[String], title: &str) -> usize {
    texts.iter().map(|text| text.width()).max().unwrap_or(0).max(title.width())
}

fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}
