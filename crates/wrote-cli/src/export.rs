//! A result as text: one trait, one file a format.

mod csv;
mod json;
mod markdown;
mod table;

pub use csv::Csv;
pub use json::Json;
pub use markdown::Markdown;
pub use table::Table;

use crate::args::Format;
use crate::terminal::Screen;
use std::io::{self, Write};
use wrote_bench::result::{Document, Row, Scenario};
use wrote_bench::{stats, units};

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

    /// Whether the writes are so small that one counts them: `small`, not `stream`.
    fn is_counted(&self) -> bool {
        self.workload != "stream"
    }

    /// The throughput of the fastest row, in bytes per second.
    fn fastest_bytes_per_s(&self) -> f64 {
        self.rows.iter().map(|row| row.throughput_bytes_per_s.median).fold(0.0, f64::max)
    }

    /// What was written, and how often: `512 KiB writes, 1.07 GB a run, 3 runs`. Says what the
    /// first row did; all rows of a group are asked for the same.
    fn summary(&self) -> String {
        let row = self.rows[0];
        let runs = self.rows.iter().map(|row| row.runs.len()).max().unwrap_or(0);
        let mut parts =
            vec![format!("{} writes", units::block_size(row.settings.effective.bs_bytes))];
        if !self.is_counted() {
            parts.push(format!("{} a run", units::bytes(row.bytes_per_run)));
        }
        parts.push(if runs == 1 { "1 run".into() } else { format!("{runs} runs of each") });
        let jobs = row.settings.effective.numjobs;
        if jobs > 1 {
            parts.push(format!("{jobs} jobs"));
        }
        parts.join(", ")
    }
}

/// How far the interval of the throughput reaches from the median, in percent; empty where a single
/// run says nothing about it.
fn plus_minus(row: &Row) -> String {
    if row.runs.len() < 2 {
        return String::new();
    }
    let percent = stats::relative_width(&row.throughput_bytes_per_s) * 100.0;
    match percent {
        // The interval is then wider than the number: how much so is of no use.
        p if p > 999.0 => "±>999%".into(),
        p if p > 0.0 && p < 0.95 => "±<1%".into(),
        p => format!("±{p:.0}%"),
    }
}

/// Writes per second: the median over the runs, with three significant digits and thousands apart.
fn writes_per_s(row: &Row) -> String {
    let iops: Vec<f64> = row.runs.iter().map(|run| run.iops).collect();
    let iops = stats::median(&iops);
    match iops {
        i if i >= 1e6 => format!("{:.2} M/s", i / 1e6),
        i if i >= 99_950.0 => format!("{:.0} k/s", i / 1e3),
        i if i >= 9_995.0 => format!("{:.1} k/s", i / 1e3),
        i if i >= 999.5 => format!("{:.2} k/s", i / 1e3),
        i => format!("{i:.0} /s"),
    }
}

/// CPU seconds a gigabyte, with two or three significant digits.
fn cpu_s_per_gb(row: &Row) -> String {
    match row.cpu_s_per_gb() {
        cost if cost >= 99.5 => format!("{cost:.0}"),
        cost if cost >= 9.95 => format!("{cost:.1}"),
        cost => format!("{cost:.2}"),
    }
}

/// Whether a fallback of this row makes it something else than what was asked.
fn fell_back(row: &Row) -> bool {
    !row.settings.fallbacks.is_empty()
}
