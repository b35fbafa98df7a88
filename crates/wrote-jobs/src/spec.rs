//! Specifications of jobs in fio's terms, with a value for every setting.
//!
//! The parser of job files creates them, and so do the scenarios `ladder`, `peak`, `rand` and
//! `sustained`. [`crate::jobs`] runs them.

mod order;
mod parts;

pub use order::{BlockShare, BlockSizes, Distribution, Order, READ, Rw, WRITE, Zone};
pub use parts::{Data, Fallocate, Files, Io, Pacing, Steady, SyncEach, Think, Verify, Writes};

use crate::rate::Rate;
use std::fmt::Display;
use std::ops::{Deref, DerefMut, Range};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use wrote_result::document::Process;

/// The maximum number of files of one job, each of which is kept open.
pub(crate) const NRFILES_MAX: u32 = 1024;

/// A part of a job, which its clones share until one of them changes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part<T>(Arc<T>);

impl<T> Deref for Part<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Part<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

/// A job with its files. A section with `numjobs` becomes that number of [`JobSpec`]s, which share
/// equal parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobSpec {
    /// The name of the section.
    pub name: String,
    /// The job's number among the section's `numjobs`, starting at 0.
    pub clone: u32,
    /// The clone's seed for offsets, sizes, the mix and Poisson arrivals. The same seed gives the
    /// same order (`randrepeat`).
    pub seed: u64,
    /// The number of the job's group. The jobs of a group run at the same time, and groups run one
    /// after another (`stonewall`).
    pub group: u32,
    /// Whether the jobs of the group are reported as one.
    pub group_reporting: bool,
    /// The operations of the job.
    pub order: Part<Order>,
    /// How the operations reach the kernel.
    pub io: Part<Io>,
    /// The files of the job.
    pub files: Part<Files>,
    /// The job's flushes, and the data that it writes.
    pub writes: Part<Writes>,
    /// The job's start, pace and end.
    pub pace: Part<Pacing>,
    /// Whether each operation is timed (not with `gtod_reduce`, or with both `disable_lat` and
    /// `disable_clat`).
    pub latencies: bool,
    /// Whether the rates are sampled (not with `disable_bw_measurement`).
    pub samples: bool,
    /// The time over which each entry of the log files is a mean (`write_lat_log`). With zero, each
    /// operation is an entry.
    pub log: Option<Duration>,
    /// The percentiles that the report lists.
    pub percentiles: Arc<[f64]>,
    /// The keys of the section and of `[global]`, as written and in order, for reports.
    pub options: Arc<[(String, String)]>,
    /// The keys that are set in a file, with their lines, for errors.
    pub lines: Arc<[(&'static str, usize)]>,
    /// The name of the job file.
    pub job_file: Arc<str>,
}

impl JobSpec {
    /// Returns whether the job writes nothing and only checks the blocks of an earlier job. Such a
    /// job is allowed to read bytes that were never written: they have no blocks to check.
    pub fn only_verifies(&self) -> bool {
        self.writes.verify.is_some() && !self.order.rw.write
    }

    /// Returns a key with its location, as written: `jobs.fio: line 7: [wal] bs=2300`. If the key
    /// is not set, shows `value`.
    pub fn written(&self, key: &str, value: impl Display) -> String {
        let line = self.lines.iter().find(|(name, _)| *name == key);
        let place = line.map(|(_, line)| format!("{}: line {line}: ", self.job_file));
        let value = self.option(key).map_or_else(|| value.to_string(), str::to_owned);
        format!("{}[{}] {key}={value}", place.unwrap_or_default(), self.name)
    }

    /// Returns the last value that the job file sets for a key; `None` if the key is not set.
    pub fn option(&self, key: &str) -> Option<&str> {
        let written = self.options.iter().rev().find(|(name, _)| name == key);
        written.map(|(_, value)| value.as_str())
    }

    /// Returns whether a key is set to a value other than 0.
    pub(crate) fn is_on(&self, key: &str) -> bool {
        self.option(key).is_some_and(|value| value != "0")
    }

    /// Returns whether a key is set to 0.
    pub(crate) fn is_off(&self, key: &str) -> bool {
        self.option(key) == Some("0")
    }

    /// Returns the percentiles if the report shows any, and none otherwise.
    pub(crate) fn percentiles_if(&self, is_shown: bool) -> &[f64] {
        if is_shown { &self.percentiles } else { &[] }
    }

    /// Returns a job without files that transfers each block once, one at a time, with direct I/O
    /// through io_uring and registered buffers and files.
    pub fn new(name: &str, rw: Rw, bs_bytes: u64) -> JobSpec {
        let (name, bs) = (name.into(), BlockSizes::one(bs_bytes));
        let job = JobSpec { name, latencies: true, samples: true, seed: 1, ..JobSpec::default() };
        job.with(|job| {
            (job.order.rw, job.order.rwmixread_percent) = (rw, 50);
            (job.order.read_bs, job.order.write_bs) = (bs.clone(), bs);
            (job.io.iodepth, job.io.direct) = (1, true);
            (job.io.fixedbufs, job.io.registerfiles) = (true, true);
            (job.files.invalidate, job.pace.loops) = (true, 1);
        })
    }

    /// Returns the job with the change applied.
    pub fn with(mut self, change: impl FnOnce(&mut JobSpec)) -> JobSpec {
        change(&mut self);
        self
    }

    /// Returns whether the run writes the files that it creates before the clock starts.
    pub fn is_laid_out(&self) -> bool {
        self.order.rw.read || self.files.overwrite
    }

    /// Returns the block sizes in the directions that the job uses.
    pub(crate) fn used_sizes(&self) -> impl Iterator<Item = &BlockSizes> {
        let read = self.order.rw.read.then_some(&self.order.read_bs);
        read.into_iter().chain(self.order.rw.write.then_some(&self.order.write_bs))
    }

    /// Returns the size of all operations; `None` if their sizes differ.
    pub fn one_size(&self) -> Option<u64> {
        let mut sizes = self.used_sizes().map(BlockSizes::only);
        let first = sizes.next()??;
        sizes.all(|other| other == Some(first)).then_some(first)
    }

    /// Returns the number of bytes of `number_ios` operations; `None` without such a limit, or if
    /// the sizes of operations differ.
    pub fn number_ios_bytes(&self) -> Option<u64> {
        Some(self.pace.number_ios?.saturating_mul(self.one_size()?))
    }

    /// Returns the part of a file's region that the job may touch. A sequential job touches no more
    /// bytes than it transfers.
    pub fn touched(&self, region: Range<u64>) -> Range<u64> {
        let bytes = self.pace.io_bytes.into_iter().chain(self.number_ios_bytes()).min();
        let bytes = bytes.filter(|_| !self.order.rw.random).unwrap_or(u64::MAX);
        region.start..region.end.min(region.start.saturating_add(bytes))
    }

    /// Returns the largest block size in the directions that the job uses.
    pub fn bs_bytes_max(&self) -> u64 {
        self.used_sizes().map(BlockSizes::most_bytes).max().unwrap_or(0)
    }

    /// Returns a clone of the job for each file. If there is a rate, the clones share it, and each
    /// repeats for its full `runtime`.
    pub fn on_each(&self, files: &[PathBuf], rate: Option<Rate>) -> Vec<JobSpec> {
        let count = files.len() as u32;
        let clone = |(number, file): (u32, &PathBuf)| {
            let mut job = JobSpec { clone: number, ..self.clone() };
            job.files.paths = vec![file.clone()];
            job.seed = self.seed.wrapping_add(number.into());
            if let Some(rate) = rate {
                job.hold(rate.share(number, count));
                // Staggered starts make the jobs take turns at even intervals, instead of all
                // writing at once.
                if rate.process == Process::Linear {
                    job.pace.startdelay = rate.mean_distance(self.bs_bytes_max()) * number;
                }
            }
            job
        };
        (0..).zip(files).map(clone).collect()
    }

    /// Limits the job to a rate, split between its reads and writes, and makes it repeat for its
    /// full `runtime`.
    fn hold(&mut self, rate: Rate) {
        let rates = match (self.order.rw.read, self.order.rw.write) {
            (true, true) => {
                let reads = rate.percent(self.order.rwmixread_percent);
                [Some(reads), Some(rate.percent(100 - self.order.rwmixread_percent))]
            }
            (read, write) => [read.then_some(rate), write.then_some(rate)],
        };
        let pace = &mut *self.pace;
        [pace.read_rate_bytes_per_s, pace.write_rate_bytes_per_s] =
            rates.map(|rate| rate?.bytes_per_s());
        [pace.read_rate_iops, pace.write_rate_iops] = rates.map(|rate| rate?.iops());
        (pace.rate_process, pace.time_based, pace.io_bytes) = (rate.process, true, None);
    }
}

/// Returns `percent` percent of `bytes`.
pub fn share(bytes: u64, percent: u32) -> u64 {
    (u128::from(bytes) * u128::from(percent) / 100) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clones_of_a_job_share_its_parts_and_a_change_of_one_is_its_own() {
        let job = JobSpec::new("job", READ, 4096);
        let clones = job.on_each(&["a".into(), "b".into()], None);
        for clone in &clones {
            assert!(std::ptr::eq(&*clone.order, &*job.order));
            assert!(std::ptr::eq(&*clone.io, &*job.io) && std::ptr::eq(&*clone.pace, &*job.pace));
        }
        assert_eq!((&clones[1].files.paths[0], job.files.paths.len()), (&"b".into(), 0));
        let other = clones[0].clone().with(|other| other.pace.loops = 2);
        assert_eq!((other.pace.loops, clones[0].pace.loops), (2, 1));
    }
}
