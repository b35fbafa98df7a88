//! The cost of each language's own I/O: the same work by a small program in each, in turn.
//!
//! [`catalogue`] holds the languages: a folder of `langs/` each, embedded in this library.
//! [`langs`] finds the installed ones, builds each program into a cache folder, and runs the
//! workloads, all programs in turn (M8), beside the drive's own rate. `langs/README.md` defines the
//! work of a program.

mod answer;
mod build;
mod catalogue;
mod check;
mod child;
mod drive;
mod manifest;
mod message;
mod plan;
mod program;
mod rounds;
mod toolchain;
mod workload;

pub use catalogue::{Catalogue, catalogue};
pub use rounds::langs;
pub use workload::Kind;

use std::path::PathBuf;
use std::time::Duration;

/// Options of a comparison of languages.
#[derive(Clone, Debug)]
pub struct Request {
    /// The folders to measure, one after the other; each is a column of the tables.
    pub paths: Vec<PathBuf>,
    /// Ids of languages or of their variants to run; all where empty.
    pub only: Vec<String>,
    /// The workloads to run; all where empty.
    pub workloads: Vec<Kind>,
    /// Folders of the user's own languages, besides the embedded ones.
    pub add: Vec<PathBuf>,
    /// Bytes of the file that is written and read one byte at a time.
    pub size_bytes: u64,
    /// Runs of `bytes` and `lines` by each program; of several, the first is dropped.
    pub runs: u32,
    /// The number of saves of each text.
    pub saves: u32,
    /// The number of appended lines.
    pub lines: u64,
    /// Whether to read also with the file dropped from the page cache.
    pub drop_caches: bool,
    /// The time limit of one run; a program that exceeds it is ended.
    pub timeout: Duration,
    /// The program `wrote` itself, for its own rows; `None` leaves them out.
    pub wrote: Option<PathBuf>,
    /// The folder in which programs are built, and where later runs find them.
    pub cache: PathBuf,
    /// The command line, for the result.
    pub command: Vec<String>,
    /// The commit that the program was built from, for the result.
    pub commit: Option<String>,
}

impl Request {
    /// 256 million bytes.
    pub const SIZE_BYTES: u64 = 256_000_000;
    /// Six runs, the first dropped.
    pub const RUNS: u32 = 6;
    /// A thousand saves of each text.
    pub const SAVES: u32 = 1000;
    /// A million lines.
    pub const LINES: u64 = 1_000_000;
    /// Longer than the slowest language takes for 256 million bytes on a slow machine.
    pub const TIMEOUT: Duration = Duration::from_secs(15 * 60);

    /// Requests the whole comparison in `paths`, with programs built below `cache`.
    pub fn new(paths: Vec<PathBuf>, cache: PathBuf) -> Request {
        Request {
            paths,
            only: Vec::new(),
            workloads: Vec::new(),
            add: Vec::new(),
            size_bytes: Request::SIZE_BYTES,
            runs: Request::RUNS,
            saves: Request::SAVES,
            lines: Request::LINES,
            drop_caches: false,
            timeout: Request::TIMEOUT,
            wrote: None,
            cache,
            command: Vec::new(),
            commit: None,
        }
    }
}
