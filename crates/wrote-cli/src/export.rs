//! A result as text: one trait, one file a format.

mod comparison;
mod csv;
mod examination;
mod json;
mod langs;
mod markdown;
mod table;

pub use comparison::write_comparison;
pub use csv::Csv;
pub use examination::write_examination;
pub use json::Json;
pub use langs::{write_langs, write_languages};
pub use markdown::Markdown;
pub use table::Table;
pub(crate) use table::plain;

use crate::args::Format;
use crate::terminal::Screen;
use std::io::{self, Write};
use wrote::Survives;
use wrote_jobs::rate::Reached;
use wrote_result::document::{Direction, Document, Interval, Knee, Latency, Row, Scenario};
use wrote_result::{stats, units};

/// Operations up to this size are counted: what matters of them is how many there are a second.
const COUNTED_BYTES_MAX: u64 = 64 << 10;

/// A way of writing a result.
pub trait Export {
    /// Writes the whole of `document` to `out`, ending with a line feed.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    fn export(&self, document: &Document, out: &mut dyn Write) -> io::Result<()>;
}

/// The export for a format; `screen` is where the text will be read.
pub fn exporter(format: Format, screen: Screen) -> Box<dyn Export> {
    match format {
        Format::Table => Box::new(Table::new(screen)),
        Format::Json => Box::new(Json),
        Format::Csv => Box::new(Csv),
        Format::Markdown => Box::new(Markdown),
    }
}

/// Writes fio's own document, pretty-printed as fio does.
///
/// # Errors
///
/// Those of `out`.
pub fn write_fio_json(
    document: &wrote_jobs::fio_json::Document,
    out: &mut dyn Write,
) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, document)?;
    writeln!(out)
}

/// The rows of one scenario that are compared with each other.
struct Group<'a> {
    /// The name that they share: `stream`.
    workload: &'a str,
    /// Never empty.
    rows: Vec<&'a Row>,
}

impl<'a> Group<'a> {
    /// A scenario's groups, in the order in which they were measured.
    fn all_of(scenario: &'a Scenario) -> Vec<Group<'a>> {
        let mut groups: Vec<Group<'a>> = Vec::new();
        for row in &scenario.rows {
            match groups.iter_mut().find(|group| group.workload == row.workload) {
                Some(group) => group.rows.push(row),
                None => groups.push(Group { workload: &row.workload, rows: vec![row] }),
            }
        }
        groups
    }

    /// Whether whole files were timed: no operation has a latency, and what a way takes of the memory
    /// is told.
    fn is_of_whole_files(&self) -> bool {
        self.rows.iter().all(|row| row.is_of_whole_files())
    }

    /// Whether messages were appended: what counts is how many there were a second.
    fn is_of_messages(&self) -> bool {
        self.rows.iter().all(|row| row.is_of_messages())
    }

    /// Whether a small text was saved again and again: what counts is how long that took.
    fn is_of_saves(&self) -> bool {
        self.rows.iter().all(|row| row.is_of_saves())
    }

    /// The fastest row that may be the best.
    fn fastest_durable(&self) -> Option<&'a Row> {
        let durable = |row: &&&Row| is_durable(row);
        let faster = |a: &&&Row, b: &&&Row| {
            a.throughput_bytes_per_s.median.total_cmp(&b.throughput_bytes_per_s.median)
        };
        self.rows.iter().filter(durable).max_by(faster).copied()
    }

    /// Whether the operations are so small or so scattered that one counts them.
    fn is_counted(&self) -> bool {
        !self.is_of_whole_files()
            && self.rows.iter().any(|row| is_random(row) || bs_bytes(row) <= COUNTED_BYTES_MAX)
    }

    /// Whether what an operation costs says more than what a gigabyte costs.
    fn costs_by_operation(&self) -> bool {
        self.is_counted()
            && self.rows.iter().any(|row| is_random(row) || row.direction == Direction::Read)
    }

    /// Whether the rows are known by their names, as jobs are; else the way says what they are.
    fn has_names(&self) -> bool {
        let is_of_workload = |row: &Row| {
            row.name.strip_prefix(self.workload).is_some_and(|rest| rest.starts_with('/'))
        };
        !self.rows.iter().all(|row| is_of_workload(row))
    }

