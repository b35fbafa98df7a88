//! A scenario: a question about a disk, with rows that answer it.

use crate::calibration::Calibration;
use crate::progress::Ticker;
use crate::request::{Common, RankSettings};
use crate::rounds::{Clock, Turn, in_turn};
use crate::scratch::Scratch;
use hdrhistogram::Histogram;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
use wrote::device::{BlockDevice, Target};
use wrote_jobs::clock::{Timer, Together};
use wrote_jobs::findings::{Burst, Evidence, Shortened};
use wrote_jobs::jobs::{self, GroupReport, Permissions, Regions, Watcher};
use wrote_jobs::machine::target::device_of;
use wrote_jobs::peers::Peers;
use wrote_jobs::report::{Before, Repeated, span_of};
use wrote_jobs::spec::JobSpec;
use wrote_result::document::{
    Advice, Answer, Fallback, Finding, Knee, RankFiles, Row, Run, Settings, SettingsPair,
};
use wrote_result::{Error, Stop, stats};

/// A scenario with its settings. To add one, add two lines to the registry (`scenarios.rs`).
pub trait Scenario {
    /// The name in results and in `--only`.
    fn name(&self) -> &'static str;
    /// Returns the rows that a request may name.
    fn catalogue(&self) -> Vec<Listed>;
    /// Returns whether `name` is the scenario, one of its workloads, or one of its rows.
    fn knows(&self, name: &str) -> bool {
        name == self.name() || self.catalogue().iter().any(|listed| listed.is_called(name))
    }
    /// Returns whether its operations support a rate (M5).
    fn takes_rate(&self) -> bool {
        true
    }
    /// Returns whether it was requested to run instead of all other scenarios.
    fn is_alone(&self) -> bool {
        false
    }
    /// Checks the settings and plans the requested rows: one measurement, several, or none.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] for an invalid setting, [`Error::Failed`] if the disk has no room.
    fn plan(&self, call: &Call) -> Result<Vec<Box<dyn Plan>>, Error>;
    /// Returns findings on its own rows.
    fn findings(&self, _: &Evidence) -> Vec<Finding> {
        Vec::new()
    }
    /// Returns advice on writing, from its own rows.
    fn advice(&self, _: &Evidence) -> Vec<Advice> {
        Vec::new()
    }
    /// Returns the headline figures.
    fn answers(&self, _: &Evidence) -> Vec<Answer> {
        Vec::new()
    }
}

/// A row that can be requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The scenario: `ladder`.
    pub scenario: &'static str,
    /// The row: `stream/direct-io_uring`. Rows that differ only in a number have one entry:
    /// `peak/read`.
    pub row: &'static str,
    /// The way of writing, in words.
    pub way: &'static str,
    /// The level that a write survives without fallbacks; `None` for reads.
    pub survives: Option<wrote::Survives>,
}

impl Listed {
    /// Returns whether `name` is the row or its workload (the part before a `/`).
    pub fn is_called(&self, name: &str) -> bool {
        is_below(self.row, name)
    }
}

/// Returns whether `row` is `name`, or starts with `name` and a `/`.
pub(crate) fn is_below(row: &str, name: &str) -> bool {
    row.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The input of [`Scenario::plan`].
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The requested names.
    pub only: &'a [String],
    /// The validated common settings.
    pub common: &'a Common,
    /// The disk under the path.
    pub target: &'a Target,
    /// The time from the start to the end, where the request limits it.
    pub within: Option<Duration>,
}

impl Call<'_> {
    /// Returns whether the request names neither rows nor amounts: the first screen is measured.
    pub fn is_default(&self) -> bool {
        self.only.is_empty() && !self.common.has_amount()
    }

    /// Returns whether the request names this row, its workload or its scenario.
    pub fn names(&self, scenario: &str, row: &str) -> bool {
        self.only.iter().any(|name| name == scenario || is_below(row, name))
    }
}

/// Where and within which limits to measure.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// The scenario; its files are named after it.
    pub scenario: &'static str,
    /// The disk under the path.
    pub target: &'a Target,
    /// The run's folder for its files.
    pub scratch: &'a Scratch,
    /// Raised when the user asks to stop.
    pub stop: &'a Stop,
    /// The time since the program's start.
    pub clock: &'a dyn Clock,
    /// Keeps the last test files.
    pub keep: bool,
    /// The speed of the disk, filled by the first calibration.
    pub speed: &'a OnceLock<Calibration>,
    /// The processes that measure together.
    pub peers: &'a dyn Peers,
    /// Synchronizes timed parts of the run across ranks; `None` for a single rank, and outside of
    /// runs.
    pub together: Option<&'a Together<'a>>,
    /// Settings for several ranks.
    pub ranks: RankSettings,
}

