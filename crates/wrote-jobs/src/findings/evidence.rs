//! The evidence of a run: the measurements and circumstances that findings rest on.

use crate::jobs::Overlap;
use wrote_machine::watch::Watched;
use wrote_result::document::{Host, Row, Target};

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