    /// What tells the rows apart: the title over it, and the text of each row.
    fn label(&self) -> (&'static str, fn(&Row) -> &str) {
        if self.has_names() { ("JOB", |row| &row.name) } else { ("WAY", |row| &row.way) }
    }

    /// What is counted, as a title.
    fn counted(&self) -> &'static str {
        match self.direction() {
            Some(Direction::Write) => "WRITES/s",
            Some(Direction::Read) => "READS/s",
            None => "IOPS",
        }
    }

    /// The direction of all rows, where they have the same.
    fn direction(&self) -> Option<Direction> {
        self.common(|row| row.direction)
    }

    /// What all rows have, where it is the same.
    fn common<T: PartialEq>(&self, of: impl Fn(&Row) -> T) -> Option<T> {
        let first = of(self.rows[0]);
        self.rows.iter().all(|row| of(row) == first).then_some(first)
    }

    /// The throughput of the fastest row, in bytes per second.
    fn fastest_bytes_per_s(&self) -> f64 {
        self.rows.iter().map(|row| row.throughput_bytes_per_s.median).fold(0.0, f64::max)
    }

    /// What was done, and how often: `512 KiB writes, 1.07 GB a run, 3 runs`. Says what all rows
    /// have in common.
    fn summary(&self) -> String {
        let row = self.rows[0];
        let runs = self.rows.iter().map(|row| row.runs.len()).max().unwrap_or(0);
        if self.is_of_saves() {
            let runs = if runs == 1 { "1 run".into() } else { format!("{runs} runs") };
            return format!(
                "{} characters, {} saves of each in {runs}",
                bs_bytes(row),
                iterations(row)
            );
        }
        let mut parts = vec![self.operations()];
        if !self.is_counted() && self.common(|row| row.settings.asked.size_bytes).is_some() {
            parts.push(format!("{} a run", units::bytes(row.bytes_per_run)));
        }
        parts.push(if runs == 1 { "1 run".into() } else { format!("{runs} runs of each") });
        let jobs = self.common(|row| row.settings.effective.numjobs);
        if let Some(jobs) = jobs.filter(|jobs| *jobs > 1) {
            parts.push(format!("{jobs} jobs"));
        }
        let summary = parts.join(", ");
        match self.open_loop() {
            Some(open_loop) => format!("{summary}; {open_loop}"),
            None => summary,
        }
    }

    /// What all rows are held to, where all are at a rate: `open loop: 5000/s, poisson; latency from
    /// when each was due`.
    fn open_loop(&self) -> Option<String> {
        if !self.rows.iter().all(|row| row.is_open_loop()) {
            return None;
        }
        let process = self.common(|row| row.settings.asked.rate_process.clone()).flatten();
        let rate = self.common(held_to).filter(|_| !self.is_of_load());
        let facts: Vec<String> = rate.into_iter().chain(process).collect();
        let facts =
            if facts.is_empty() { String::new() } else { format!(": {}", facts.join(", ")) };
        Some(format!("open loop{facts}; latency from when each was due"))
    }

    /// Whether the rows are one workload at parts of the load that a closed loop reaches.
    fn is_of_load(&self) -> bool {
        self.rows.iter().all(|row| row.settings.asked.load_share.is_some())
    }

    /// Whether some rows are at a rate and others are not: then those are marked.
    fn mixes_loops(&self) -> bool {
        let open = self.rows.iter().filter(|row| row.is_open_loop()).count();
        0 < open && open < self.rows.len()
    }

    /// The mark of a row that is at a rate among others that are not.
    fn loop_mark(&self, row: &Row) -> &'static str {
        if self.mixes_loops() && row.is_open_loop() { OPEN_LOOP_MARK } else { "" }
    }

    /// `4 KiB random reads`.
    fn operations(&self) -> String {
        if let Some(sizes) = self.common(block_sizes).filter(|_| self.is_of_messages()) {
            return format!("messages of {sizes}");
        }
        let size = match self.common(bs_bytes) {
            Some(bs_bytes) => units::block_size(bs_bytes) + " ",
            None => String::new(),
        };
        let random = if self.rows.iter().all(|row| is_random(row)) { "random " } else { "" };
        let operations = match self.direction() {
            Some(Direction::Write) => "writes",
            Some(Direction::Read) => "reads",
            None => "reads and writes",
        };
        format!("{size}{random}{operations}")
    }
}

