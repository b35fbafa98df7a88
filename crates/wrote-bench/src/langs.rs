//! Compares the I/O of programming languages: a small program in each language does the same work,
//! in turn.
//!
//! [`catalogue`] contains the languages, each in a folder of `langs/` embedded in this library.
//! [`langs`] finds the installed ones, builds the programs into a cache folder, and measures each
//! program in each workload as a row of the common measurement loop, along with the drive's own
//! rate. `langs/README.md` defines what a program must do.

mod answer;
mod build;
mod catalogue;
mod check;
mod file;
mod manifest;
mod program;
mod scenario;
mod toolchain;
mod workload;

pub use catalogue::{Catalogue, catalogue};
pub use workload::Kind;

use crate::bench::Bench;
use crate::progress::Observer;
use crate::request;
use crate::scratch;
use crate::settings::{Common, positive};
use catalogue::Candidate;
use itertools::Itertools;
use scenario::Comparison;
use std::cell::RefCell;
use std::cmp::Ordering;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};
use workload::{LINE_BYTES, tables};
use wrote_result::document::{Document, Language, Row, Source, State};
use wrote_result::{Error, Stop};

/// A size larger than any disk.
const SIZE_BYTES_MAX: u64 = 1 << 50;
const SAVES_MAX: u64 = 1_000_000;
const LINES_MAX: u64 = SIZE_BYTES_MAX / LINE_BYTES;

/// The options of a comparison of languages.
#[derive(Clone, Debug)]
pub struct Request {
    /// The folder to measure.
    pub path: PathBuf,
    /// The languages or variants to run, by ID; all if empty.
    pub only: Vec<String>,
    /// The workloads to run; all if empty.
    pub workloads: Vec<Kind>,
    /// The folders of the user's languages, which are added to the embedded ones.
    pub add: Vec<PathBuf>,
    /// The size of the file that is written and read byte by byte. `None` uses as much as each
    /// language processes in its slice of the time, at most [`Request::SIZE_BYTES`].
    pub size_bytes: Option<u64>,
    /// The number of runs of each program in each workload, not counting the trial runs before
    /// them.
    pub runs: u32,
    /// The number of saves of each text in a run. `None` uses as many as fit into a slice of the
    /// time, at most [`Request::SAVES`].
    pub saves: Option<u32>,
    /// The number of appended lines. `None` uses as many as fit into a slice of the time, at most
    /// [`Request::LINES`].
    pub lines: Option<u64>,
    /// The time limit, from the start of `wrote` to its end. `None` means [`Request::WITHIN`], or
    /// no limit if an amount is fixed.
    pub within: Option<Duration>,
    /// The time at which `wrote` started; the time of the call if `None`.
    pub began: Option<Instant>,
    /// Whether programs also read the file after it was dropped from the page cache.
    pub drop_caches: bool,
    /// The time limit of one run. A program that exceeds it is killed.
    pub timeout: Duration,
    /// The path of `wrote`, for the rows of `wrote` itself; `None` omits them.
    pub wrote: Option<PathBuf>,
    /// The folder in which programs are built, and from which later runs reuse them.
    pub cache: PathBuf,
    /// The command line, for the result.
    pub command: Vec<String>,
    /// The commit of this program, for the result.
    pub commit: Option<String>,
}

impl Request {
    /// The default time limit: five minutes.
    pub const WITHIN: Duration = Duration::from_secs(300);
    /// The default maximum size of the file: 256 million bytes.
    pub const SIZE_BYTES: u64 = 256_000_000;
    /// The default number of runs, which is the same as in other scenarios.
    pub const RUNS: u32 = crate::plan::RUNS;
    /// The default maximum number of saves of each text.
    pub const SAVES: u32 = 1000;
    /// The default maximum number of lines.
    pub const LINES: u64 = 1_000_000;
    /// The default time limit of a run. It is longer than the time that the slowest language takes
    /// for 256 million bytes on a slow machine.
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

