//! The columns of a table, for every format: one list for each view of rows.

use crate::Format;
use crate::figures::*;
use crate::group::Group;
use crate::paint::{Mark, Tone};
use crate::table::{Text, Texts};
use std::borrow::Cow;
use wrote_result::document::{CrashLeaves, Latency, Row, View};
use wrote_result::units;

/// The text of a cell, its mark, or its colour.
type Cell<'a, T, V> = Box<dyn Fn(&T) -> V + 'a>;

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
    /// How it is broken into lines on a screen, if it may be.
    pub flex: Option<Flex>,
    /// The only format that has the column, where not all have it.
    only: Option<Format>,
    /// Whether it is shown without any text in it.
    is_kept: bool,
    cell: Cell<'a, T, String>,
    /// The sign in front of a cell on a screen.
    before: Option<Cell<'a, T, &'static str>>,
    /// The text of a cell on a screen without room for all of it.
    short: Option<Cell<'a, T, String>>,
    /// The mark behind a cell on a screen.
    mark: Option<Cell<'a, T, Mark>>,
    /// The colour of a cell on a screen.
    tone: Cell<'a, T, Tone>,
    /// Whether a cell is bold in Markdown.
    bold: fn(&T) -> bool,
}

/// The widths of a column that is broken into lines before others are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flex {
    /// It never becomes narrower.
    pub least: usize,
    /// Columns are dropped before it becomes narrower.
    pub easy: usize,
}

/// The name is broken into lines before an important column is dropped, but never into narrower
/// lines.
const NAME_WIDTH_MIN: usize = 16;
/// Columns are dropped before the name becomes narrower than this.
const NAME_WIDTH_EASY: usize = 28;

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
    /// It is dropped when no other column is left to drop.
    Last,
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
            flex: None,
            only: None,
            is_kept: false,
            cell: Box::new(cell),
            before: None,
            short: None,
            mark: None,
            tone: Box::new(|_| Tone::Plain),
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

    /// Puts a sign in front of the cells on a screen.
    pub fn before(self, before: impl Fn(&T) -> &'static str + 'a) -> Column<'a, T> {
        Column { before: Some(Box::new(before)), ..self }
    }

    /// Gives the cells shorter texts for a screen without room for the whole.
    pub fn short(self, short: impl Fn(&T) -> String + 'a) -> Column<'a, T> {
        Column { short: Some(Box::new(short)), ..self }
    }

    /// Colours the cells on a screen.
    pub fn toned(self, tone: impl Fn(&T) -> Tone + 'a) -> Column<'a, T> {
        Column { tone: Box::new(tone), ..self }
    }

    /// Makes some of the cells bold in Markdown.
    pub fn bold(self, bold: fn(&T) -> bool) -> Column<'a, T> {
        Column { bold, ..self }
    }

    /// Breaks the cells into lines on a narrow screen.
    pub fn flexible(self, least: usize, easy: usize) -> Column<'a, T> {
        Column { flex: Some(Flex { least, easy }), ..self }
    }

    /// Shows the column even without any text in it.
    pub fn kept(self) -> Column<'a, T> {
        Column { is_kept: true, ..self }
    }

    /// Returns the texts of `rows`.
    pub fn texts(&self, rows: &[&T]) -> Texts {
        let text = |row: &&T| Text {
            text: (self.cell)(row),
            before: self.before.as_ref().map_or("", |before| before(row)),
            short: self.short.as_ref().map(|short| short(row)),
            mark: self.mark.as_ref().map(|mark| mark(row)),
            tone: (self.tone)(row),
            is_bold: (self.bold)(row),
        };
        Texts {
            heading: self.heading.to_string(),
            title: self.title.to_string(),
            kind: self.kind,
            keep: self.keep,
            flex: self.flex,
            only: self.only,
            is_kept: self.is_kept,
            cells: rows.iter().map(text).collect(),
        }
    }
}

/// The columns of a workload. The first one on a screen names the rows.
pub fn columns<'a>(group: &'a Group<'a>) -> Vec<Column<'a, Row>> {
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

/// The columns that tell the rows apart.
fn names<'a>(group: &'a Group<'a>) -> Vec<Column<'a, Row>> {
    // The names of saves are short.
    let easy = if group.view() == View::Saves { NAME_WIDTH_MIN } else { NAME_WIDTH_EASY };
    let named = |column: Column<'a, Row>| {
        column
            .flexible(NAME_WIDTH_MIN, easy)
            .before(|row| group.loop_mark(row))
            .marked(|row| if fell_back(row) { Mark::FellBack } else { Mark::None })
    };
    let way = Column::words("WAY", Keep::Always, |row: &Row| row.way.clone()).titled("way");
    let job = Column::words("JOB", Keep::Always, |row: &Row| row.name.clone()).titled("job");
    let rate = Column::figures("@ rate", Keep::Always, asked_rate).only(Format::Markdown);
    let rate = group.mixes_loops().then_some(rate);
    match group.has_names() {
        true => [named(job)].into_iter().chain(rate).chain([way.only(Format::Markdown)]).collect(),
        false => rate.into_iter().chain([named(way)]).collect(),
    }
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