/// Stands at rows at a rate among others that are not.
const OPEN_LOOP_MARK: &str = "@ ";
/// What that says.
const OPEN_LOOP_LEGEND: &str = "@ at a rate (an open loop): latency counts from when each operation was due; that of the others \
     from when it was handed on, and while the disk stands still they hand nothing on";

/// The rate that a row is held to, over all of its jobs: `5000/s`, `20.0 MB/s`; empty where it is held
/// to none.
fn held_to(row: &Row) -> String {
    match Reached::of(row) {
        None => String::new(),
        Some(rate) if rate.is_of_operations => per_second(rate.asked_per_s),
        Some(rate) => units::rate(rate.asked_per_s),
    }
}

/// Whether a row came to the rate that it is held to, if it is.
fn is_reached(row: &Row) -> bool {
    Reached::of(row).is_none_or(|rate| rate.is_reached)
}

/// The part of what a closed loop reaches: `70 %`.
fn load_percent(row: &Row) -> String {
    let share = row.settings.asked.load_share;
    share.map(|share| format!("{:.0} %", share * 100.0)).unwrap_or_default()
}

/// Where a curve bends: `the knee: 41.0 k/s (70 % of the closed loop's 58.1 k/s): P99 310 us`.
fn knee_told(group: &Group, knee: Option<&Knee>) -> String {
    let row = |knee: &Knee| group.rows.iter().find(|row| row.name == knee.row).copied();
    let Some((knee, row)) = knee.and_then(|knee| Some((knee, row(knee)?))) else {
        return "no knee: the latency does not bend within these rates".into();
    };
    let asked = Reached::of(row).map_or(0.0, |rate| rate.asked_per_s);
    let whole = asked / row.settings.asked.load_share.unwrap_or(1.0);
    format!(
        "the knee: {} ({} of the closed loop's {}): P99 {}",
        per_second(knee.iops),
        load_percent(row),
        per_second(whole),
        units::nanoseconds(knee.p99_ns)
    )
}

/// How far the interval of the throughput reaches from the median, in percent; empty where a single
/// run says nothing about it.
fn plus_minus(row: &Row) -> String {
    if row.runs.len() < 2 { String::new() } else { within(&row.throughput_bytes_per_s) }
}

/// How far an interval reaches from its median, in percent.
fn within(interval: &Interval) -> String {
    let percent = stats::relative_width(interval) * 100.0;
    match percent {
        // The interval is then wider than the number: how much so is of no use.
        p if p > 999.0 => "±>999%".into(),
        p if p > 0.0 && p < 0.95 => "±<1%".into(),
        p => format!("±{p:.0}%"),
    }
}

fn bs_bytes(row: &Row) -> u64 {
    row.settings.effective.bs_bytes
}

fn is_random(row: &Row) -> bool {
    row.settings.effective.rw.starts_with("rand")
}

/// The block size, or the sizes: `4 KiB`, `4 KiB..64 KiB`.
fn block_sizes(row: &Row) -> String {
    let effective = &row.settings.effective;
    let split = effective.bssplit.iter().flatten().map(|share| share.bytes);
    let least = split.chain(effective.message_bytes_min).min();
    match least.filter(|least| *least < bs_bytes(row)) {
        Some(least) => {
            format!("{}..{}", units::block_size(least), units::block_size(bs_bytes(row)))
        }
        None => units::block_size(bs_bytes(row)),
    }
}

/// A figure of the latencies; empty where no operation was timed.
fn latency(row: &Row, figure: fn(&Latency) -> u64) -> String {
    row.latency_ns.as_ref().map(figure).map(units::nanoseconds).unwrap_or_default()
}

/// The mean of the latencies; empty where no operation was timed.
fn mean_latency(row: &Row) -> String {
    let mean = row.latency_ns.as_ref().map(|of| of.mean.round() as u64);
    mean.map(units::nanoseconds).unwrap_or_default()
}