impl<'a> Site<'a> {
    /// Returns the underlying block device, if any.
    pub fn device(&self) -> Option<&'a BlockDevice> {
        device_of(self.target)
    }

    /// Returns the path of a file of this scenario, unique per scenario and rank.
    pub fn file(&self, part: &str, number: u32) -> PathBuf {
        self.scratch.file(self.scenario, part, number)
    }

    /// Returns whether all ranks share the files of [`Site::job_files`].
    fn shares_files(&self) -> bool {
        self.ranks.files != RankFiles::PerRank && self.peers.are_many()
    }

    /// Returns the paths of `count` files for this scenario's jobs: private to this rank, or shared
    /// by all.
    pub fn job_files(&self, part: &str, count: u32) -> Vec<PathBuf> {
        match self.shares_files() {
            true => (0..count).map(|n| self.scratch.shared_file(self.scenario, part, n)).collect(),
            false => self.files(part, count),
        }
    }

    /// Removes files, and flushes their folder. Rank 0 removes shared files.
    ///
    /// # Errors
    ///
    /// Like [`clear`].
    pub fn clear(&self, files: &[PathBuf]) -> Result<(), Error> {
        let is_others = |path: &PathBuf| {
            let is_shared = self.shares_files() && !self.peers.is_first();
            is_shared && !self.scratch.is_of_rank(path)
        };
        let files: Vec<PathBuf> = files.iter().filter(|path| !is_others(path)).cloned().collect();
        clear(&files, self.scratch.path())
    }

    /// Returns the jobs as this rank runs them, with their files. Timed reads may read what another
    /// rank wrote.
    fn placed(
        &self,
        jobs: &[JobSpec],
        permissions: Permissions,
    ) -> Result<(Vec<JobSpec>, Permissions), Error> {
        let shares = self.shares_files()
            && jobs.iter().flat_map(|job| &job.files).all(|path| !self.scratch.is_of_rank(path));
        let shift =
            if self.ranks.reorder && self.together.is_some() { self.peers.shift() } else { 0 };
        if !self.peers.are_many() || !shares && shift == 0 {
            return Ok((jobs.to_vec(), permissions));
        }
        let files = if shares { self.ranks.files } else { RankFiles::PerRank };
        let regions = Regions { peers: self.peers, files, shift };
        let name = |path: &Path, rank| self.scratch.of_rank(path, rank);
        // They are removed with the other files of the run.
        regions.prepare(jobs, name, self.stop)?.keep();
        // The run created the shared file, and each rank writes to its own region.
        let overwrite = permissions.overwrite || shares;
        Ok((regions.place(jobs, name)?, Permissions { overwrite, ..permissions }))
    }

    /// Returns the disk's state before the jobs of a run. The blocks of the files `settled` are
    /// written and flushed.
    pub fn before(&self, settled: &[PathBuf], files: &[PathBuf]) -> Before {
        let counts = self.device().is_some_and(BlockDevice::counts);
        let settled = settled.iter().cloned().collect();
        Before::new(files[0].clone(), self.target.clone(), settled, counts)
    }

    /// Runs jobs concurrently on the run's own files.
    ///
    /// # Errors
    ///
    /// Like [`jobs::run`].
    pub fn run_jobs(
        &self,
        jobs: &[JobSpec],
        permissions: Permissions,
    ) -> Result<GroupReport, Error> {
        self.run_jobs_watched(jobs, permissions, &mut ())
    }

    /// Like [`Site::run_jobs`], with a progress watcher.
    ///
    /// # Errors
    ///
    /// Like [`jobs::run`].
    pub fn run_jobs_watched(
        &self,
        jobs: &[JobSpec],
        permissions: Permissions,
        watcher: &mut dyn Watcher,
    ) -> Result<GroupReport, Error> {
        let mut watcher = InStep { watcher, together: self.together };
        let (jobs, permissions) = self.placed(jobs, permissions)?;
        let group = jobs::run(&jobs, permissions, self.stop, &mut watcher)?.remove(0);
        if let Some(together) = self.together {
            together.is_over(span_of(&group));
        }
        Ok(group)
    }

    /// Returns the timer for a run's timed parts.
    pub fn timer(&self) -> Timer<'a> {
        Timer::new(self.device(), self.together)
    }

    /// Returns the place for untimed work, which each rank does on its own.
    pub fn apart(&self) -> Site<'a> {
        Site { together: None, ..*self }
    }

    /// Returns the minimum of all ranks' values, so that sizes derived from a speed are the same on
    /// all.
    ///
    /// # Errors
    ///
    /// Like [`Peers::meet`].
    pub fn least(&self, value: f64) -> Result<f64, Error> {
        self.peers.least("the calibration", value)
    }

    /// Returns the paths of `count` files of this scenario.
    pub fn files(&self, part: &str, count: u32) -> Vec<PathBuf> {
        (0..count).map(|number| self.file(part, number)).collect()
    }
}

