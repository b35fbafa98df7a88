//! The columns of a table in every format, with one list of columns for each view of the rows.

use crate::Format;
use crate::figures::*;
use crate::group::Group;
use crate::paint::{Mark, Tone};
use crate::table::{Bars, Column, Keep, Table, Text};
use std::ptr;
use wrote_result::document::{CrashLeaves, Latency, Row, View};
use wrote_result::units;

/// The length of the bar for the lowest latency, as a part of the longest bar.
const PART_MIN: f64 = 0.04;
/// The minimum width of the name. The name is broken into lines before an important column is
/// dropped, but never into narrower lines.
const NAME_WIDTH_MIN: usize = 16;
/// The width of the name below which columns are dropped first.
const NAME_WIDTH_EASY: usize = 28;
/// The same two widths for saves, whose names are short.
const SAVE_WIDTHS: (usize, usize) = (12, 16);

/// Returns the table of the rows.
pub fn table(group: &Group) -> Table {
    let best = group.best();
    let best = best.and_then(|best| group.rows.iter().position(|row| ptr::eq(*row, best)));
    let table = Table::of(&format!("Figures of {}", group.workload), columns(group));
    Table { best, bars: bars(group), ..table }
}

/// Returns the bars of the rows; `None` for saves, which are compared by latency: a longer bar for
/// a worse row would mislead.
fn bars(group: &Group) -> Option<Bars> {
    // Each row is compared with the rows of its level. Compared with the speed of memory, every
    // durable row would be a sliver.
    let of_level = |row: &&Row| {
        let level = group.rows.iter().filter(|other| other.survives == row.survives);
        row.throughput() / level.map(|other| other.throughput()).fold(0.0, f64::max)
    };
    let bars = |heading, parts: Vec<f64>| Bars { heading, parts, is_reserved: true };
    match group.view() {
        View::Saves => None,
        View::Curve => {
            Some(bars("P99, LOG", group.rows.iter().map(|row| p99_part(group, row)).collect()))
        }
        _ => Some(bars("", group.rows.iter().map(of_level).collect())),
    }
}

/// Returns the P99 on a logarithmic scale between the minimum and the maximum of the curve; 0 for a
/// row without a P99.
fn p99_part(group: &Group, row: &Row) -> f64 {
    let logarithm = |row: &Row| Some((row.latency()?.known_p99()?.max(1) as f64).ln());
    let all = || group.rows.iter().filter_map(|row| logarithm(row));
    let (least, most) = (all().fold(f64::MAX, f64::min), all().fold(0.0, f64::max));
    let Some(of) = logarithm(row) else { return 0.0 };
    let part = if most > least { (of - least) / (most - least) } else { 0.0 };
    PART_MIN + (1.0 - PART_MIN) * part
}

/// Returns the columns of a workload. On a screen, the first column names the rows.
fn columns(group: &Group) -> Vec<Column> {
    let of = Of(group);
    let columns = match group.view() {
        View::Curve => return curve(of),
        View::Saves => saves(of),
        View::Messages => messages(of),
        View::Metadata => metadata(of),
        View::Operations | View::Files | View::Long => operations(of),
    };
    names(of).into_iter().chain(columns).collect()
}

/// The rows of the group from which the columns are built.
#[derive(Clone, Copy)]
struct Of<'a>(&'a Group<'a>);

