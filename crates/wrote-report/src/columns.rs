//! The columns of a table, for every format: one list for each view of rows.

use crate::Format;
use crate::figures::*;
use crate::group::Group;
use crate::paint::{Mark, Tone};
use std::borrow::Cow;
use wrote_result::document::{CrashLeaves, Latency, Row, View};
use wrote_result::units;

/// The text of a cell, or its mark.
type Text<'a, T, V> = Box<dyn Fn(&T) -> V + 'a>;

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
    /// The only format that has the column, where not all have it.
    only: Option<Format>,
    pub cell: Text<'a, T, String>,
    /// The mark behind a cell on a screen.
    pub mark: Option<Text<'a, T, Mark>>,
    /// The colour of a cell on a screen.
    pub tone: fn(&T) -> Tone,
    /// Whether a cell is bold in Markdown.
    pub bold: fn(&T) -> bool,
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
    /// A screen has it if there is room; the highest number is dropped first.
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
            only: None,
            cell: Box::new(cell),
            mark: None,
            tone: |_| Tone::Plain,
            bold: |_| false,
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

    fn only(self, format: Format) -> Column<'a, T> {
        Column { only: Some(format), ..self }
    }

    /// Marks the cells on a screen.
    pub fn marked(self, mark: impl Fn(&T) -> Mark + 'a) -> Column<'a, T> {
        Column { mark: Some(Box::new(mark)), ..self }
    }

    fn toned(self, tone: fn(&T) -> Tone) -> Column<'a, T> {
        Column { tone, ..self }
    }
}

/// Returns the columns of a format that have any text. A single run has no interval; a read
/// survives nothing.
pub fn shown<'a, T: 'a>(
    columns: Vec<Column<'a, T>>,
    format: Format,
    rows: &[&T],
) -> Vec<Column<'a, T>> {
    let has = |column: &Column<T>| {
        column.only.is_none_or(|only| only == format)
            && rows.iter().any(|row| !(column.cell)(row).is_empty())
    };
    columns.into_iter().filter(has).collect()
}

/// The columns of a workload. The first one on a screen names the rows.
pub fn columns<'a>(group: &'a Group<'a>) -> Vec<Column<'a, Row>> {
    let mut columns = match group.view() {
        View::Curve => return curve(),
        View::Saves => saves(),
        View::Messages => messages(group),
        View::Metadata => metadata(),
        View::Operations | View::Files | View::Long => operations(group),
    };
    columns.splice(0..0, names(group));
    columns
}

/// The columns that tell the rows apart.
fn names<'a>(group: &'a Group<'a>) -> Vec<Column<'a, Row>> {
    let way = Column::words("WAY", Keep::Always, |row: &Row| row.way.clone()).titled("way");
    let job = Column::words("JOB", Keep::Always, |row: &Row| row.name.clone()).titled("job");
    let rate = Column::figures("@ rate", Keep::Always, asked_rate).only(Format::Markdown);
    let rate = group.mixes_loops().then_some(rate);
    match group.has_names() {
        true => [job].into_iter().chain(rate).chain([way.only(Format::Markdown)]).collect(),
        false => rate.into_iter().chain([way]).collect(),
    }
}

fn curve<'a>() -> Vec<Column<'a, Row>> {
    let missed = |row: &Row| if is_reached(row) { Mark::None } else { Mark::Missed };
    vec![
        Column::figures("LOAD", Keep::Always, load_percent).titled("load"),
        Column::figures("RATE", Keep::Always, asked_rate).titled("rate"),
        Column::figures("ACHIEVED", Keep::Always, operations_per_s)
            .titled("achieved")
            .marked(missed),
        timed("P50", Keep::Always, |of| of.p50),
        timed_by("P99", Keep::Always, p99),
        timed_by("P99.9", Keep::Always, p99_9),
    ]
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
    let bs = Column::figures("BS", Keep::If(3), block_sizes).titled("bs");
    let rate = Column::figures("THROUGHPUT", Keep::Always, throughput).titled("throughput");
    let rate = match group.best() {
        Some(best) => rate.marked(|row| match row {
            row if std::ptr::eq(best, row) => Mark::Best,
            row if row.is_durable() && row.is_tied_with(best) => Mark::Level,
            _ => Mark::None,
        }),
        None => rate,
    };
    // A screen has room for both costs; Markdown has the one that says more.
    let (per_op, per_gb) = if group.costs_by_operation() { (5, 8) } else { (8, 5) };
    let mut costs = [
        Column::figures("CPU s/GB", Keep::If(per_gb), cpu_s_per_gb),
        Column::figures("CPU/op", Keep::If(per_op), cpu_per_operation),
    ];
    costs[usize::from(!group.costs_by_operation())].only = Some(Format::Table);
    let [cost_of_gb, cost_of_operation] = costs;
    // Of small operations their number says more than how sure it is.
    let spread = if group.is_counted() { Keep::If(1) } else { Keep::Always };
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