/// Starts the jobs of all ranks together.
struct InStep<'a> {
    watcher: &'a mut dyn Watcher,
    together: Option<&'a Together<'a>>,
}

impl Watcher for InStep<'_> {
    fn group(&mut self, group: u32, jobs: &[JobSpec], laid_out_bytes: u64) {
        self.watcher.group(group, jobs, laid_out_bytes);
    }

    fn progress(&mut self, read_bytes: u64, written_bytes: u64, fraction: f64) {
        self.watcher.progress(read_bytes, written_bytes, fraction);
    }

    fn ready(&mut self) -> Result<(), Error> {
        self.watcher.ready()?;
        self.together.map_or(Ok(()), Together::begin)
    }

    fn note(&mut self, text: &str) {
        self.watcher.note(text);
    }
}

/// The result of one scenario.
#[derive(Debug)]
pub struct Measured {
    /// The scenario with its rows.
    pub scenario: wrote_result::document::Scenario,
    /// Total file bytes written.
    pub written_bytes: u64,
    /// Requested rows that were not measured, with reasons.
    pub left_out: Vec<(String, String)>,
    /// The parts shortened for lack of time.
    pub shortened: Option<Shortened>,
    /// The bytes that the disk writes faster than its sustained rate.
    pub burst: Option<Burst>,
    /// The user stopped it: rows have fewer runs or are missing.
    pub is_interrupted: bool,
}

/// The scenario of a plan's rows, their runs, and the time of each.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The scenario's name.
    pub name: &'static str,
    /// The question that the rows answer.
    pub question: String,
    /// Runs per row.
    pub runs: u32,
    /// The time of a run by its clock, the same for every row. What is announced follows from it.
    pub slice: Duration,
    /// The limit of time, if there is one.
    pub within: Option<Within>,
}

/// A limit of time. Rounds that don't fit are not made, down to [`RUNS_MIN`](crate::RUNS_MIN).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Within {
    /// The time from the program's start to its end.
    pub asked: Duration,
    /// The time from the program's start to the end of the last run.
    pub until: Duration,
    /// Whether the least important rows are left out where the fewest rounds don't fit either.
    pub leaves_out: bool,
}

/// The fraction of the time reserved for removing files and printing the result: three seconds of
/// sixty.
const AFTER_PART: u32 = 20;

impl Within {
    /// Limits the time to `asked`, where `kept` of it is for later scenarios.
    pub fn new(asked: Duration, kept: Duration, leaves_out: bool) -> Within {
        Within { asked, until: asked - asked / AFTER_PART - kept, leaves_out }
    }
}

