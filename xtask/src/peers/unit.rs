//! The units in which a contest counts rates and CPU time.

use super::outcome::Outcome;

/// A unit of rates, with that of the CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// MB/s, and CPU seconds per GB.
    Stream,
    /// Thousands of reads a second, and CPU microseconds each.
    Reads,
    /// Saves a second, and CPU microseconds each.
    Saves,
    /// Thousands of messages a second, and CPU microseconds each.
    Messages,
    /// Instructions in user space that each read takes.
    Instructions,
    /// MiB of resident memory at the peak.
    Memory,
}

/// Bytes of a MiB.
pub const MIB: f64 = (1 << 20) as f64;

impl Unit {
    /// Returns the heads of the columns of rates and CPU time.
    pub fn heads(self) -> [&'static str; 2] {
        match self {
            Unit::Stream => ["MB/s", "CPU s/GB"],
            Unit::Reads => ["kIOPS", "CPU µs/read"],
            Unit::Saves => ["saves/s", "CPU µs/save"],
            Unit::Messages => ["k/s", "CPU µs/message"],
            Unit::Instructions => ["instructions/read", ""],
            Unit::Memory => ["MiB", ""],
        }
    }

    /// Returns the rate.
    pub fn rate(self, run: &Outcome) -> f64 {
        match self {
            Unit::Stream => run.bytes as f64 / run.elapsed_s / 1e6,
            Unit::Reads | Unit::Messages => run.operations as f64 / run.elapsed_s / 1e3,
            Unit::Saves => run.operations as f64 / run.elapsed_s,
            Unit::Instructions => known(run.instructions) / run.operations as f64,
            Unit::Memory => known(run.memory_bytes) / MIB,
        }
    }

    /// Returns the CPU time; `None` where the unit has none.
    pub fn cpu(self, run: &Outcome) -> Option<f64> {
        match self {
            Unit::Stream => Some(run.cpu_s / (run.bytes as f64 / 1e9)),
            Unit::Reads | Unit::Saves | Unit::Messages => {
                Some(run.cpu_s * 1e6 / run.operations as f64)
            }
            Unit::Instructions | Unit::Memory => None,
        }
    }
}

/// Returns a count as a figure; not a number where the program did not count.
fn known(count: Option<u64>) -> f64 {
    count.map_or(f64::NAN, |count| count as f64)
}
