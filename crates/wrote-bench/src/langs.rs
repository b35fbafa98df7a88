//! Compares the I/O of languages: the same work by a small program in each, in turn.
//!
//! [`catalogue`] holds the languages, each in a folder of `langs/` embedded in this library.
//! [`langs`] finds the installed ones, builds the programs into a cache folder, and runs the
//! workloads, all programs in turn (M8), beside the drive's own rate. `langs/README.md` defines a
//! program's work.

mod answer;
mod build;
mod catalogue;
mod check;
mod drive;
mod manifest;
mod pace;
mod plan;
mod program;
mod rounds;
mod toolchain;
mod workload;

pub use catalogue::{Catalogue, catalogue};
pub use rounds::{langs, langs_by};
pub use workload::Kind;

use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Options of a comparison of languages.
#[derive(Clone, Debug)]
pub struct Request {
    /// The folders to measure, one after another; each is a column of the tables.
    pub paths: Vec<PathBuf>,
    /// The languages or variants to run, by ID; all if empty.
    pub only: Vec<String>,
    /// The workloads to run; all if empty.
    pub workloads: Vec<Kind>,
    /// Folders of the user's languages, in addition to the embedded ones.
    pub add: Vec<PathBuf>,
    /// The size of the file that is written and read byte by byte. `None` uses as much as each
    /// language processes in its share of the time, at most [`Request::SIZE_BYTES`].
    pub size_bytes: Option<u64>,
    /// Runs of `bytes` and `lines` per program; the first is dropped if there are several.
    pub runs: u32,
    /// The number of saves of each text. `None` uses as many as fit into a language's share of the
    /// time, at most [`Request::SAVES`].
    pub saves: Option<u32>,
    /// The number of appended lines. `None` uses as many as fit into a language's share of the
    /// time, at most [`Request::LINES`].
    pub lines: Option<u64>,
    /// The time for each place from the program's start, if amounts depend on it.
    pub within: Duration,
    /// The program's start; the time of the call if `None`.
    pub began: Option<Instant>,
    /// Whether to also read with the file dropped from the page cache.
    pub drop_caches: bool,
    /// The time limit of one run; a program that exceeds it is killed.
    pub timeout: Duration,
    /// The path of `wrote`, for its own rows; `None` omits them.
    pub wrote: Option<PathBuf>,
    /// The folder in which programs are built and reused by later runs.
    pub cache: PathBuf,
    /// The command line, for the result.
    pub command: Vec<String>,
    /// The commit of this program, for the result.
    pub commit: Option<String>,
}

impl Request {
    /// Five minutes.
    pub const WITHIN: Duration = Duration::from_secs(300);
    /// 256 million bytes.
    pub const SIZE_BYTES: u64 = 256_000_000;
    /// Six runs, the first dropped.
    pub const RUNS: u32 = 6;
    /// A thousand saves of each text.
    pub const SAVES: u32 = 1000;
    /// A million lines.
    pub const LINES: u64 = 1_000_000;
    /// Longer than the slowest language needs for 256 million bytes on a slow machine.
    pub const TIMEOUT: Duration = Duration::from_secs(15 * 60);

    pub(crate) fn size_bytes_max(&self) -> u64 {
        self.size_bytes.unwrap_or(Request::SIZE_BYTES)
    }

    pub(crate) fn saves_max(&self) -> u32 {
        self.saves.unwrap_or(Request::SAVES)
    }

    pub(crate) fn lines_max(&self) -> u64 {
        self.lines.unwrap_or(Request::LINES)
    }

    /// Returns a request for the whole comparison in `paths`, with programs built below `cache`.
    pub fn new(paths: Vec<PathBuf>, cache: PathBuf) -> Request {
        Request {
            paths,
            only: Vec::new(),
            workloads: Vec::new(),
            add: Vec::new(),
            size_bytes: None,
            runs: Request::RUNS,
            saves: None,
            lines: None,
            within: Request::WITHIN,
            began: None,
            drop_caches: false,
            timeout: Request::TIMEOUT,
            wrote: None,
            cache,
            command: Vec::new(),
            commit: None,
        }
    }
}
