//! The main job: from what was asked to the result document.

use crate::result::Document;
use crate::{Error, Stop};
use std::path::PathBuf;
use std::time::Duration;

/// What was asked of a benchmark. Values left `None` are chosen from what lies under the path.
#[derive(Clone, Debug)]
pub struct Request {
    /// The folder to write in. A folder of the run's own is made below it.
    pub path: PathBuf,
    /// Names of scenarios, workloads or rows to measure; all where empty.
    pub only: Vec<String>,
    /// File bytes of one streaming run.
    pub size_bytes: Option<u64>,
    /// How long one run may take.
    pub time: Option<Duration>,
    /// How many runs of each row.
    pub runs: Option<u32>,
    /// Bytes of one write of the stream.
    pub stream_bs_bytes: Option<u64>,
    /// Bytes of one small write.
    pub small_bs_bytes: Option<u64>,
    /// Writes in flight at once, of the io_uring rows.
    pub iodepth: Option<u32>,
    /// Threads, each with a file of its own.
    pub numjobs: Option<u32>,
    /// Leave the test files where they are.
    pub keep: bool,
    /// The command line, for the result.
    pub command: Vec<String>,
    /// The commit that the program was built from, for the result.
    pub commit: Option<String>,
}

impl Request {
    /// The default benchmark of `path`.
    pub fn new(path: PathBuf) -> Request {
        Request {
            path,
            only: Vec::new(),
            size_bytes: None,
            time: None,
            runs: None,
            stream_bs_bytes: None,
            small_bs_bytes: None,
            iodepth: None,
            numjobs: None,
            keep: false,
            command: Vec::new(),
            commit: None,
        }
    }
}

/// What a run is about to do.
#[derive(Clone, Debug)]
pub struct Announcement {
    /// The folder that the run made for its files.
    pub folder: PathBuf,
    /// The most that will be in that folder at any time.
    pub space_bytes_max: u64,
    /// The most that will be written in all.
    pub written_bytes_max: u64,
    /// How many runs there will be.
    pub runs: u32,
    /// About how long they will take.
    pub estimated: Duration,
}

/// How far a run has come.
#[derive(Clone, Debug)]
pub struct Progress {
    /// The row that is being measured now.
    pub row: String,
    /// Runs that are finished.
    pub runs_done: u32,
    /// Runs in all.
    pub runs: u32,
    /// About how long the rest will take.
    pub left: Duration,
}

/// Is told what a run does while it does it. All methods do nothing by default.
pub trait Observer {
    /// Called once, before the first byte is written.
    fn announce(&mut self, _announcement: &Announcement) {}
    /// Called before each run and after the last.
    fn progress(&mut self, _progress: &Progress) {}
    /// Something to be said that is no part of the result: a folder that an earlier run left.
    fn note(&mut self, _text: &str) {}
}

/// An observer that says nothing.
impl Observer for () {}

/// Measures, and says what it found.
pub fn bench(
    _request: &Request,
    _stop: &Stop,
    _observer: &mut dyn Observer,
) -> Result<Document, Error> {
    Err(Error::Failed("not built yet".into()))
}

/// A row that can be asked for by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// `ladder`.
    pub scenario: &'static str,
    /// `stream/direct-io_uring`.
    pub row: &'static str,
    /// The way of writing, in words.
    pub way: &'static str,
    /// What a write survives where nothing falls back.
    pub survives: wrote::Survives,
}

/// Everything that `Request::only` may name, in the order in which it is measured.
pub fn catalogue() -> Vec<Listed> {
    Vec::new()
}
