//! A scenario: a question about a disk, with the rows that answer it.

use crate::budget::Clock;
use crate::measured::clear;
use crate::progress::Ticker;
use crate::request::{Common, RankSettings};
use crate::rounds::{Turn, in_turn};
use crate::scratch::Scratch;
use crate::trial::Trial;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;
use wrote::device::{BlockDevice, Target};
use wrote_jobs::clock::{Timer, Together};
use wrote_jobs::findings::{Burst, Evidence, Shortened};
use wrote_jobs::jobs::{self, GroupReport, Permissions, Watcher};
use wrote_jobs::peers::{Peers, Regions, span_of};
use wrote_jobs::report::{Before, Repeated};
use wrote_jobs::spec::JobSpec;
use wrote_machine::target::device_of;
use wrote_result::document::{Advice, Answer, Finding, Knee, RankFiles, Row};
use wrote_result::{Error, Stop};

/// A scenario, with its own settings. The registry (`scenarios.rs`) has two lines for each.
pub trait Scenario {
    /// The name in results and in `--only`.
    fn name(&self) -> &'static str;
    /// The rows that a request may name.
    fn catalogue(&self) -> Vec<Listed>;
    /// Whether `name` is the scenario, one of its workloads, or one of its rows.
    fn knows(&self, name: &str) -> bool {
        name == self.name() || self.catalogue().iter().any(|listed| listed.is_called(name))
    }
    /// Whether its operations can be due at a rate (M5).
    fn takes_rate(&self) -> bool {
        true
    }
    /// Whether several ranks can measure it together.
    fn takes_ranks(&self) -> bool {
        true
    }
    /// Whether it is asked to measure in place of every other scenario.
    fn is_alone(&self) -> bool {
        false
    }
    /// Checks the settings and plans the rows that the call names: one measurement, several, or
    /// none.
    ///
    /// # Errors
    ///
    /// [`Error::Usage`] where a setting makes no sense, [`Error::Failed`] where the disk has no
    /// room.
    fn plan(&self, call: &Call) -> Result<Vec<Box<dyn Plan>>, Error>;
    /// Findings on its own rows.
    fn findings(&self, _: &Evidence) -> Vec<Finding> {
        Vec::new()
    }
    /// How to write here, by its own rows.
    fn advice(&self, _: &Evidence) -> Vec<Advice> {
        Vec::new()
    }
    /// The figures that a reader came for.
    fn answers(&self, _: &Evidence) -> Vec<Answer> {
        Vec::new()
    }
}

/// A row that can be named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The scenario: `ladder`.
    pub scenario: &'static str,
    /// The row: `stream/direct-io_uring`. Rows that differ in a number have one entry: `peak/read`.
    pub row: &'static str,
    /// The way of writing, in words.
    pub way: &'static str,
    /// The level that a write survives where nothing falls back; `None` for reads.
    pub survives: Option<wrote::Survives>,
}

impl Listed {
    /// Whether `name` is the row or a workload of it: the text before a `/` of its name.
    pub fn is_called(&self, name: &str) -> bool {
        is_below(self.row, name)
    }
}

/// Whether `row` is `name`, or begins with it and a `/`.
pub(crate) fn is_below(row: &str, name: &str) -> bool {
    row.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The input of [`Scenario::plan`].
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The names of the request.
    pub only: &'a [String],
    /// The settings that every scenario shares. They are checked.
    pub common: &'a Common,
    /// The disk under the path.
    pub target: &'a Target,
}

impl Call<'_> {
    /// Whether the request names this row, its workload or its scenario.
    pub fn names(&self, scenario: &str, row: &str) -> bool {
        self.only.iter().any(|name| name == scenario || is_below(row, name))
    }
}

/// The place and the bounds of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// The scenario that is measured; its files are named after it.
    pub scenario: &'static str,
    /// The disk under the path.
    pub target: &'a Target,
    /// The folder that the run made for its files.
    pub scratch: &'a Scratch,
    /// Raised when the user asks to stop.
    pub stop: &'a Stop,
    /// The time since the program's start.
    pub clock: &'a dyn Clock,
    /// Leaves the last test files where they are.
    pub keep: bool,
    /// The speed of the disk. The first trial run fills it, and later ones use it.
    pub speed: &'a OnceLock<Trial>,
    /// The processes that measure together.
    pub peers: &'a dyn Peers,
    /// The timed parts of the run, which all ranks begin together; `None` alone, and outside of
    /// runs.
    pub together: Option<&'a Together<'a>>,
    /// The settings of several ranks.
    pub ranks: RankSettings,
}

