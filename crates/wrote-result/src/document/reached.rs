//! The rate that a row was held to, and whether it was reached.

use super::Row;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// When operations that come at a rate are due (fio's `rate_process`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Process {
    /// At even distances.
    #[default]
    Linear,
    /// At random distances, as requests of many who know nothing of each other come: a Poisson
    /// process.
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

/// Of the rate that is asked for, less than this part is not that rate.
const REACHED_SHARE_MIN: f64 = 0.95;

/// The rate that a row asked for, and the rate that it reached.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reached {
    /// Operations or bytes per second, over all jobs of a run.
    pub asked_per_s: f64,
    /// The same, over all runs that were looked at.
    pub achieved_per_s: f64,
    /// Whether both are of operations, else they are of bytes.
    pub is_of_operations: bool,
    /// Whether at least 95 % came, or as much as random arrivals may leave. Latencies of a rate
    /// that is not reached grow with the length of the run.
    pub is_reached: bool,
}

impl Reached {
    /// Of all runs of a row that is held to a rate; nothing of another row.
    pub fn of(row: &Row) -> Option<Reached> {
        Reached::within(row, Duration::ZERO)
    }

    /// The same, of the runs that took at least so long.
    pub fn within(row: &Row, elapsed_min: Duration) -> Option<Reached> {
        let asked = &row.settings.asked;
        let jobs = f64::from(asked.numjobs.max(1));
        let (asked_per_s, is_of_operations) = match (asked.rate_iops, asked.rate_bytes_per_s) {
            (Some(operations), _) => (operations * jobs, true),
            (None, Some(bytes)) => (bytes * jobs, false),
            (None, None) => return None,
        };
        let runs = row.runs.iter().filter(|run| run.elapsed_s >= elapsed_min.as_secs_f64());
        let (mut elapsed_s, mut operations, mut bytes) = (0.0, 0.0, 0.0);
        for run in runs {
            elapsed_s += run.elapsed_s;
            operations += run.iops * run.elapsed_s;
            bytes += run.bytes as f64;
        }
        if elapsed_s <= 0.0 {
            return None;
        }
        let achieved_per_s = if is_of_operations { operations } else { bytes } / elapsed_s;
        // Three standard deviations of the number of a Poisson process's arrivals.
        let is_random = asked.rate_process == Some(Process::Poisson);
        let chance = if is_random { 3.0 / operations.max(1.0).sqrt() } else { 0.0 };
        let share = achieved_per_s / asked_per_s;
        let is_reached = share >= REACHED_SHARE_MIN.min(1.0 - chance);
        Some(Reached { asked_per_s, achieved_per_s, is_of_operations, is_reached })
    }
}
