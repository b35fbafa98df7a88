//! The columns of a workload's languages, and the texts of their cells.

use super::{Cell, Chart, Line, Who};
use crate::figures::{cpu_seconds, latency, p99, p99_9, spread, text};
use crate::paint::{Mark, Tone};
use crate::table::{Bars, Table};
use crate::table::{Column, Keep};
use unicode_width::UnicodeWidthStr;
use wrote_result::document::Latency;
use wrote_result::langs::Row;
use wrote_result::units::{bytes, significant};

type Figure = fn(Cell) -> String;

const RATES: [(&str, Keep, Figure); 6] = [
    ("MB/s", Keep::Always, |cell| megabytes(cell.throughput.median)),
    ("±95%", Keep::Always, |cell| spread(cell.throughput)),
    ("MEAN", Keep::If(7), |cell| of_row(cell, |row| megabytes(row.throughput_mean_bytes_per_s))),
    ("x DRIVE", Keep::If(0), of_drive),
    ("CPU s/GB", Keep::If(1), |cell| of_row(cell, |row| cpu_seconds(row.cpu_s_per_gb))),
    ("MEMORY", Keep::If(6), |cell| of_row(cell, |row| text(row.max_rss_bytes.map(bytes)))),
];

const SAVES: [(&str, Keep, Figure); 8] = [
    ("MIN", Keep::If(5), |cell| timed(cell, |of| of.min)),
    ("P50", Keep::Always, |cell| timed(cell, |of| of.p50)),
    ("P90", Keep::If(4), |cell| timed(cell, |of| of.p90)),
    ("P95", Keep::If(9), |cell| timed(cell, |of| of.p95)),
    ("P99", Keep::Always, |cell| p99(latency_of(cell))),
    ("P99.9", Keep::If(3), |cell| p99_9(latency_of(cell))),
    ("MAX", Keep::If(2), |cell| timed(cell, |of| of.max)),
    ("TOTAL", Keep::If(8), |cell| timed(cell, |of| of.total)),
];

/// The amount of a row, where each language has its own.
const MOVED: (&str, Keep, Figure) =
    ("A RUN", Keep::Always, |cell| of_row(cell, |row| text(row.run_bytes().map(bytes))));
const SAVED: (&str, Keep, Figure) = ("SAVES", Keep::Always, |cell| {
    of_row(cell, |row| text(row.latency_ns.map(|latency| latency.count.to_string())))
});

/// HOW is broken into lines before a figure is dropped, but never into narrower lines than this,
/// nor, up to the second width, within its words.
const HOW_WIDTH_MIN: usize = 16;
const HOW_WORD_WIDTH_MAX: usize = 26;

/// The table of a workload. Several paths have `titles`.
pub fn table(chart: &Chart, titles: Option<&[String]>) -> Table {
    let lines: Vec<&Line> = chart.lines.iter().collect();
    let mut columns = names(chart);
    columns.extend(match titles {
        None => figures(chart),
        Some(titles) => paths(chart, titles),
    });
    let rate = |line: &&Line| line.first().map_or(0.0, |cell| cell.throughput.median);
    let most = lines.iter().map(rate).fold(0.0, f64::max);
    let bars = (titles.is_none() && !chart.is_of_saves).then(|| Bars {
        heading: "",
        parts: lines.iter().map(|line| rate(line) / most).collect(),
        is_reserved: false,
    });
    Table::of(&format!("Figures of {}", chart.name), &columns, &lines).with_bars(bars)
}

/// The columns that name the lines: the language, and what its program writes or reads by.
fn names<'a>(chart: &Chart<'a>) -> Vec<Column<'a, Line<'a>>> {
    let name = Column::words("  LANGUAGE", Keep::Always, |line: &Line| line.name.clone())
        .titled("language")
        .before(|line| match line.who {
            Who::Language => "  ",
            Who::Wrote => "> ",
            Who::Drive => "- ",
        })
        .toned(|line| match line.who {
            Who::Language => Tone::Plain,
            Who::Wrote => Tone::Green,
            Who::Drive => Tone::Cyan,
        })
        .bold(|line| line.who != Who::Language);
    let words = chart.lines.iter().flat_map(|line| line.how.split(' ')).map(|word| word.width());
    let easy = words.max().unwrap_or(0).clamp(HOW_WIDTH_MIN, HOW_WORD_WIDTH_MAX);
    let how = Column::words("HOW", Keep::Last, |line: &Line| line.how.clone())
        .titled("how")
        .flexible(HOW_WIDTH_MIN, easy);
    if chart.is_of_saves { vec![name] } else { vec![name, how] }
}

