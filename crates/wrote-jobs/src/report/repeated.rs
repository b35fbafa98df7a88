//! Rows of a group of jobs that ran several times.

use super::before::Before;
use super::known::Known;
use super::row;
use crate::jobs::{GroupReport, merged};
use hdrhistogram::Histogram;
use wrote_result::document::{Direction, Row, Run};
use wrote_result::stats;

/// The rows of one job and its clones, with the runs so far. It keeps no report, so that its memory
/// does not grow with the runs' histograms.
#[derive(Debug, Default)]
pub struct Repeated {
    rows: Vec<Row>,
    /// The latencies of all runs, of each row.
    latencies_ns: Vec<Histogram<u64>>,
}

impl Repeated {
    /// Adds a run. `before` is the state of the files before it.
    pub fn add(&mut self, group: &GroupReport, before: &Before) {
        let rows = row::rows(group, &mut Known::new(before, false));
        let latencies_ns = rows.iter().map(|row| latencies_ns(group, row.direction));
        if self.rows.is_empty() {
            self.latencies_ns = latencies_ns.collect();
            self.rows = rows;
            return;
        }
        for (all_ns, run_ns) in self.latencies_ns.iter_mut().zip(latencies_ns) {
            all_ns.add(run_ns).expect("it grows as it must");
        }
        for (row, later) in self.rows.iter_mut().zip(rows) {
            join(row, later);
        }
    }

    /// Returns the rows, each with all of its runs.
    pub fn rows(mut self) -> Vec<Row> {
        for (row, all_ns) in self.rows.iter_mut().zip(&self.latencies_ns) {
            let values = |value: fn(&Run) -> f64| row.runs.iter().map(value).collect::<Vec<f64>>();
            row.bytes_per_run = stats::median(&values(|run| run.bytes as f64)) as u64;
            row.throughput_bytes_per_s = stats::interval(&values(|run| run.throughput_bytes_per_s));
            row.latency_ns = row.latency_ns.map(|_| stats::latency(all_ns));
        }
        self.rows
    }
}

/// Returns the rows of one job and its clones, each with all of its runs. `before` is the state of
/// the files before each run.
pub fn repeated(runs: &[GroupReport], before: &Before) -> Vec<Row> {
    let mut repeated = Repeated::default();
    runs.iter().for_each(|group| repeated.add(group, before));
    repeated.rows()
}

/// Adds a later run to a row, with the weaker of the settings in effect.
fn join(row: &mut Row, later: Row) {
    // A write survives no more than in the weakest run (M3).
    row.survives = row.survives.min(later.survives);
    row.runs.extend(later.runs);
    let fallbacks = &mut row.settings.fallbacks;
    fallbacks.extend(later.settings.fallbacks);
    fallbacks.sort();
    fallbacks.dedup();
    row.settings.effective.weaken(&later.settings.effective);
}

fn latencies_ns(group: &GroupReport, direction: Direction) -> Histogram<u64> {
    merged(group.jobs.iter().map(|job| &job.direction(direction).latency_ns))
}
