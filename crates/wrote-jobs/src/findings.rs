//! Findings: facts about a run that its numbers do not show, explained in `docs/findings.md`. A
//! finding is reported only if there is enough evidence for it.

mod bytes;
mod device;
mod jobs;
mod machine;
mod place;
mod rows;
#[cfg(test)]
mod tests;

pub use bytes::{counts, source_bytes, stayed_in_memory};
pub use jobs::no_io;
pub use place::{Longer, longer};

use crate::jobs::Overlap;
use crate::machine::watch::Watched;
use std::time::Duration;
use wrote_result::document::{Direction, Finding, Host, Reached, Row, Target};
use wrote_result::{finding, units};

/// The measurements and circumstances of a finished run.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    /// The file system under the path and its device, with the free space before the run.
    pub target: &'a Target,
    /// All measured rows.
    pub rows: &'a [Row],
    /// Whether the program was built with debug assertions.
    pub debug_build: bool,
    /// Whether the device's counters are enabled (`queue/iostats` is on).
    pub device_counts: bool,
    /// Whether the file system is in memory (tmpfs, ramfs).
    pub in_memory: bool,
    /// The rate at which the generator produces data, in bytes per second; 0 if not measured.
    pub generator_bytes_per_s: f64,
    /// The number of file bytes written by all runs together.
    pub written_bytes_total: u64,
    /// The machine.
    pub host: Host,
    /// The machine's state during the measurement, as far as it affects the result.
    pub watched: Watched,
    /// Pairs of jobs that used the same bytes at the same time. In each pair, at least one job
    /// wrote.
    pub overlaps: Vec<Overlap>,
    /// Folders that earlier runs left under the path.
    pub leftovers: Vec<String>,
    /// Requested rows that could not be measured, each with the reason.
    pub left_out: Vec<(String, String)>,
    /// How far a time limit reduced the number of runs; `None` if it did not.
    pub shortened: Option<Shortened>,
    /// The burst that the disk accepts above its sustained rate; `None` if none was found.
    pub burst: Option<Burst>,
    /// The rates of the first and the second write to the same blocks; `None` if not measured.
    pub first_touch: Option<FirstTouch>,
    /// Whether the user ended the run early.
    pub interrupted: bool,
}

/// The burst of a disk with a token bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burst {
    /// The number of bytes that the disk accepts beyond its sustained rate.
    pub bytes: u64,
    /// The sustained rate.
    pub bytes_per_s: f64,
    /// Whether each run began with an empty bucket.
    pub is_left_out: bool,
}

/// The rates of a stream into new blocks, and of a second stream over the same blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FirstTouch {
    /// The rate of the first stream, including its flush.
    pub first_bytes_per_s: f64,
    /// The rate of the second stream.
    pub again_bytes_per_s: f64,
}

/// The effect of a time limit on the number of runs. Rows that were left out are ignored.
#[derive(Clone, Debug, PartialEq)]
pub struct Shortened {
    /// The number of runs of each row if there is enough time.
    pub runs_asked: u32,
    /// The minimum number of runs of a measured row.
    pub runs_min: u32,
    /// The time limit, from the program's start to its end.
    pub within: Duration,
}

impl<'a> Evidence<'a> {
    /// Returns evidence that consists of these rows, and otherwise shows no flaw.
    pub fn of_rows(target: &'a Target, rows: &'a [Row]) -> Evidence<'a> {
        Evidence {
            target,
            rows,
            debug_build: false,
            device_counts: true,
            in_memory: false,
            generator_bytes_per_s: 0.0,
            written_bytes_total: 0,
            host: Host::default(),
            watched: Watched::default(),
            overlaps: Vec::new(),
            leftovers: Vec::new(),
            left_out: Vec::new(),
            shortened: None,
            burst: None,
            first_touch: None,
            interrupted: false,
        }
    }

    /// Returns the selected rows; `None` if there are none.
    pub fn rows_where(&self, is_selected: impl Fn(&Row) -> bool) -> Option<Vec<&'a Row>> {
        let rows: Vec<&Row> = self.rows.iter().filter(|row| is_selected(row)).collect();
        (!rows.is_empty()).then_some(rows)
    }
}

/// The findings that a run has at most once.
const SINGLE: [fn(&Evidence) -> Option<Finding>; 36] = [
    |evidence| bytes::ram_not_disk(evidence, Direction::Write),
    |evidence| bytes::ram_not_disk(evidence, Direction::Read),
    bytes::direct_not_honoured,
    bytes::zfs_cache,
    bytes::busy_neighbour,
    bytes::write_amplification,
    device::implausible_flush,
    device::preferred_larger,
    device::first_touch,
    place::no_block_device,
    place::no_journal,
    place::counters_off,
    place::nearly_full,
    place::within_drive_cache,
    place::debug_build,
    place::leftovers,
    |evidence| finding::left_out(&evidence.left_out),
    rows::shortened,
    rows::interrupted,
    rows::burst,
    rows::noisy,
    rows::stragglers,
    rows::depth_not_reached,
    rows::generator_limited,
    jobs::compressible_data,
    jobs::unwritten_read,
    jobs::blocks_unknown,
    jobs::same_offsets,
    not_reached,
    machine::stopped,
    machine::cpu_limited,
    machine::too_hot,
    machine::link_downgraded,
    machine::lazy_init,
    rows::concurrent_iops,
    machine::slow_clock,
];

