//! What each language's own I/O costs: the same work by a small program in each, in turn.
//!
//! [`catalogue`] knows the languages: a folder of `langs/` each, embedded in this library. What is
//! installed is found, its program is built into a cache folder, and [`langs`] runs the workloads, every
//! program in turn (M8), beside the drive's own rate. What a program must do is in `langs/README.md`.

mod ahead;
mod answer;
mod build;
mod catalogue;
mod check;
mod child;
mod drive;
mod manifest;
mod plan;
mod program;
mod rounds;
mod said;
mod toolchain;
mod workload;

pub use catalogue::{Catalogue, catalogue};
pub use rounds::langs;
pub use workload::Kind;

use std::path::PathBuf;
use std::time::Duration;

/// What was asked of a comparison of languages.
#[derive(Clone, Debug)]
pub struct Request {
    /// The folders to write in, one after the other; each is a column of the tables.
    pub paths: Vec<PathBuf>,
    /// Ids of languages or of their variants to run; all where empty.
    pub only: Vec<String>,
    /// Which workloads; all where empty.
    pub workloads: Vec<Kind>,
    /// Folders of languages of the user's own, besides those that are embedded.
    pub add: Vec<PathBuf>,
    /// Bytes that are written and read one at a time.
    pub size_bytes: u64,
    /// Runs of `bytes` and `lines` by each program; the first is dropped where there is more than one.
    pub runs: u32,
    /// How often each text is saved.
    pub saves: u32,
    /// How many lines are appended.
    pub lines: u64,
    /// Read also with the file dropped from the page cache.
    pub drop_caches: bool,
    /// How long one run of a program may take; what takes longer is taken for hung, and ended.
    pub timeout: Duration,
    /// The program `wrote` itself, by which `wrote`'s own rows are run; `None` leaves them out.
    pub wrote: Option<PathBuf>,
    /// Where programs are built, and found again by later runs.
    pub cache: PathBuf,
    /// The command line, for the result.
    pub command: Vec<String>,
    /// The commit that the program was built from, for the result.
    pub commit: Option<String>,
}

impl Request {
    /// 256 million bytes, as the comparison has it that this one follows.
    pub const SIZE_BYTES: u64 = 256_000_000;
    /// Six runs, the first dropped.
    pub const RUNS: u32 = 6;
    /// Each text a thousand times.
    pub const SAVES: u32 = 1000;
    /// A million lines.
    pub const LINES: u64 = 1_000_000;
    /// Longer than the slowest language takes for 256 million bytes on a slow machine.
    pub const TIMEOUT: Duration = Duration::from_secs(15 * 60);

    /// The whole comparison in `paths`, with programs built below `cache`.
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
