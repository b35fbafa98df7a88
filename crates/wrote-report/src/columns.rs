//! The columns of a table, for every format: one list for each view of rows.

use crate::Format;
use crate::figures::*;
use crate::group::Group;
use crate::paint::{Mark, Tone};
use crate::table::{Bars, Column, Keep, Table};
use wrote_result::document::{CrashLeaves, Latency, Row, View};
use wrote_result::units;

/// The part of the lowest latency's bar.
const PART_MIN: f64 = 0.04;
/// The name is broken into lines before an important column is dropped, but never into narrower
/// lines.
const NAME_WIDTH_MIN: usize = 16;
/// Columns are dropped before the name becomes narrower than this.
const NAME_WIDTH_EASY: usize = 28;
/// The same of saves, whose names are short.
const SAVE_WIDTHS: (usize, usize) = (12, 16);

/// The table of the rows.
pub fn table(group: &Group) -> Table {
    let table = Table::of(&format!("Figures of {}", group.workload), &columns(group), &group.rows);
    table.with_best(&group.rows, group.best()).with_bars(bars(group))
}

/// The bars of the rows. For saves the latency counts: a longer bar for a worse row would mislead.
fn bars(group: &Group) -> Option<Bars> {
    // Compared within its level, because beside the speed of memory every durable row would be a
    // sliver.
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

/// The P99 on a logarithmic scale between the minimum and the maximum of the curve; 0 of a row
/// without one.
fn p99_part(group: &Group, row: &Row) -> f64 {
    let logarithm = |row: &Row| Some((row.latency()?.known_p99()?.max(1) as f64).ln());
    let all = || group.rows.iter().filter_map(|row| logarithm(row));
    let (least, most) = (all().fold(f64::MAX, f64::min), all().fold(0.0, f64::max));
    let Some(of) = logarithm(row) else { return 0.0 };
    let part = if most > least { (of - least) / (most - least) } else { 0.0 };
    PART_MIN + (1.0 - PART_MIN) * part
}

/// The columns of a workload. The first one on a screen names the rows.
fn columns<'a>(group: &'a Group<'a>) -> Vec<Column<'a, Row>> {
    let mut columns = match group.view() {
        View::Curve => return curve(group),
        View::Saves => saves(),
        View::Messages => messages(group),
        View::Metadata => metadata(),
        View::Operations | View::Files | View::Long => operations(group),
    };
    columns.splice(0..0, names(group));
    columns
}

/// The columns that distinguish the rows.
fn names<'a>(group: &'a Group<'a>) -> Vec<Column<'a, Row>> {
    let (least, easy) = match group.view() {
        View::Saves => SAVE_WIDTHS,
        _ => (NAME_WIDTH_MIN, NAME_WIDTH_EASY),
    };
    let named = |column: Column<'a, Row>| {
        column
            .flexible(least, easy)
            .before(|row| group.loop_mark(row))
            .marked(|row| if fell_back(row) { Mark::FellBack } else { Mark::None })
    };
    let (heading, title) = if group.is_of_jobs() { ("JOB", "job") } else { ("NAME", "name") };
    let name = Column::words(heading, Keep::Always, |row: &Row| group.name(row).into());
    let way = Column::words("WAY", Keep::If(9), |row: &Row| row.way.clone()).titled("way");
    let way = if group.is_of_jobs() { way.only(Format::Markdown) } else { way };
    let rate = Column::figures("@ rate", Keep::Always, asked_rate).only(Format::Markdown);
    let rate = group.mixes_loops().then_some(rate);
    [named(name.titled(title))].into_iter().chain(rate).chain([way]).collect()
}

fn curve<'a>(group: &'a Group<'a>) -> Vec<Column<'a, Row>> {
    let missed = |row: &Row| if is_reached(row) { Mark::None } else { Mark::Missed };
    let is_knee = |row: &Row| group.knee.is_some_and(|knee| knee.row == row.name);
    let strong = move |row: &Row| if is_knee(row) { Tone::Strong } else { Tone::Plain };
    let columns = vec![
        Column::figures("LOAD", Keep::Always, load_percent)
            .titled("load")
            .before(|row| if fell_back(row) { "* " } else { "" }),
        Column::figures("RATE", Keep::Always, asked_rate).titled("rate"),
        Column::figures("ACHIEVED", Keep::Always, operations_per_s)
            .titled("achieved")
            .marked(missed),
        timed("P50", Keep::Always, |of| of.p50),
        timed_by("P99", Keep::Always, p99),
        timed_by("P99.9", Keep::Always, p99_9),
        Column::words("", Keep::Always, |_: &Row| String::new())
            .only(Format::Table)
            .marked(move |row| if is_knee(row) { Mark::Best } else { Mark::None }),
    ];
    columns.into_iter().map(|column| column.toned(strong)).collect()
}

fn saves<'a>() -> Vec<Column<'a, Row>> {
    let leaves = |row: &Row| match row.crash_leaves {
        Some(CrashLeaves::OldOrNew) => Tone::Green,
        Some(CrashLeaves::Torn | CrashLeaves::OldAndPart) => Tone::Yellow,
        Some(CrashLeaves::Empty) => Tone::Red,
        None => Tone::Plain,
    };
    vec![
        timed("MIN", Keep::If(4), |of| of.min).titled("min"),
        timed("P50", Keep::Always, |of| of.p50),
        timed("P90", Keep::If(3), |of| of.p90),
        timed("P95", Keep::If(6), |of| of.p95),
        timed_by("P99", Keep::Always, p99),
        timed_by("P99.9", Keep::If(2), p99_9),
        timed("MAX", Keep::If(1), |of| of.max).titled("max"),
        timed("TOTAL", Keep::If(5), |of| of.total).titled("total"),
        Column::figures("ITERATIONS", Keep::If(7), iterations).titled("iterations"),
        survives(),
        Column::words("CRASH LEAVES", Keep::Always, |row: &Row| text(row.crash_leaves))
            .titled("a crash leaves")
            .toned(leaves),
    ]
}