    /// Returns a request for the complete comparison in `path`, with programs built below `cache`.
    pub fn new(path: PathBuf, cache: PathBuf) -> Request {
        Request {
            path,
            only: Vec::new(),
            workloads: Vec::new(),
            add: Vec::new(),
            size_bytes: None,
            runs: Request::RUNS,
            saves: None,
            lines: None,
            within: None,
            began: None,
            drop_caches: false,
            timeout: Request::TIMEOUT,
            wrote: None,
            cache,
            command: Vec::new(),
            commit: None,
        }
    }

    fn check(&self) -> Result<(), Error> {
        positive("size", self.size_bytes_max(), SIZE_BYTES_MAX)?;
        positive("runs", self.runs.into(), Common::RUNS_MAX.into())?;
        positive("saves", self.saves_max().into(), SAVES_MAX)?;
        positive("lines", self.lines_max(), LINES_MAX)?;
        if self.timeout.is_zero() {
            return Err(Error::Usage("--timeout: must be more than 0".into()));
        }
        scratch::check_writable(&self.path)
    }
}

/// Measures the I/O of the languages.
///
/// A program's fault (a crash, a hang, a wrong byte, a false report) is recorded for that program
/// alone. The results of the other programs remain valid.
///
/// # Errors
///
/// [`Error::Usage`] for an invalid request or if no requested language is installed, otherwise like
/// [`Bench::run`].
pub fn langs(
    request: &Request,
    stop: &Stop,
    observer: &mut dyn Observer,
) -> Result<Document, Error> {
    let began = request.began.unwrap_or_else(Instant::now);
    request.check()?;
    let (chosen, languages) = catalogue(&request.add)?.choose(request, stop)?;
    refuse_nobody(&chosen, &languages)?;
    refuse_idlers(&chosen, request)?;
    for missing in languages.iter().filter(|language| language.state == State::Missing) {
        observer.note(&missing_text(missing));
    }
    let languages = Rc::new(RefCell::new(languages));
    let request = request.clone();
    let of_bench = request::Request {
        began: Some(began),
        command: request.command.clone(),
        commit: request.commit.clone(),
        ..request::Request::new(request.path.clone())
    };
    let comparison = Comparison { request, chosen, languages: languages.clone() };
    let mut document = Bench::new(&of_bench).scenarios(&[&comparison]).run(stop, observer)?;
    let languages = languages.take();
    document.scenarios.iter_mut().for_each(|scenario| sort(&mut scenario.rows));
    (document.source, document.languages) = (Some(Source::Langs), Some(languages));
    Ok(document)
}

/// Sorts the rows of each workload, the fastest first: by the median latency (of a save), or by
/// throughput.
fn sort(rows: &mut [Row]) {
    for of_workload in rows.chunk_by_mut(|one, other| one.workload == other.workload) {
        of_workload.sort_by(order);
    }
}

/// Compares two rows of a workload. The faster row comes first.
fn order(one: &Row, other: &Row) -> Ordering {
    match (one.latency(), other.latency()) {
        (Some(one), Some(other)) => one.p50.cmp(&other.p50),
        _ => other.throughput().total_cmp(&one.throughput()),
    }
}

/// Refuses a comparison in which there is no program to run.
fn refuse_nobody(chosen: &[Candidate], languages: &[Language]) -> Result<(), Error> {
    if !chosen.is_empty() {
        return Ok(());
    }
    let missing = languages.iter().map(missing_text).join("; ");
    Err(Error::Usage(format!("nothing can be run: {missing}")))
}

/// Refuses a comparison in which no program supports a requested task.
fn refuse_idlers(chosen: &[Candidate], request: &Request) -> Result<(), Error> {
    let tables = tables(request);
    let works = |of: &Candidate| tables.iter().any(|table| of.does(table.task));
    if chosen.iter().any(works) {
        return Ok(());
    }
    let names = chosen.iter().map(|of| &of.variant.name).join(", ");
    Err(Error::Usage(format!("nothing can be run: {names} can do none of these workloads")))
}

/// Describes a missing language: `Zig is missing (zig: not found): pip install ziglang`.
fn missing_text(language: &Language) -> String {
    let because = language.because.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
    let install = language.install.as_ref().map_or_else(String::new, |how| format!(": {how}"));
    format!("{} is missing{because}{install}", language.name)
}
