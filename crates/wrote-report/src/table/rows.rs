//! The rows of one workload as a table with bars: as many columns as the screen has room for.

use super::{
    BAR_WIDTH_MAX, BAR_WIDTH_MIN, FELL_BACK_LEGEND, GAP, Texts, bar, broken, drop_columns, padded,
    taken,
};
use crate::columns::{columns, shown};
use crate::figures::fell_back;
use crate::group::{Group, OPEN_LOOP_LEGEND};
use crate::page::Page;
use crate::paint::{Mark, Tone};
use crate::text::plain;
use crate::{Format, Screen};
use std::io::{self, Write};
use unicode_width::UnicodeWidthStr;
use wrote_result::document::View;

/// The name is broken into lines before an important column is dropped, but never into narrower
/// lines.
const NAME_WIDTH_MIN: usize = 16;
/// Columns are dropped before the name becomes narrower than this.
const NAME_WIDTH_EASY: usize = 28;
/// The same limit for saves, whose names are short.
const SAVES_NAME_WIDTH_EASY: usize = 16;

/// A workload's table.
pub struct Rows<'a> {
    group: &'a Group<'a>,
    heading: String,
    /// The names, broken into lines.
    names: Vec<Vec<String>>,
    name_width: usize,
    columns: Vec<Texts>,
    bar_width: usize,
}

impl<'a> Rows<'a> {
    /// Chooses the columns that `screen` has room for.
    pub fn of(group: &'a Group<'a>, screen: Screen) -> Rows<'a> {
        let mut columns = shown(columns(group), Format::Table, &group.rows);
        let label = columns.remove(0);
        let names = group.rows.iter().map(|row| {
            let fell_back = if fell_back(row) { " *" } else { "" };
            format!("{}{}{fell_back}", group.loop_mark(row), plain(&(label.cell)(row)))
        });
        let names: Vec<String> = names.collect();
        let whole = names.iter().map(|name| name.width()).max().unwrap_or(0);
        let whole = whole.max(label.heading.width());
        let texts = columns.iter().map(|column| Texts::of(column, &group.rows, screen));
        let mut columns: Vec<Texts> = texts.collect();
        // Of saves the latency counts: a bar that is longer where the row is worse would mislead.
        let (easy, bar_min, bar_max) = match group.view() {
            View::Saves => (SAVES_NAME_WIDTH_EASY, 0, 0),
            _ => (NAME_WIDTH_EASY, BAR_WIDTH_MIN, BAR_WIDTH_MAX),
        };
        drop_columns(&mut columns, screen.width.saturating_sub(whole.min(easy) + bar_min));
        let left = screen.width.saturating_sub(taken(&columns));
        let name_width = left.saturating_sub(bar_min).max(NAME_WIDTH_MIN).min(whole);
        Rows {
            group,
            heading: label.heading.into_owned(),
            names: names.iter().map(|name| broken(name, name_width)).collect(),
            name_width,
            columns,
            bar_width: left.saturating_sub(name_width).clamp(bar_min, bar_max),
        }
    }

    /// Writes the headings, a line for each row, and the meaning of the marks.
    pub fn write(&self, page: Page, out: &mut dyn Write) -> io::Result<()> {
        let headings =
            self.columns.iter().fold(padded(&self.heading, self.name_width), |line, column| {
                line + GAP + &column.heading()
            });
        writeln!(out, "{}", page.paint(Tone::Faint, headings.trim_end()))?;
        for index in 0..self.group.rows.len() {
            writeln!(out, "{}", self.line(index, page).trim_end())?;
            for rest in self.names[index].iter().skip(1) {
                writeln!(out, "{rest}")?;
            }
        }
        self.write_legend(page, out)
    }

    fn line(&self, index: usize, page: Page) -> String {
        let name = self.names[index].first().map_or("", String::as_str);
        let line = self.columns.iter().fold(padded(name, self.name_width), |line, column| {
            line + GAP + &column.cell(index, page)
        });
        // Of its own level: beside the speed of memory every durable row would be a sliver.
        let row = self.group.rows[index];
        let level = self.group.rows.iter().filter(|other| other.survives == row.survives);
        let part = row.throughput() / level.map(|other| other.throughput()).fold(0.0, f64::max);
        line + GAP + &bar(part, self.bar_width, page.screen.unicode)
    }

    fn write_legend(&self, page: Page, out: &mut dyn Write) -> io::Result<()> {
        let rows = || self.group.rows.iter();
        if let Some(best) = self.group.best() {
            let mark = Mark::Best.on(page.screen);
            writeln!(out, "{mark} the fastest that survives a power loss")?;
            let is_level = |row: &&&wrote_result::document::Row| {
                !std::ptr::eq(**row, best) && row.is_durable() && row.is_tied_with(best)
            };
            if rows().any(|row| is_level(&row)) {
                writeln!(out, "{}", level_legend(page))?;
            }
        }
        if rows().any(|row| fell_back(row)) {
            writeln!(out, "{FELL_BACK_LEGEND}")?;
        }
        if self.group.mixes_loops() {
            writeln!(out, "{}", page.wide(OPEN_LOOP_LEGEND, 2))?;
        }
        Ok(())
    }
}

/// Explains the mark of rows that are as fast as the best.
pub fn level_legend(page: Page) -> String {
    let mark = Mark::Level.on(page.screen);
    format!("{mark} no measurable difference from it: the 95 % intervals touch")
}