fn messages<'a>(group: &Group) -> Vec<Column<'a, Row>> {
    let bytes = |row: &Row| units::bytes(row.bytes_per_run);
    vec![
        counted(group, Keep::Always),
        interval(Keep::If(3)),
        timed("MEAN", Keep::If(4), |of| of.mean.round() as u64).titled("mean"),
        timed("P50", Keep::If(2), |of| of.p50),
        timed("P90", Keep::If(5), |of| of.p90),
        timed_by("P99", Keep::Always, p99),
        timed_by("P99.9", Keep::If(6), p99_9),
        Column::figures("CPU/op", Keep::If(1), cpu_per_operation),
        Column::figures("BYTES", Keep::If(8), bytes).titled("bytes"),
        Column::figures("TIME", Keep::If(7), run_time).titled("time"),
        survives(),
    ]
}

fn metadata<'a>() -> Vec<Column<'a, Row>> {
    let interval = Column::figures("±95%", Keep::If(3), operations_plus_minus).titled("±95 %");
    vec![
        Column::figures("OPS/s", Keep::Always, operations_per_s).titled("ops/s"),
        interval,
        timed("P50", Keep::Always, |of| of.p50),
        timed("P90", Keep::If(5), |of| of.p90),
        timed_by("P99", Keep::Always, p99),
        timed_by("P99.9", Keep::If(4), p99_9),
        timed("MAX", Keep::If(2), |of| of.max).titled("max"),
        Column::figures("CPU/op", Keep::If(1), cpu_per_operation),
        survives(),
    ]
}

fn operations<'a>(group: &'a Group<'a>) -> Vec<Column<'a, Row>> {
    let is_of_files = group.view() == View::Files;
    let rw = Column::words("RW", Keep::If(2), |row: &Row| row.settings.effective.rw.clone());
    let mixes_rw = group.common(|row| row.settings.effective.rw.clone()).is_none();
    let mixes_bs = group.common(block_sizes).is_none() && !is_of_files;
    let mixes_bytes = is_of_files && group.common(|row| row.bytes_per_run).is_none();
    let bytes = |row: &Row| units::bytes(row.bytes_per_run);
    let bs = Column::figures("BS", Keep::If(3), block_sizes).titled("bs");
    // For small operations their rate matters more than their bytes or its interval.
    let (keep, spread) = match group.is_counted() {
        true => (Keep::Last, Keep::If(1)),
        false => (Keep::Always, Keep::Last),
    };
    let rate = Column::figures("THROUGHPUT", keep, throughput).titled("throughput");
    let rate = match group.best() {
        Some(best) => rate.marked(|row| match row {
            row if std::ptr::eq(best, row) => Mark::Best,
            row if row.is_durable() && row.is_tied_with(best) => Mark::Level,
            _ => Mark::None,
        }),
        None => rate,
    };
    // A screen has room for both costs; Markdown has the more informative one.
    let (per_op, per_gb) = if group.costs_by_operation() { (5, 8) } else { (8, 5) };
    let mut costs = [
        Column::figures("CPU s/GB", Keep::If(per_gb), cpu_s_per_gb),
        Column::figures("CPU/op", Keep::If(per_op), cpu_per_operation),
    ];
    costs[usize::from(!group.costs_by_operation())].only = Some(Format::Table);
    let [cost_of_gb, cost_of_operation] = costs;
    let memory = Column::figures("MEMORY", Keep::Always, peak_memory).titled("peak memory");
    [
        mixes_rw.then(|| rw.titled("rw")),
        mixes_bs.then_some(bs),
        Some(rate),
        Some(interval(spread)),
        group.is_counted().then(|| counted(group, Keep::Always)),
        Some(timed("P50", Keep::If(4), |of| of.p50)),
        Some(timed_by("P99", Keep::Always, p99)),
        Some(timed_by("P99.9", Keep::If(7), p99_9)),
        Some(timed("MAX", Keep::If(6), |of| of.max).titled("max")),
        mixes_bytes.then(|| Column::figures("A RUN", Keep::If(1), bytes).titled("a run")),
        Some(cost_of_gb),
        group.is_counted().then_some(cost_of_operation),
        is_of_files.then_some(memory),
        Some(survives()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn timed<'a>(heading: &'a str, keep: Keep, figure: fn(&Latency) -> u64) -> Column<'a, Row> {
    Column::figures(heading, keep, move |row: &Row| latency(row.latency(), figure))
}

fn timed_by<'a>(
    heading: &'a str,
    keep: Keep,
    figure: fn(Option<&Latency>) -> String,
) -> Column<'a, Row> {
    Column::figures(heading, keep, move |row: &Row| figure(row.latency()))
}

fn interval<'a>(keep: Keep) -> Column<'a, Row> {
    Column::figures("±95%", keep, plus_minus).titled("±95 %")
}

fn counted<'a>(group: &Group, keep: Keep) -> Column<'a, Row> {
    let heading = group.counted();
    let title = if heading == "IOPS" { heading.into() } else { heading.to_ascii_lowercase() };
    Column::figures(heading, keep, operations_per_s).titled(title)
}

fn survives<'a>() -> Column<'a, Row> {
    Column::words("SURVIVES", Keep::Always, |row: &Row| text(row.survives))
        .titled("survives")
        .toned(|row| Tone::of_survives(row.survives))
}
