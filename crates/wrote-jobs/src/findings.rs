//! Findings: facts that the evidence of a run adds to its numbers, explained in `docs/findings.md`.
//! Without enough evidence a finding is absent.

mod bytes;
mod jobs;
mod machine;
mod moved;
mod place;
mod rates;
mod rows;
#[cfg(test)]
mod tests;

pub use moved::{counts, source_bytes, stayed_in_memory};

use crate::jobs::Overlap;
use wrote_machine::watch::Watched;
use wrote_result::document::{Direction, Finding, Host, Row, Target};
use wrote_result::finding;

/// The measurements and circumstances of a run that is over.
#[derive(Clone, Debug)]
pub struct Evidence<'a> {
    /// The file system and device under the path, with the free space before the run.
    pub target: &'a Target,
    /// All measured rows.
    pub rows: &'a [Row],
    /// Whether the program was built with debug assertions.
    pub debug_build: bool,
    /// Whether the device's counters count (`queue/iostats` is on).
    pub device_counts: bool,
    /// Whether the file system is in memory (tmpfs, ramfs).
    pub in_memory: bool,
    /// The rate at which the generator makes data, in bytes per second; 0 where not measured.
    pub generator_bytes_per_s: f64,
    /// File bytes that all runs together wrote.
    pub written_bytes_total: u64,
    /// The machine's memory, in bytes.
    pub memory_bytes: u64,
    /// The machine.
    pub host: Host,
    /// The machine's effects on the measurement.
    pub watched: Watched,
    /// Jobs that used the same bytes at once, at least one of them to write.
    pub overlaps: Vec<Overlap>,
    /// Folders that earlier runs left under the path.
    pub leftovers: Vec<String>,
    /// Requested rows that could not be measured, each with the reason.
    pub left_out: Vec<(String, String)>,
}

/// The findings that a run has once or not at all.
const SINGLE: [fn(&Evidence) -> Option<Finding>; 25] = [
    |evidence| bytes::ram_not_disk(evidence, Direction::Write),
    |evidence| bytes::ram_not_disk(evidence, Direction::Read),
    bytes::direct_not_honoured,
    bytes::busy_neighbour,
    bytes::write_amplification,
    place::no_block_device,
    place::counters_off,
    place::nearly_full,
    place::within_drive_cache,
    place::debug_build,
    place::leftovers,
    |evidence| finding::left_out(&evidence.left_out),
    rows::noisy,
    rows::depth_not_reached,
    rows::generator_limited,
    jobs::compressible_data,
    jobs::unwritten_read,
    jobs::blocks_unknown,
    jobs::same_offsets,
    rates::not_reached,
    machine::stopped,
    machine::cpu_limited,
    machine::too_hot,
    machine::link_downgraded,
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
