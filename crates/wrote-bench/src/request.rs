//! A benchmark request: what to measure, where, and each scenario's settings. It is a separate file
//! because the command makes it, and everything that measures takes it.

use crate::scenarios::Scenarios;
use crate::settings::Common;
use std::path::PathBuf;
use std::time::Instant;
use wrote_result::document::RankFiles;

/// A benchmark request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The folder below which runs create theirs.
    pub path: PathBuf,
    /// Scenarios, workloads or rows to measure, by name; the ladder if empty.
    pub only: Vec<String>,
    /// Keeps the test files.
    pub keep: bool,
    /// The program's start; the time of the call if `None`.
    pub began: Option<Instant>,
    /// Settings common to all scenarios.
    pub common: Common,
    /// Whether several ranks share files.
    pub rank_files: RankFiles,
    /// The settings of each scenario.
    pub scenarios: Scenarios,
    /// The command line, for the result.
    pub command: Vec<String>,
    /// The commit of this program, for the result.
    pub commit: Option<String>,
}

impl Request {
    /// Returns the default benchmark of `path`.
    pub fn new(path: PathBuf) -> Request {
        Request { path, ..Request::default() }
    }
}
