//! The rows of a group of jobs that was run several times.

use super::before::Before;
use super::known::Known;
use super::row;
use crate::fio_json::merged;
use crate::jobs::GroupReport;
use wrote_result::document::{Direction, Row, Run};
use wrote_result::stats;

/// The rows of one job and its clones, each with all of its runs. `before` is how the files were
/// before each run.
pub fn repeated(runs: &[GroupReport], before: &Before) -> Vec<Row> {
    let each = runs.iter().map(|group| row::rows(group, &mut Known::new(before, false)));
    let Some(mut rows) = each.reduce(joined) else { return Vec::new() };
    for row in &mut rows {
        let values = |value: fn(&Run) -> f64| row.runs.iter().map(value).collect::<Vec<f64>>();
        row.bytes_per_run = stats::median(&values(|run| run.bytes as f64)) as u64;
        row.throughput_bytes_per_s = stats::interval(&values(|run| run.throughput_bytes_per_s));
        row.latency_ns = row.latency_ns.map(|_| latency(runs, row.direction));
    }
    rows
}

/// Rows with the runs of both, and the weakest of what was in effect.
fn joined(mut rows: Vec<Row>, later: Vec<Row>) -> Vec<Row> {
    for (row, later) in rows.iter_mut().zip(later) {
        row.runs.extend(later.runs);
        let fallbacks = &mut row.settings.fallbacks;
        fallbacks.extend(later.settings.fallbacks);
        fallbacks.sort();
        fallbacks.dedup();
        row.settings.effective.weaken(&later.settings.effective);
    }
    rows
}

fn latency(runs: &[GroupReport], direction: Direction) -> wrote_result::document::Latency {
    let jobs = runs.iter().flat_map(|group| &group.jobs);
    stats::latency(&merged(jobs.map(|job| &job.direction(direction).latency_ns)))
}
