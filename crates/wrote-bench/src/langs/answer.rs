//! What a program says of its run: one line of JSON, and whether it can be believed.

use serde::Deserialize;

/// The line.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct Answer {
    /// Each timing, by the program's own monotonic clock: COUNT of them, of `lines` one.
    pub elapsed_ns: Vec<u64>,
    /// File bytes of one timing.
    pub bytes: u64,
    /// The sum of all bytes that were read in one timing; of `bytes-read` alone.
    pub sum: Option<u64>,
}
