//! The evidence for findings on jobs: their rows, and the bytes that a device moved for all
//! concurrent jobs together.

use super::before::Before;
use crate::findings::{self, Evidence};
use crate::jobs::{GroupReport, Overlap};
use crate::machine::watch::Watched;
use wrote_result::document::{Direction, Finding, Host, Row, Target};
use wrote_result::stats;

/// The findings that use the device's counters, which cover all concurrent jobs.
const FROM_COUNTERS: [&str; 5] =
    ["ram-not-disk", "direct-not-honoured", "busy-neighbour", "write-amplification", "throttled"];

/// The rows of all groups in two versions: as measured, and as the device saw them.
#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    /// The rows as the device saw them. For rows that ran at the same time, there is one row for
    /// all reads of the group and one for all writes, because the device's counters do not
    /// distinguish jobs.
    seen_by_device: Vec<Row>,
    written_bytes: u64,
    overlaps: Vec<Overlap>,
}

impl Rows {
    pub(super) fn add(&mut self, group: &GroupReport, rows: Vec<Row>) {
        let written = rows.iter().filter(|row| row.direction == Direction::Write);
        self.written_bytes += written.map(|row| row.bytes_per_run).sum::<u64>();
        self.rows.extend(rows.iter().map(without_counters));
        self.overlaps.extend(group.overlaps.iter().cloned());
        match &rows[..] {
            [row] => self.seen_by_device.push(row.clone()),
            _ => {
                for direction in [Direction::Read, Direction::Write] {
                    self.seen_by_device.extend(together(group, &rows, direction));
                }
            }
        }
    }

    /// Returns the findings on the rows. `target` is the disk that the result shows.
    pub(super) fn findings(
        &self,
        target: &Target,
        before: &Before,
        watched: Watched,
        host: &Host,
    ) -> Vec<Finding> {
        let evidence = Evidence {
            debug_build: cfg!(debug_assertions),
            device_counts: before.device_counts,
            in_memory: before.target.in_memory,
            written_bytes_total: self.written_bytes,
            host: host.clone(),
            watched,
            overlaps: self.overlaps.clone(),
            ..Evidence::of_rows(target, &self.rows)
        };
        let of_device = Evidence { rows: &self.seen_by_device, ..evidence.clone() };
        let from_counters = |finding: &Finding| FROM_COUNTERS.contains(&finding.id.as_str());
        let mut found = findings::find(&of_device);
        found.retain(from_counters);
        found.extend(findings::find(&evidence).into_iter().filter(|of| !from_counters(of)));
        wrote_result::finding::sort(&mut found);
        found
    }
}

fn without_counters(row: &Row) -> Row {
    let mut row = row.clone();
    for run in &mut row.runs {
        (run.device_written_bytes, run.device_read_bytes) = (None, None);
    }
    row
}

/// Returns one row that combines all rows of a direction; `None` if there are none. In the other
/// direction, the row contains only those bytes of the device that no other row accounts for.
fn together(group: &GroupReport, rows: &[Row], direction: Direction) -> Option<Row> {
    let (own, others): (Vec<&Row>, Vec<&Row>) =
        rows.iter().partition(|row| row.direction == direction);
    let first = own.first()?;
    let bytes = |rows: &[&Row]| rows.iter().map(|row| row.bytes_per_run).sum::<u64>();
    let mut row = (*first).clone();
    row.name = own.iter().map(|row| row.name.as_str()).collect::<Vec<_>>().join(", ");
    row.settings.effective.direct = rows.iter().all(|row| row.settings.effective.direct);
    // A single row that flushes often makes the device write more than the bytes of all rows.
    let mut flushes = own.iter().map(|row| row.settings.effective.sync);
    if let Some(often) = flushes.find(|sync| !sync.is_seldom()) {
        row.settings.effective.sync = often;
    }
    row.bytes_per_run = bytes(&own);
    let mut run = row.runs.first()?.clone();
    let runs = || own.iter().filter_map(|row| row.runs.first());
    run.iops = runs().map(|run| run.iops).sum();
    run.page_cache_bytes = runs().map(|run| run.page_cache_bytes).sum();
    run.bytes = row.bytes_per_run;
    run.elapsed_s = group.elapsed.as_secs_f64();
    let beyond_others =
        |moved: Option<u64>| moved.map(|moved| moved.saturating_sub(bytes(&others)));
    match direction {
        Direction::Read => run.device_written_bytes = beyond_others(run.device_written_bytes),
        Direction::Write => run.device_read_bytes = beyond_others(run.device_read_bytes),
    }
    run.throughput_bytes_per_s = run.bytes as f64 / run.elapsed_s.max(1e-9);
    row.throughput_bytes_per_s = stats::interval(&[run.throughput_bytes_per_s]);
    row.runs = vec![run];
    Some(row)
}
