//! Descriptors: the server keeps those that its logs and readers need, and connections have the
//! rest. A log that cannot open its next segment has failed.

use crate::error::Error;
use rustix::process::{Resource, getrlimit};

/// Files of a log beside those that are open at the start: the next segment while another is
/// removed, shipped or prepared, and those of a log that is opened again.
const PER_LOG: u64 = 16;
/// Files of a reader: a segment, and its engine's ring and event.
const PER_READER: u64 = 3;
/// Connections of operators, one of each listener that is being accepted, files of a reload.
const OTHERS: u64 = 32;

/// Returns how many connections may be open, given what is open now.
///
/// # Errors
///
/// If there is room for none.
pub(crate) fn for_connections(logs: usize, readers: usize) -> Result<usize, Error> {
    let Some(limit) = getrlimit(Resource::Nofile).current else { return Ok(usize::MAX) };
    let kept = PER_LOG * logs as u64 + PER_READER * readers as u64 + OTHERS;
    let needed = open() + kept;
    match limit.checked_sub(needed) {
        None | Some(0) => Err(Error::Config(format!(
            "the limit of open files is {limit}, and the server without a connection needs \
             {needed}: raise it (ulimit -n, LimitNOFILE)"
        ))),
        Some(left) => Ok(usize::try_from(left).unwrap_or(usize::MAX)),
    }
}

/// Returns how many descriptors are open; without /proc, as many as a server of a few logs has.
fn open() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(64, |files| files.count() as u64)
}