/// How many operations were timed; empty where none was.
fn iterations(row: &Row) -> String {
    row.latency_ns.as_ref().map(|of| of.count.to_string()).unwrap_or_default()
}

/// What a crash may leave of the file; empty where no file was saved whole.
fn crash_leaves(row: &Row) -> &str {
    row.crash_leaves.as_deref().unwrap_or_default()
}

/// What sync costs in a workload of saves: `52.1 times as long by P50: fs::write, fsync (1.20 ms)
/// against fs::write (23.0 us)`.
fn sync_cost_lines(group: &Group) -> Vec<String> {
    let p50 = |row: &Row| latency(row, |of| of.p50);
    let costs = wrote_bench::sync_costs(&group.rows);
    let line = |cost: &wrote_bench::SyncCost| {
        format!(
            "{} times as long by P50: {} ({}) against {} ({})",
            times(cost.times),
            cost.with.way,
            p50(cost.with),
            cost.without.way,
            p50(cost.without),
        )
    };
    costs.iter().map(line).collect()
}

/// A factor, with three significant digits or all before the point.
fn times(factor: f64) -> String {
    match factor {
        f if f >= 99.95 => format!("{f:.0}"),
        f if f >= 9.995 => format!("{f:.1}"),
        f => format!("{f:.2}"),
    }
}

/// How long a run took: the median.
fn run_time(row: &Row) -> String {
    let times: Vec<f64> = row.runs.iter().map(|run| run.elapsed_s).collect();
    units::seconds(stats::median(&times))
}

/// The peak of memory of one run: the median. Empty where it is not known.
fn peak_memory(row: &Row) -> String {
    let peaks: Vec<f64> =
        row.runs.iter().filter_map(|run| run.max_rss_bytes).map(|bytes| bytes as f64).collect();
    if peaks.is_empty() { String::new() } else { units::bytes(stats::median(&peaks) as u64) }
}

/// Whether random bytes survive a power loss: what a drive can compress says little of others.
fn is_durable(row: &Row) -> bool {
    survives(row) == Survives::PowerLoss.as_str() && row.settings.effective.data.is_none()
}

/// Whether two rows can't be told apart.
fn are_level(row: &Row, other: &Row) -> bool {
    !stats::distinguishable(&row.throughput_bytes_per_s, &other.throughput_bytes_per_s)
}

/// What a write survives; empty of reads.
fn survives(row: &Row) -> &str {
    row.survives.as_deref().unwrap_or_default()
}

/// CPU time of one operation: `1.85 us`.
fn cpu_per_operation(row: &Row) -> String {
    units::nanoseconds((row.cpu_s_per_operation() * 1e9).round() as u64)
}

/// Operations per second: the median over the runs, with three significant digits and thousands apart.
fn operations_per_s(row: &Row) -> String {
    let iops: Vec<f64> = row.runs.iter().map(|run| run.iops).collect();
    per_second(stats::median(&iops))
}

/// So many a second, with three significant digits and thousands apart.
fn per_second(iops: f64) -> String {
    match iops {
        i if i >= 1e6 => format!("{:.2} M/s", i / 1e6),
        i if i >= 99_950.0 => format!("{:.0} k/s", i / 1e3),
        i if i >= 9_995.0 => format!("{:.1} k/s", i / 1e3),
        i if i >= 999.5 => format!("{:.2} k/s", i / 1e3),
        i => format!("{i:.0} /s"),
    }
}

/// CPU seconds a gigabyte.
fn cpu_s_per_gb(row: &Row) -> String {
    cpu_seconds(row.cpu_s_per_gb())
}

/// CPU seconds, with two or three significant digits.
fn cpu_seconds(cpu_s: f64) -> String {
    match cpu_s {
        cost if cost >= 99.5 => format!("{cost:.0}"),
        cost if cost >= 9.95 => format!("{cost:.1}"),
        cost => format!("{cost:.2}"),
    }
}

/// Whether this row is something else than what was asked: by a fallback, or by messages that are not
/// there.
fn fell_back(row: &Row) -> bool {
    !row.settings.fallbacks.is_empty() || !row.has_all_records()
}