/// Returns all findings of a run: warnings first, then in the order of [`finding::IDS`].
pub fn find(evidence: &Evidence) -> Vec<Finding> {
    let mut findings = rows::fallbacks(evidence);
    findings.extend(machine::held(evidence));
    findings.extend(SINGLE.iter().filter_map(|find| find(evidence)));
    finding::sort(&mut findings);
    findings
}

/// The shortest run that is judged. In shorter runs, the start and the end have too much weight.
const RUN_MIN: Duration = Duration::from_secs(1);

/// Finds rows that did not reach the requested rate. Their queues, and with them their latencies,
/// grow throughout the run.
fn not_reached<'a>(evidence: &Evidence<'a>) -> Option<Finding> {
    // A load curve overloads the device on purpose.
    let is_curve = |row: &Row| row.settings.asked.load_share.is_some();
    let missed = |row: &'a Row| {
        let reached = Reached::within(row, RUN_MIN).filter(|reached| !reached.is_reached)?;
        (!is_curve(row)).then_some((row, reached))
    };
    let (rows, all): (Vec<&Row>, Vec<Reached>) = evidence.rows.iter().filter_map(missed).unzip();
    let share = |of: &Reached| of.achieved_per_s / of.asked_per_s;
    let worst = all.iter().min_by(|a, b| share(a).total_cmp(&share(b)))?;
    let shown = |per_s: f64| {
        if worst.is_of_operations { format!("{per_s:.0}/s") } else { units::rate(per_s) }
    };
    let text = format!(
        "Rate not reached: {} of {} asked{}. The queue grows during the run, and latencies with \
         it. Ask for less, or read them as those of an overload",
        shown(worst.achieved_per_s),
        shown(worst.asked_per_s),
        if rows.len() > 1 { " in the slowest row" } else { "" },
    );
    Finding::warning("rate-not-reached", text)
        .about(&rows)
        .with("asked_per_s", worst.asked_per_s)
        .with("achieved_per_s", worst.achieved_per_s)
        .into()
}

#[cfg(test)]
mod rates_tests {
    use super::*;
    use crate::sample::{evidence, row, target};

    /// Returns a row with a rate of 1000 operations per second that reached `iops` in `elapsed_s`.
    fn at_a_rate(iops: f64, elapsed_s: f64) -> Row {
        let mut row = row("small/direct-psync", "os-crash", &[4e6, 4e6]);
        row.settings.asked.rate_iops = Some(1000.0);
        row.runs.iter_mut().for_each(|run| (run.iops, run.elapsed_s) = (iops, elapsed_s));
        row
    }

    fn found(row: Row) -> Option<Finding> {
        not_reached(&evidence(&target(), &[row]))
    }

    #[test]
    fn a_rate_that_was_not_reached_is_found() {
        let finding = found(at_a_rate(940.0, 2.0)).unwrap();
        assert_eq!(finding.id, "rate-not-reached");
        assert_eq!(finding.evidence["asked_per_s"], 1000.0);
        assert!(finding.text.contains("940/s of 1000/s asked. The queue"));
        let mut in_bytes = at_a_rate(1000.0, 2.0);
        in_bytes.settings.asked.rate_iops = None;
        in_bytes.settings.asked.rate_bytes_per_s = Some(2e9);
        assert!(found(in_bytes).unwrap().text.contains("2.00 GB/s"), "1 GB in two seconds");
    }

    #[test]
    fn each_job_has_its_own_part_of_the_rate() {
        let mut four = at_a_rate(3999.0, 2.0);
        four.settings.asked.numjobs = 4;
        assert!(found(four.clone()).is_none());
        four.runs.iter_mut().for_each(|run| run.iops = 1000.0);
        assert!(found(four).is_some());
    }

    #[test]
    fn nothing_is_found_of_what_was_reached_was_short_or_was_meant_to_be_too_much() {
        assert!(found(at_a_rate(960.0, 2.0)).is_none());
        assert!(found(at_a_rate(500.0, 0.9)).is_none());
        let mut curve = at_a_rate(500.0, 2.0);
        curve.settings.asked.load_share = Some(1.1);
        assert!(found(curve).is_none());
        let mut closed = at_a_rate(500.0, 2.0);
        closed.settings.asked.rate_iops = None;
        assert!(found(closed).is_none());
        // Of 100 expected Poisson arrivals, only 90 occur often enough; 9,000 of 10,000 do not.
        let mut random = at_a_rate(0.9, 50.0);
        random.settings.asked.rate_iops = Some(1.0);
        random.settings.asked.rate_process = Some(wrote_result::document::Process::Poisson);
        assert!(found(random).is_none());
    }
}
