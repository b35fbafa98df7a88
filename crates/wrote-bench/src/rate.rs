//! The rate that a workload is held to: an open loop.

use std::time::Duration;

/// What a workload is held to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// How much.
    pub amount: Amount,
    /// When within its time each operation is due.
    pub process: Process,
}

/// How much of a workload is due in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// So many operations.
    OperationsPerS(u32),
    /// So many bytes.
    BytesPerS(u64),
}

/// When operations that come at a rate are due (fio's `rate_process`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Process {
    /// At even distances.
    #[default]
    Linear,
    /// At random distances, as requests of many who know nothing of each other come: a Poisson process.
    Poisson,
}

impl Process {
    /// fio's word.
    pub fn as_str(self) -> &'static str {
        match self {
            Process::Linear => "linear",
            Process::Poisson => "poisson",
        }
    }
}

impl Rate {
    /// The mean distance between operations of so many bytes.
    pub fn mean_distance(&self, bs_bytes: u64) -> Duration {
        Duration::from_secs_f64(match self.amount {
            Amount::OperationsPerS(operations) => 1.0 / f64::from(operations.max(1)),
            Amount::BytesPerS(bytes) => bs_bytes as f64 / bytes.max(1) as f64,
        })
    }
}