/// The columns of one path: every figure.
fn figures<'a>(chart: &Chart) -> Vec<Column<'a, Line<'a>>> {
    let figures: &[_] = if chart.is_of_saves { &SAVES } else { &RATES };
    let amount = if chart.is_of_saves { SAVED } else { MOVED };
    let amount = chart.has_amounts().then_some(amount);
    let figures = figures.iter().copied().chain(amount);
    let column = |(number, (title, keep, figure)): (usize, (&'static str, Keep, Figure))| {
        let cell = move |line: &Line| text(line.first().map(figure));
        ranked(title, number, keep, chart, cell)
    };
    figures.enumerate().map(column).collect()
}

/// The columns of several paths: one figure each, without its spread on narrow screens.
fn paths<'a>(chart: &Chart, titles: &'a [String]) -> Vec<Column<'a, Line<'a>>> {
    let is_of_saves = chart.is_of_saves;
    let figure = move |cell: Cell| match is_of_saves {
        true => timed(cell, |of| of.p50),
        false => megabytes(cell.throughput.median),
    };
    let whole = move |cell: Cell| match is_of_saves {
        true => figure(cell),
        false => format!("{} {}", figure(cell), spread(cell.throughput)).trim_end().into(),
    };
    let column = |(number, title): (usize, &'a String)| {
        let cell = move |line: &Line| text(line.at(number).map(whole));
        let short = move |line: &Line| text(line.at(number).map(figure));
        ranked(title, number, Keep::Always, chart, cell).short(short).kept()
    };
    titles.iter().enumerate().map(column).collect()
}

/// A column of figures. The first one ranks the lines: its marks show which lines are level.
fn ranked<'a>(
    title: &'a str,
    number: usize,
    keep: Keep,
    chart: &Chart,
    cell: impl Fn(&Line<'a>) -> String + 'a,
) -> Column<'a, Line<'a>> {
    if number > 0 || !chart.lines.iter().any(|line| line.is_level) {
        return Column::figures(title, keep, cell);
    }
    // Keeps the heading clear of the marks.
    Column::figures(format!("{title}  "), keep, cell)
        .titled(title)
        .marked(|line: &Line| if line.is_level { Mark::Level } else { Mark::None })
}

/// A rate in MB/s, without its unit.
fn megabytes(bytes_per_s: f64) -> String {
    if bytes_per_s.is_finite() { significant(bytes_per_s / 1e6) } else { "?".into() }
}

/// The rate as a multiple of the drive's own: `0.37`.
fn of_drive(cell: Cell) -> String {
    let rate = cell.drive.map(|drive| cell.throughput.median / drive.median);
    match rate.filter(|rate| rate.is_finite()) {
        None => String::new(),
        Some(rate) if rate < 0.0005 => "<0.001".into(),
        Some(rate) if rate < 0.0995 => format!("{rate:.3}"),
        Some(rate) => significant(rate),
    }
}

fn of_row(cell: Cell, figure: fn(&Row) -> String) -> String {
    text(cell.row.map(figure))
}

fn timed(cell: Cell, figure: fn(&Latency) -> u64) -> String {
    latency(latency_of(cell), figure)
}

fn latency_of<'a>(cell: Cell<'a>) -> Option<&'a Latency> {
    cell.row.and_then(|row| row.latency_ns.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use wrote_result::document::Interval;

    fn around(median: f64, reach: f64) -> Interval {
        Interval { median, ci95_low: median - reach, ci95_high: median + reach }
    }

    #[test]
    fn a_rate_has_three_digits_or_all_before_the_point() {
        for (bytes_per_s, text) in [
            (2.4104e9, "2410"),
            (81.23e6, "81.2"),
            (1.234e6, "1.23"),
            (1e3, "0.00"),
            (f64::NAN, "?"),
        ] {
            assert_eq!(megabytes(bytes_per_s), text);
        }
    }

    #[test]
    fn a_part_of_the_drives_rate_is_told_however_small_and_none_where_there_is_none() {
        let (slow, fast, faster) = (around(1.2e6, 1e5), around(2e9, 1e8), around(4e9, 0.0));
        let none = around(0.0, 0.0);
        let cell = |drive| Cell { throughput: &slow, row: None, drive };
        assert_eq!(of_drive(cell(Some(&fast))), "0.001");
        assert_eq!(of_drive(cell(Some(&slow))), "1.00");
        assert_eq!(of_drive(cell(Some(&faster))), "<0.001");
        assert_eq!(of_drive(cell(None)), "");
        assert_eq!(of_drive(cell(Some(&none))), "");
    }

    #[test]
    fn a_single_run_has_no_spread() {
        let (point, wide) = (around(100.0, 0.0), around(100.0, 5.0));
        assert_eq!((spread(&point).as_str(), spread(&wide).as_str()), ("", "±5%"));
    }
}
