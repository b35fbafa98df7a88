//! A benchmark request: what to measure, where, and the settings of each scenario. The module is
//! separate because the command builds the request, and everything that measures reads it.

use crate::scenarios::Scenarios;
use crate::settings::Common;
use std::path::PathBuf;
use std::time::Instant;
use wrote_result::document::RankFiles;

/// A benchmark request.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The folder in which runs create their folders.
    pub path: PathBuf,
    /// The names of the scenarios, workloads or rows to measure; the ladder if empty.
    pub only: Vec<String>,
    /// Whether to keep the test files.
    pub keep: bool,
    /// The time at which `wrote` started; the time of the call if `None`.
    pub began: Option<Instant>,
    /// The settings that all scenarios share.
    pub common: Common,
    /// Whether ranks share files, and how.
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