impl<'a> Site<'a> {
    /// The block device below, where there is one.
    pub fn device(&self) -> Option<&'a BlockDevice> {
        device_of(self.target)
    }

    /// The path of a file of this scenario. Two scenarios never share one, nor do two ranks.
    pub fn file(&self, part: &str, number: u32) -> PathBuf {
        self.scratch.file(self.scenario, part, number)
    }

    /// Whether all ranks use the files of [`Site::job_files`].
    fn shares_files(&self) -> bool {
        self.ranks.files != RankFiles::PerRank && self.peers.are_many()
    }

    /// The paths of `count` files that jobs of this scenario use: those of this rank, or those that
    /// all ranks share.
    pub fn job_files(&self, part: &str, count: u32) -> Vec<PathBuf> {
        match self.shares_files() {
            true => (0..count).map(|n| self.scratch.shared_file(self.scenario, part, n)).collect(),
            false => self.files(part, count),
        }
    }

    /// Removes files, and flushes their folder. Of those that ranks share, rank 0 removes them.
    ///
    /// # Errors
    ///
    /// As [`clear`].
    pub fn clear(&self, files: &[PathBuf]) -> Result<(), Error> {
        let is_others = |path: &PathBuf| {
            let is_shared = self.shares_files() && !self.peers.is_first();
            is_shared && !self.scratch.is_of_rank(path)
        };
        let files: Vec<PathBuf> = files.iter().filter(|path| !is_others(path)).cloned().collect();
        clear(&files, self.scratch.path())
    }

    /// The jobs as this rank runs them, with the files that they need. Timed reads may be of what
    /// another rank wrote.
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
        // They go with the other files of the run.
        regions.prepare(jobs, name, self.stop)?.keep();
        // The run made the shared file, and each rank writes to a region of its own.
        let overwrite = permissions.overwrite || shares;
        Ok((regions.place(jobs, name)?, Permissions { overwrite, ..permissions }))
    }

    /// The disk before the jobs of a run; the blocks of the files `settled` were written and
    /// flushed.
    pub fn before(&self, settled: &[PathBuf], files: &[PathBuf]) -> Before {
        let counts = self.device().is_some_and(BlockDevice::counts);
        let settled = settled.iter().cloned().collect();
        Before::new(files[0].clone(), self.target.clone(), settled, counts)
    }

    /// Runs jobs at once on files that the run made, below a folder of its own.
    ///
    /// # Errors
    ///
    /// As [`jobs::run`].
    pub fn run_jobs(
        &self,
        jobs: &[JobSpec],
        permissions: Permissions,
    ) -> Result<GroupReport, Error> {
        self.run_jobs_watched(jobs, permissions, &mut ())
    }

    /// As [`Site::run_jobs`], with a watcher of its progress.
    ///
    /// # Errors
    ///
    /// As [`jobs::run`].
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

    /// The timer of a run's timed parts.
    pub fn timer(&self) -> Timer<'a> {
        Timer::new(self.device(), self.together)
    }

    /// Returns the place for untimed work, which each rank does on its own.
    pub fn apart(&self) -> Site<'a> {
        Site { together: None, ..*self }
    }

    /// Returns the least of all ranks' values: sizes that follow from a speed are alike on all.
    ///
    /// # Errors
    ///
    /// As [`Peers::meet`].
    pub fn least(&self, value: f64) -> Result<f64, Error> {
        self.peers.least("a trial run", value)
    }

    /// The paths of `count` files of this scenario.
    pub fn files(&self, part: &str, count: u32) -> Vec<PathBuf> {
        (0..count).map(|number| self.file(part, number)).collect()
    }
}

/// Has the jobs of all ranks begin together.
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
    /// File bytes written in all.
    pub written_bytes: u64,
    /// Rows that were named and not measured, with the reason.
    pub left_out: Vec<(String, String)>,
    /// The parts that the time was too short for.
    pub shortened: Option<Shortened>,
    /// The bytes that the disk takes faster than what lasts.
    pub burst: Option<Burst>,
    /// The user ended it: rows have fewer runs, or are missing.
    pub is_interrupted: bool,
}

/// The scenario that rows belong to, and the runs of each row.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The scenario's name.
    pub name: &'static str,
    /// The question that the rows answer.
    pub question: String,
    /// Runs of each row.
    pub runs: u32,
}

