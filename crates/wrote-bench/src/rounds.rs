//! The order of runs, and what every scenario takes for usual.

use wrote_result::Error;

/// Runs of each row: enough for an interval, few enough for a minute.
pub const RUNS: u32 = 5;

/// Large enough that the cost of a call does not show, small enough for its latency to be told.
pub const STREAM_BS_BYTES: u64 = 512 << 10;

/// The indices of so many rows in the order of their runs: every second round is backwards, so that
/// none always follows the same one, and what drifts, drifts for all (M8).
pub fn in_turn(rows: usize, runs: u32) -> Vec<usize> {
    let round = |round| {
        let rows = 0..rows;
        if round % 2 == 0 { rows.collect() } else { rows.rev().collect::<Vec<usize>>() }
    };
    (0..runs).flat_map(round).collect()
}

pub fn positive(name: &str, value: u64, most: u64) -> Result<u64, Error> {
    match value {
        0 => Err(Error::Usage(format!("--{name}: 0 makes no sense; at least 1"))),
        value if value > most => {
            Err(Error::Usage(format!("--{name}: {value} is more than {most}")))
        }
        value => Ok(value),
    }
}
