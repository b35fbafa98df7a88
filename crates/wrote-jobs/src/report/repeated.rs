//! Rows of a group of jobs that ran several times.

use super::before::Before;
use super::row::{self, Known};
use crate::jobs::{GroupReport, merged};
use hdrhistogram::Histogram;
use wrote_result::document::{Direction, Row, Run};
use wrote_result::stats;

/// The rows of one job and its clones, or of a way of writing, with the runs so far. It keeps no
/// report, so that its memory does not grow with the runs' histograms.
#[derive(Debug, Default)]
pub struct Repeated {
    /// The rows. Their figures over all runs are those of the first until [`Repeated::rows()`].
    pub rows: Vec<Row>,
    /// The file bytes that all runs wrote.
    pub written_bytes: u64,
    /// The latencies of all runs, of each row.
    latencies_ns: Vec<Histogram<u64>>,
}

impl Repeated {
    /// Returns the rows of one run of jobs. `before` is the state of the files before it.
    pub fn of(group: &GroupReport, before: &Before) -> Repeated {
        let rows = row::rows(group, &mut Known::new(before, false));
        let latencies_ns = rows.iter().map(|row| latencies_ns(group, row.direction)).collect();
        Repeated { rows, written_bytes: group.written_bytes(), latencies_ns }
    }

    /// Returns a row of one run that wrote, with the latencies of its operations.
    pub fn one(row: Row, latencies_ns: Histogram<u64>) -> Repeated {
        let written_bytes = row.bytes_per_run;
        Repeated { rows: vec![row], written_bytes, latencies_ns: vec![latencies_ns] }
    }

    /// Adds the same rows of later runs.
    pub fn add(&mut self, later: Repeated) {
        if self.rows.is_empty() {
            *self = later;
            return;
        }
        self.written_bytes += later.written_bytes;
        for (all_ns, run_ns) in self.latencies_ns.iter_mut().zip(later.latencies_ns) {
            all_ns.add(run_ns).expect("histograms grow, or have the same bounds");
        }
        for (row, later) in self.rows.iter_mut().zip(later.rows) {
            join(row, later);
        }
    }

    /// Returns the rows, each with all of its runs.
    pub fn rows(mut self) -> Vec<Row> {
        for (row, all_ns) in self.rows.iter_mut().zip(&self.latencies_ns) {
            sum_up(row);
            row.latency_ns = row.latency_ns.map(|_| stats::latency(all_ns));
        }
        self.rows
    }
}

/// Adds a later run to a row, with the weaker of the settings in effect.
pub fn join(row: &mut Row, later: Row) {
    // A write survives no more than in the weakest run (M3).
    row.survives = row.survives.min(later.survives);
    row.runs.extend(later.runs);
    let fallbacks = &mut row.settings.fallbacks;
    fallbacks.extend(later.settings.fallbacks);
    fallbacks.sort();
    fallbacks.dedup();
    row.settings.effective.weaken(&later.settings.effective);
}

/// Makes a row's bytes and throughput those of all of its runs.
pub fn sum_up(row: &mut Row) {
    let values = |value: fn(&Run) -> f64| row.runs.iter().map(value).collect::<Vec<f64>>();
    row.bytes_per_run = stats::median(&values(|run| run.bytes as f64)) as u64;
    row.throughput_bytes_per_s = stats::interval(&values(|run| run.throughput_bytes_per_s));
}

fn latencies_ns(group: &GroupReport, direction: Direction) -> Histogram<u64> {
    merged(group.jobs.iter().map(|job| &job.direction(direction).latency_ns))
}