impl<'a> Of<'a> {
    fn figures<C: Into<Text>>(
        self,
        heading: &str,
        keep: Keep,
        cell: impl Fn(&'a Row) -> C,
    ) -> Column {
        Column::figures(heading, keep, self.0.rows.iter().copied(), cell)
    }

    fn words<C: Into<Text>>(
        self,
        heading: &str,
        keep: Keep,
        cell: impl Fn(&'a Row) -> C,
    ) -> Column {
        Column::words(heading, keep, self.0.rows.iter().copied(), cell)
    }

    fn timed(self, heading: &str, keep: Keep, figure: fn(&Latency) -> Option<u64>) -> Column {
        self.figures(heading, keep, |row| latency(row.latency(), figure))
    }

    fn counted(self) -> Column {
        let heading = self.0.counted();
        let title = if heading == "IOPS" { heading.into() } else { heading.to_ascii_lowercase() };
        self.figures(heading, Keep::Always, operations_per_s).titled(title)
    }

    fn survives(self) -> Column {
        let survives = |row: &Row| {
            let tone = Tone::of_survives(row.survives);
            Text { tone, ..text(row.survives).into() }
        };
        self.words("SURVIVES", Keep::Always, survives).titled("survives")
    }
}

/// Returns the columns that distinguish the rows.
fn names(of: Of) -> Vec<Column> {
    let group = of.0;
    let (least, easy) = match group.view() {
        View::Saves => SAVE_WIDTHS,
        _ => (NAME_WIDTH_MIN, NAME_WIDTH_EASY),
    };
    let named = |row| {
        let mark = if fell_back(row) { Mark::FellBack } else { Mark::None };
        Text { before: group.loop_mark(row), mark: Some(mark), ..group.name(row).into() }
    };
    let (heading, title) = if group.is_of_jobs() { ("JOB", "job") } else { ("NAME", "name") };
    let name = of.words(heading, Keep::Always, named).titled(title).flexible(least, easy);
    let way = of.words("WAY", Keep::If(9), |row| &*row.way).titled("way");
    let way = if group.is_of_jobs() { way.only(Format::Markdown) } else { way };
    let rate = of.figures("@ rate", Keep::Always, asked_rate).only(Format::Markdown);
    let rate = group.mixes_loops().then_some(rate);
    [name].into_iter().chain(rate).chain([way]).collect()
}

fn curve(of: Of) -> Vec<Column> {
    let load = |row: &Row| {
        let before = if fell_back(row) { "* " } else { "" };
        Text { before, ..load_percent(row).into() }
    };
    let achieved = |row: &Row| {
        let mark = if is_reached(row) { Mark::None } else { Mark::Missed };
        Text { mark: Some(mark), ..operations_per_s(row).into() }
    };
    let is_knee = |row: &Row| of.0.knee.is_some_and(|knee| knee.row == row.name);
    let knee = |row: &Row| {
        let mark = if is_knee(row) { Mark::Best } else { Mark::None };
        Text { mark: Some(mark), ..Text::default() }
    };
    let mut columns = vec![
        of.figures("LOAD", Keep::Always, load).titled("load"),
        of.figures("RATE", Keep::Always, asked_rate).titled("rate"),
        of.figures("ACHIEVED", Keep::Always, achieved).titled("achieved"),
        of.timed("P50", Keep::Always, |of| Some(of.p50)),
        of.timed("P99", Keep::Always, Latency::known_p99),
        of.timed("P99.9", Keep::Always, Latency::known_p99_9),
        of.words("", Keep::Always, knee).only(Format::Table),
    ];
    for (number, _) in of.0.rows.iter().enumerate().filter(|(_, row)| is_knee(row)) {
        columns.iter_mut().for_each(|column| column.cells[number].tone = Tone::Strong);
    }
    columns
}

fn saves(of: Of) -> Vec<Column> {
    let leaves = |row: &Row| {
        let tone = match row.crash_leaves {
            Some(CrashLeaves::OldOrNew) => Tone::Green,
            Some(CrashLeaves::Torn | CrashLeaves::OldAndPart) => Tone::Yellow,
            Some(CrashLeaves::Empty) => Tone::Red,
            None => Tone::Plain,
        };
        Text { tone, ..text(row.crash_leaves).into() }
    };
    vec![
        of.timed("MIN", Keep::If(4), |of| Some(of.min)).titled("min"),
        of.timed("P50", Keep::Always, |of| Some(of.p50)),
        of.timed("P90", Keep::If(3), |of| Some(of.p90)),
        of.timed("P95", Keep::If(6), |of| Some(of.p95)),
        of.timed("P99", Keep::Always, Latency::known_p99),
        of.timed("P99.9", Keep::If(2), Latency::known_p99_9),
        of.timed("MAX", Keep::If(1), |of| Some(of.max)).titled("max"),
        of.timed("TOTAL", Keep::If(5), |of| Some(of.total)).titled("total"),
        of.figures("ITERATIONS", Keep::If(7), iterations).titled("iterations"),
        of.survives(),
        of.words("CRASH LEAVES", Keep::Always, leaves).titled("a crash leaves"),
    ]
}

fn messages(of: Of) -> Vec<Column> {
    let bytes = |row: &Row| units::bytes(row.bytes_per_run);
    vec![
        of.counted(),
        of.figures("95 %", Keep::If(3), operations_range),
        of.timed("MEAN", Keep::If(4), |of| Some(of.mean.round() as u64)).titled("mean"),
        of.timed("P50", Keep::If(2), |of| Some(of.p50)),
        of.timed("P90", Keep::If(5), |of| Some(of.p90)),
        of.timed("P99", Keep::Always, Latency::known_p99),
        of.timed("P99.9", Keep::If(6), Latency::known_p99_9),
        of.figures("CPU/op", Keep::If(1), cpu_per_operation),
        of.figures("BYTES", Keep::If(8), bytes).titled("bytes"),
        of.figures("TIME", Keep::If(7), run_time).titled("time"),
        of.survives(),
    ]
}

fn metadata(of: Of) -> Vec<Column> {
    vec![
        of.figures("OPS/s", Keep::Always, operations_per_s).titled("ops/s"),
        of.figures("95 %", Keep::If(3), operations_range),
        of.timed("P50", Keep::Always, |of| Some(of.p50)),
        of.timed("P90", Keep::If(5), |of| Some(of.p90)),
        of.timed("P99", Keep::Always, Latency::known_p99),
        of.timed("P99.9", Keep::If(4), Latency::known_p99_9),
        of.timed("MAX", Keep::If(2), |of| Some(of.max)).titled("max"),
        of.figures("CPU/op", Keep::If(1), cpu_per_operation),
        of.survives(),
    ]
}

fn operations(of: Of) -> Vec<Column> {
    let group = of.0;
    let (is_of_files, best) = (group.view() == View::Files, group.best());
    let mixes_rw = group.common(|row| row.settings.effective.rw.clone()).is_none();
    let mixes_bs = group.common(block_sizes).is_none() && !is_of_files;
    let has_torn = group.rows.iter().any(|row| row.torn.is_some());
    let mixes_bytes = is_of_files && group.common(|row| row.bytes_per_run).is_none();
    // The rate of small operations matters more than their bytes or the interval.
    let (keep, spread) = match group.is_counted() {
        true => (Keep::Last, Keep::If(1)),
        false => (Keep::Always, Keep::Last),
    };
    let rate = |row: &Row| {
        let mark = best.map(|best| match row {
            row if ptr::eq(best, row) => Mark::Best,
            row if row.is_durable() && row.is_tied_with(best) => Mark::Level,
            _ => Mark::None,
        });
        Text { mark, ..throughput(row).into() }
    };
    let bytes = |row: &Row| units::bytes(row.bytes_per_run);
    // A screen has space for both costs. Markdown shows the more informative one.
    let (per_op, per_gb) = if group.costs_by_operation() { (5, 8) } else { (8, 5) };
    let mut costs = [
        of.figures("CPU s/GB", Keep::If(per_gb), cpu_s_per_gb),
        of.figures("CPU/op", Keep::If(per_op), cpu_per_operation),
    ];
    costs[usize::from(!group.costs_by_operation())].only = Some(Format::Table);
    let [cost_of_gb, cost_of_operation] = costs;
    let rw = of.words("RW", Keep::If(2), |row| &*row.settings.effective.rw).titled("rw");
    [
        mixes_rw.then_some(rw),
        mixes_bs.then(|| of.figures("BS", Keep::If(3), block_sizes).titled("bs")),
        Some(of.figures("THROUGHPUT", keep, rate).titled("throughput")),
        Some(of.figures("95 %", spread, range)),
        group.is_counted().then(|| of.counted()),
        Some(of.timed("P50", Keep::If(4), |of| Some(of.p50))),
        Some(of.timed("P99", Keep::Always, Latency::known_p99)),
        Some(of.timed("P99.9", Keep::If(7), Latency::known_p99_9)),
        Some(of.timed("MAX", Keep::If(6), |of| Some(of.max)).titled("max")),
        mixes_bytes.then(|| of.figures("A RUN", Keep::If(1), bytes).titled("a run")),
        Some(cost_of_gb),
        group.is_counted().then_some(cost_of_operation),
        is_of_files.then(|| of.figures("MEMORY", Keep::Always, peak_memory).titled("peak memory")),
        Some(of.survives()),
        has_torn.then(|| of.words("TORN", Keep::Always, |row| text(row.torn)).titled("torn")),
    ]
    .into_iter()
    .flatten()
    .collect()
}