/// The rows of a scenario, and how one run of a row is made. The module `rounds` owns the loop
/// around it.
pub trait Plan {
    /// The scenario that the rows belong to, and the runs of each row.
    fn scope(&self) -> Scope;
    /// The names of the rows, in order.
    fn rows(&self) -> Vec<String>;
    /// Runs that [`Plan::prepare`] counts by itself.
    fn runs_before(&self) -> u32 {
        0
    }
    /// The number of all runs.
    fn runs_total(&self) -> u32 {
        self.runs_before() + self.scope().runs * self.rows().len() as u32
    }
    /// The most bytes that lie in the folder at any time.
    fn space_bytes_max(&self) -> u64;
    /// The most bytes written in all; `u64::MAX` where only time bounds them.
    fn written_bytes_max(&self) -> u64;
    /// Whether amounts or times depend on the speed of the disk, which a trial run measures.
    fn wants_trial(&self) -> bool {
        false
    }
    /// Learns the speed of the disk, before [`Plan::estimate`] and [`Plan::prepare`].
    fn learn(&mut self, _: Trial) {}
    /// The expected bytes written in all; `None` where they depend on the disk alone.
    fn written_bytes(&self) -> Option<u64> {
        Some(self.written_bytes_max())
    }
    /// The estimated time of all runs.
    fn estimate(&self) -> Duration;
    /// The order of `rounds` rounds: in turn (M8). Runs that spoil the runs of another row come
    /// after those, again in turn.
    fn order(&self, rounds: u32) -> Vec<Turn> {
        in_turn(self.rows().len(), rounds)
    }

    /// Makes what all runs share, and measures what sizes depend on. Returns the bytes written.
    fn prepare(&mut self, _: &Site, _: &mut Ticker) -> Result<u64, Error> {
        Ok(0)
    }
    /// Rows that the request names and this machine cannot measure, with the reason.
    fn left_out(&self) -> Vec<(String, String)> {
        Vec::new()
    }
    /// The time of the runs that are left, where the plan knows better than their mean.
    fn time_left(&self, _: &[Turn]) -> Option<Duration> {
        None
    }
    /// The time from the program's start in which all must be over; `None` without a limit.
    ///
    /// A plan with a limit gives [`Plan::foreseen`], [`Plan::rank`] and [`Plan::shrink`].
    fn within(&self) -> Option<Duration> {
        None
    }
    /// The expected time of a run of this row, its files made, flushed and removed.
    fn foreseen(&self, _row: usize) -> Duration {
        Duration::ZERO
    }
    /// Whether the run that is due at the time `now` is not worth making: its row has failed, or
    /// another row needs the time more. All ranks decide alike.
    fn gives_up(&mut self, _turn: Turn, _now: Duration) -> bool {
        false
    }
    /// The importance of a row, 0 the greatest: where the time is short, others are left out first.
    fn rank(&self, row: usize) -> usize {
        row
    }
    /// Makes all runs from now on shorter by about `factor`. Returns `false` where they are as
    /// short as a figure allows.
    fn shrink(&mut self, _factor: f64) -> bool {
        false
    }
    /// Returns a run of all ranks with what follows from the rows of all of them.
    fn summed(&self, run: Repeated) -> Result<Repeated, Error> {
        Ok(run)
    }
    /// Makes one timed run, and returns its row: two where it reads and writes. The files of the
    /// run stay. Several ranks make it at once, each with as many timed parts as the others.
    fn run(&mut self, turn: Turn, site: &Site, ticker: &mut Ticker) -> Result<Repeated, Error>;
    /// Whether its rows are jobs on [`Site::job_files`], which ranks may share.
    fn shares_files(&self) -> bool {
        false
    }
    /// Whether [`Plan::clear`] removes files of this row.
    fn makes_files(&self, _row: usize) -> bool {
        false
    }
    /// Removes the files of the row's last run.
    fn clear(&mut self, _row: usize, _: &Site) -> Result<(), Error> {
        Ok(())
    }
    /// The files that all runs share. The loop removes them at the end.
    fn shared_files(&self, _: &Site) -> Vec<PathBuf> {
        Vec::new()
    }
    /// Lets go of whatever the plan holds beside its files, and removes files that no other call
    /// names, unless the site keeps them.
    fn finish(&mut self, _: &Site) -> Result<(), Error> {
        Ok(())
    }
    /// The bytes that the disk took faster than what lasts.
    fn burst(&self) -> Option<Burst> {
        None
    }
    /// The bend, where the rows are a curve.
    fn knee(&self, _: &[Row]) -> Option<Knee> {
        None
    }
}

/// Boxes plans, for [`Scenario::plan`].
pub fn boxed(plans: impl IntoIterator<Item = impl Plan + 'static>) -> Vec<Box<dyn Plan>> {
    plans.into_iter().map(|plan| Box::new(plan) as Box<dyn Plan>).collect()
}
