//! One run of a program: started, watched, and ended where it hangs or the run is stopped.

use super::build::Built;
use super::workload::Task;
use crate::{Error, Stop};
use std::path::Path;
use std::time::Duration;

/// What a program did and cost, as far as it can be seen from outside.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ended {
    /// What it printed.
    pub stdout: String,
    /// From its start to its end, in seconds.
    pub process_s: f64,
    pub cpu_user_s: f64,
    pub cpu_system_s: f64,
    pub max_rss_bytes: Option<u64>,
}

/// What a program is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub task: Task,
    pub path: &'a Path,
    pub size: u64,
    pub count: u64,
}

/// Runs it. `Ok(Err(..))` is how it failed, one line: its exit code, the signal that ended it, the last line of
/// its standard error, or that it took longer than `timeout`. Nothing that it started outlives this.
pub(super) fn run(
    _built: &Built,
    _call: Call,
    _timeout: Duration,
    _stop: &Stop,
) -> Result<Result<Ended, String>, Error> {
    todo!()
}