/// Rows that are measured in turn. The module `rounds` has the loop around them.
pub trait Plan {
    /// Returns the scenario of the rows, and their runs.
    fn scope(&self) -> Scope;
    /// Returns the rows' names, in order.
    fn rows(&self) -> Vec<String>;
    /// Returns the importance of a row, 0 being the highest.
    fn importance(&self, row: usize) -> usize {
        row
    }
    /// Returns the order of `rounds` rounds: in turn (M8). Runs that would disturb another row's
    /// runs come after those, again in turn.
    fn order(&self, rounds: u32) -> Vec<Turn> {
        in_turn(self.rows().len(), rounds)
    }
    /// Returns the number of runs counted in [`Plan::prepare`].
    fn runs_before(&self) -> u32 {
        0
    }
    /// Returns the total number of runs.
    fn runs_total(&self) -> u32 {
        self.runs_before() + self.scope().runs * self.rows().len() as u32
    }
    /// Returns requested rows that this machine can't measure, with reasons.
    fn left_out(&self) -> Vec<(String, String)> {
        Vec::new()
    }
    /// Returns the most bytes in the folder at any time.
    fn space_bytes_max(&self) -> u64;
    /// Returns the most bytes written in total; `u64::MAX` if limited only by time.
    fn written_bytes_max(&self) -> u64;
    /// Returns the time of what may follow the runs.
    fn afterwards(&self) -> Duration {
        Duration::ZERO
    }
    /// Returns whether the bytes of a run follow from the disk's speed.
    fn wants_calibration(&self) -> bool {
        false
    }
    /// Receives the disk's speed, from which follow the most bytes of each run, before they are
    /// announced.
    fn calibrated(&mut self, _: &Calibration) {}
    /// Creates what all runs share, and measures what the amount of a row's run follows from.
    /// Returns the bytes written.
    fn prepare(&mut self, _: &Site, _: &mut Ticker) -> Result<u64, Error> {
        Ok(0)
    }
    /// Returns whether to skip the run due at `now`, because its row has failed, or another row
    /// needs the time more. All ranks decide alike.
    fn gives_up(&mut self, _turn: Turn, _now: Duration) -> bool {
        false
    }
    /// Makes one timed run and returns its row, or two if it reads and writes. The run's files
    /// stay. Several ranks run it at once, each with the same number of timed parts.
    fn run(&mut self, turn: Turn, site: &Site, ticker: &mut Ticker) -> Result<Repeated, Error>;
    /// Returns whether its rows are jobs on [`Site::job_files`], which ranks may share.
    fn shares_files(&self) -> bool {
        false
    }
    /// Returns whether [`Plan::clear`] removes files of this row.
    fn makes_files(&self, _row: usize) -> bool {
        false
    }
    /// Removes the files of the row's last run.
    fn clear(&mut self, _row: usize, _: &Site) -> Result<(), Error> {
        Ok(())
    }
    /// Returns the files that all runs share. The loop removes them at the end.
    fn shared_files(&self, _: &Site) -> Vec<PathBuf> {
        Vec::new()
    }
    /// Releases other resources of the plan, and removes files that no other method covers, unless
    /// the site keeps them.
    fn finish(&mut self, _: &Site) -> Result<(), Error> {
        Ok(())
    }
    /// Adds figures derived from the rows of all ranks to a combined run.
    fn summed(&self, run: Repeated) -> Result<Repeated, Error> {
        Ok(run)
    }
    /// Returns the knee, if the rows form a curve.
    fn knee(&self, _: &[Row]) -> Option<Knee> {
        None
    }
    /// Returns the bytes that the disk wrote faster than its sustained rate.
    fn burst(&self) -> Option<Burst> {
        None
    }
}

/// Boxes plans, for [`Scenario::plan`].
pub fn boxed(plans: impl IntoIterator<Item = impl Plan + 'static>) -> Vec<Box<dyn Plan>> {
    plans.into_iter().map(|plan| Box::new(plan) as Box<dyn Plan>).collect()
}

/// The result of one run timed by the scenario.
pub struct OneRun {
    /// The figures of the run.
    pub run: Run,
    /// The latency of each operation; empty if the run is one operation.
    pub latencies: Histogram<u64>,
    /// The settings in effect, with the depth reached.
    pub effective: Settings,
    /// Each setting that was not honoured, with the reason.
    pub fallbacks: Vec<Fallback>,
}

impl OneRun {
    /// Converts the run to a row. `row` provides its name, words, view and level; `asked` are the
    /// requested settings.
    pub fn row(self, row: Row, asked: Settings) -> Repeated {
        let OneRun { run, latencies, effective, mut fallbacks } = self;
        fallbacks.sort();
        fallbacks.dedup();
        let latency_ns = (!latencies.is_empty()).then(|| stats::latency(&latencies));
        let settings = SettingsPair { asked, effective, fallbacks };
        let row = Row { settings, ..row }.with_run(Run { latency_ns, ..run });
        Repeated::one(row, latencies)
    }
}

/// Removes files and flushes their folder.
///
/// Afterwards the file system has released them, and the next run measures only its own writes.
///
/// # Errors
///
/// [`Error::Failed`] names the file that could not be removed.
pub fn clear(files: &[PathBuf], folder: &Path) -> Result<(), Error> {
    for file in files {
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::Failed(format!("{}: unlink: {error}", file.display())));
            }
            _ => {}
        }
    }
    // A folder that can't be flushed (some FUSE) has nothing to release.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}
