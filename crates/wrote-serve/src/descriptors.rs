//! Limits connections so that logs and readers always have file descriptors. A log that cannot open
//! its next segment has failed.

use crate::error::Error;
use rustix::process::{Resource, getrlimit};

/// Descriptors per log beyond those open at the start: the next segment while another is removed,
/// shipped or prepared, and files being reopened.
const PER_LOG: u64 = 16;
/// Descriptors per reader: a segment, and its engine's ring and event.
const PER_READER: u64 = 3;
/// Operators' connections, one connection being accepted per listener, files of a reload.
const OTHERS: u64 = 32;

/// Returns how many connections may be open, given the descriptors open now.
///
/// # Errors
///
/// If no connection would fit.
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

/// Returns the number of open descriptors; an estimate without /proc.
fn open() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(64, |files| files.count() as u64)
}
