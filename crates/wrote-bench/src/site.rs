//! The site of a run: its folder and files, its clock, and the ranks that run at the same time.

use crate::scratch::{OF_RANK, Scratch};
use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wrote::device::{BlockDevice, Target};
use wrote_jobs::clock::Timer;
use wrote_jobs::jobs::{self, GroupReport, Permissions, Watcher};
use wrote_jobs::machine::counters::Counters;
use wrote_jobs::machine::target::device_of;
use wrote_jobs::peers::Peers;
use wrote_jobs::report::Before;
use wrote_jobs::spec::JobSpec;
use wrote_result::document::RankFiles;
use wrote_result::{Error, Stop};

/// The time since the start of `wrote`. Tests use other clocks.
pub trait Clock: Debug {
    /// Returns the time since the start of `wrote`.
    fn elapsed(&self) -> Duration;
}

/// The machine's clock, with the start of `wrote`.
#[derive(Clone, Copy, Debug)]
pub struct SinceStart(pub Instant);

impl Clock for SinceStart {
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// The site of a measurement: where to measure, and within which limits.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// The name of the scenario, which begins the names of its files.
    pub scenario: &'static str,
    /// The disk under the path.
    pub target: &'a Target,
    /// The folder for the files of the run.
    pub scratch: &'a Scratch,
    /// The request to stop, which the user may raise.
    pub stop: &'a Stop,
    /// The clock that counts from the start of `wrote`.
    pub clock: &'a dyn Clock,
    /// Whether to keep the last test files.
    pub keep: bool,
    /// The processes that measure together.
    pub peers: Peers<'a>,
    /// The processes that begin each timed part of a run together; outside of runs, only this
    /// process.
    pub timed: Peers<'a>,
    /// Whether ranks share files, and how.
    pub rank_files: RankFiles,
}

impl<'a> Site<'a> {
    /// Returns the underlying block device, if any.
    pub fn device(&self) -> Option<&'a BlockDevice> {
        device_of(self.target)
    }

    /// Returns the path of a file of this scenario, which is different for each scenario and rank.
    pub fn file(&self, part: &str, number: u32) -> PathBuf {
        self.scratch.file(self.scenario, part, number)
    }

    /// Returns whether all ranks share the files of [`Site::job_files`].
    fn shares_files(&self) -> bool {
        self.rank_files != RankFiles::PerRank && self.peers.are_many()
    }

    /// Returns the paths of `count` files for this scenario's jobs. The files are private to this
    /// rank, or all ranks share them.
    pub fn job_files(&self, part: &str, count: u32) -> Vec<PathBuf> {
        match self.shares_files() {
            true => (0..count).map(|n| self.scratch.shared_file(self.scenario, part, n)).collect(),
            false => self.files(part, count),
        }
    }

    fn is_shared(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        self.shares_files() && !name.contains(OF_RANK)
    }

    /// Removes files, and flushes their folder. Shared files are removed by rank 0.
    ///
    /// # Errors
    ///
    /// Like [`clear`].
    pub fn clear(&self, files: &[PathBuf]) -> Result<(), Error> {
        let is_ours = |path: &&PathBuf| self.peers.is_first() || !self.is_shared(path);
        clear(files.iter().filter(is_ours), self.scratch.path())
    }

    /// Like [`Site::clear`], but for the end of a plan: removes nothing if the site keeps its
    /// files.
    ///
    /// # Errors
    ///
    /// Like [`clear`].
    pub fn clear_shared(&self, files: &[PathBuf]) -> Result<(), Error> {
        if self.keep { Ok(()) } else { self.clear(files) }
    }

    /// Returns the state of the disk before the jobs of a run. The blocks of the files in `settled`
    /// are written and flushed.
    pub fn before(&self, settled: &[PathBuf], files: &[PathBuf]) -> Before {
        let counts = self.device().and_then(Counters::of).is_some();
        let settled = settled.iter().cloned().collect();
        Before::new(files[0].clone(), self.target.clone(), settled, counts)
    }

    /// Runs jobs concurrently on the files of the run. `watcher` receives their progress.
    ///
    /// # Errors
    ///
    /// Like [`jobs::run`].
    pub fn run_jobs(
        &self,
        jobs: &[JobSpec],
        permissions: Permissions,
        watcher: &mut dyn Watcher,
    ) -> Result<GroupReport, Error> {
        let run = |jobs: &[JobSpec], permissions, watcher| {
            jobs::run(jobs, permissions, self.stop, watcher, self.timed)
        };
        let mut files = jobs.iter().flat_map(|job| &job.files.paths);
        let is_shared = files.all(|path| self.is_shared(path));
        let mut groups = if is_shared {
            let (jobs, permissions, made) = jobs::share(jobs, permissions, self.peers, self.stop)?;
            // The shared files are removed with the other files of the run.
            made.keep();
            run(&jobs, permissions, watcher)?
        } else {
            run(jobs, permissions, watcher)?
        };
        let group = groups.remove(0);
        self.timed.is_over(jobs::span_s(&group.jobs));
        Ok(group)
    }

    /// Waits for all ranks, and returns the timer for the part of a run that begins then.
    ///
    /// # Errors
    ///
    /// Like [`Peers::agree`].
    pub fn timer(&self) -> Result<Timer<'a>, Error> {
        self.timed.barrier("the start of a run")?;
        Ok(Timer { device: self.device(), peers: self.timed })
    }

    /// Returns the site for untimed work, which each rank does by itself.
    pub fn apart(&self) -> Site<'a> {
        Site { timed: Peers::ALONE, ..*self }
    }

    /// Returns the minimum of all ranks' values, so that sizes that follow from a speed are the
    /// same on all ranks.
    ///
    /// # Errors
    ///
    /// Like [`Peers::agree`].
    pub fn least(&self, value: f64) -> Result<f64, Error> {
        self.peers.agree("the calibration", value, |all| Ok(all.into_iter().fold(value, f64::min)))
    }

    /// Returns the paths of `count` files of this scenario that are private to this rank.
    pub fn files(&self, part: &str, count: u32) -> Vec<PathBuf> {
        (0..count).map(|number| self.file(part, number)).collect()
    }
}

/// Removes files, and flushes their folder.
///
/// The file system has then released the files, so that the next run measures only its own writes.
///
/// # Errors
///
/// [`Error::Failed`], which names the file that could not be removed.
pub fn clear<'a>(files: impl IntoIterator<Item = &'a PathBuf>, folder: &Path) -> Result<(), Error> {
    for file in files {
        match std::fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Error::Failed(format!("{}: unlink: {error}", file.display())));
            }
            _ => {}
        }
    }
    // A folder that can't be flushed (as on some FUSE file systems) has nothing to release.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}
