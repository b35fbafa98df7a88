//! Runs of jobs: one group after the other, the jobs of a group at once; and their reports.

use crate::machine::counters::Counters;
use crate::peers::Peers;
use crate::spec::JobSpec;
use hdrhistogram::Histogram;
use std::path::PathBuf;
use std::time::Duration;
use wrote_result::document::{CpuBusy, Direction};
use wrote_result::{Error, Stop};

mod check;
mod crew;
mod files;
mod foresight;
mod group;
mod layout;
mod made;
pub mod mark;
mod place;
mod regions;
mod resolve;
#[cfg(test)]
pub(crate) mod tests;
mod verify;

pub use check::check;
pub(crate) use check::is_synchronous;
pub(crate) use files::NEW_BLOCKS;
pub use layout::lay_out;
pub use made::Made;
pub use place::file_key;
pub use regions::{on_own_files, share};
pub use resolve::resolve;

/// Runs all jobs. The groups of several ranks begin together. Files that the run made stay; a run
/// that fails on any rank, or is interrupted, removes them.
///
/// # Errors
///
/// [`Error::Usage`] when the jobs make no sense together, [`Error::Interrupted`] when a caller
/// raised `stop`, else [`Error::Failed`], also as [`Peers::agree`].
pub fn run(
    specs: &[JobSpec],
    permissions: Permissions,
    stop: &Stop,
    watcher: &mut dyn Watcher,
    peers: Peers,
) -> Result<Vec<GroupReport>, Error> {
    check(specs, permissions, watcher)?;
    let (mut made, mut reports) = (Made::default(), Vec::new());
    for group in check::groups(specs) {
        if watcher.keeps_a_part() && stop.is_requested() && !reports.is_empty() {
            break;
        }
        reports.push(group::run_group(&group, &mut made, permissions, stop, watcher, peers)?);
        let unlinked = group.iter().map(|spec| &spec.files).filter(|files| files.unlink);
        unlinked.flat_map(|files| &files.paths).try_for_each(|path| made.remove(path))?;
    }
    peers.barrier("the end of the jobs")?;
    made.keep();
    Ok(reports)
}

pub use crate::machine::usage::Usage;
pub use crate::worker::{DirectionReport, Logged, Mark, Steadiness};

/// Permissions of a run of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Jobs may write over files that exist (W7).
    pub overwrite: bool,
    /// Jobs may read blocks that were never written.
    pub read_unwritten: bool,
    /// Jobs may write to the same bytes at once.
    pub overlap: bool,
    /// Jobs may make files that leave little free: the caller has checked the room for all of them.
    pub fill: bool,
    /// Files that are too short to be read are made longer first.
    pub extend: bool,
    /// Jobs may write to block devices: the caller has checked that these hold nothing.
    pub devices: bool,
}

/// The report of one job.
#[derive(Clone, Debug)]
pub struct JobReport {
    /// The job.
    pub spec: JobSpec,
    /// The settings of the engine in effect, with each fallback.
    pub effective: wrote::Effective,
    /// The other fallbacks (`fallocate` not supported, ..).
    pub fallbacks: Vec<wrote_result::document::Fallback>,
    /// All files of the job bypassed the page cache.
    pub direct: bool,
    /// The start of the job's clock, after `ramp_time`.
    pub started_at: jiff::Timestamp,
    /// The time until the last acknowledgement, flushes included (M1).
    pub elapsed: Duration,
    /// The time before the clock that is not counted (`ramp_time`).
    pub ramp: Duration,
    /// The reads.
    pub read: DirectionReport,
    /// The writes.
    pub write: DirectionReport,
    /// Nanoseconds of each `fsync(2)` and `fdatasync(2)`.
    pub flush_ns: Histogram<u64>,
    /// Nanoseconds of each write until the `fsync(2)` or `fdatasync(2)` that covers it has ended
    /// (M11), where those come between writes; with `latency_with_flush` the latencies are that.
    pub durable_ns: Histogram<u64>,
    /// Bytes for the job to read that were never written; `None` where the kernel does not report
    /// it, as for a block device.
    pub unwritten_bytes: Option<u64>,
    /// Nanoseconds from when an operation with a rate was due and had room until it was passed to
    /// the engine; empty without a rate.
    pub issue_delay_ns: Histogram<u64>,
    /// Bytes written over time: hundreds of marks along the run, about evenly in bytes and in time;
    /// empty without writes.
    pub trail: Vec<Mark>,
    /// Bytes that were read and checked, for a job that writes by `do_verify`.
    pub verified_bytes: u64,
    /// The reads of `do_verify` after the clock stopped, and their time.
    pub read_back: Option<(DirectionReport, Duration)>,
    /// The entries of the job's log files.
    pub log: Vec<Logged>,
    /// The rates of each second before the job's end, where it ends when they are steady.
    pub steady: Option<Steadiness>,
    /// CPU use of the job's thread. For a job alone in its group it is the process's, with the
    /// kernel's threads (SQPOLL, io_uring's workers).
    pub usage: Usage,
    /// Operations in flight when the job queued another.
    pub depths: Histogram<u64>,
    /// Operations submitted to the kernel together.
    pub submitted_together: Histogram<u64>,
    /// Operations that completed together.
    pub completed_together: Histogram<u64>,
}

impl JobReport {
    /// Returns the report of this direction.
    pub fn direction(&self, direction: Direction) -> &DirectionReport {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
        }
    }
}

/// Two jobs that used the same bytes of a file at once, at least one of them to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// The file by the name that the later job has for it.
    pub file: PathBuf,
    /// The names of the jobs.
    pub jobs: [String; 2],
}

/// The page cache's bytes of a file that a job uses directly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The file.
    pub file: PathBuf,
    /// First byte of the file that the job uses.
    pub offset_bytes: u64,
    /// Cached bytes from there on before the group ran.
    pub before_bytes: u64,
    /// Cached bytes from there on after the group ran.
    pub after_bytes: u64,
}

/// The report of a group. The counters belong to the device below its first job's files (M7).
#[derive(Clone, Debug, Default)]
pub struct GroupReport {
    /// The jobs, in the order of the job file.
    pub jobs: Vec<JobReport>,
    /// The time from the first job's start to the last one's end.
    pub elapsed: Duration,
    /// The device's counters while the group ran, of all programs.
    pub device: Option<Counters>,
    /// The process's CPU use while the group ran, its peak of memory, and the kernel's threads that
    /// work for it. `None` where a job has a ramp, which reports leave out.
    pub process: Option<Usage>,
    /// The process's peak resident memory, in bytes.
    pub max_rss_bytes: u64,
    /// The busiest CPU while the group ran, with the work of all programs.
    pub cpu_busiest: Option<CpuBusy>,
    /// CPU seconds for which threads of the jobs were ready to run and waited for a CPU.
    pub cpu_waited_s: Option<f64>,
    /// The files of direct jobs whose cached bytes the kernel reports.
    pub held: Vec<Held>,
    /// Jobs that used the same bytes at once.
    pub overlaps: Vec<Overlap>,
    /// Bytes to read through the page cache that it held when the clock started. `None` where no
    /// job does so, or where the kernel does not report it.
    pub cached_before_bytes: Option<u64>,
}

impl GroupReport {
    /// Returns the file bytes that the jobs wrote.
    pub fn written_bytes(&self) -> u64 {
        self.jobs.iter().map(|job| job.write.bytes).sum()
    }
}

/// Receives the progress of a run of jobs. Every method defaults to a no-op.
pub trait Watcher {
    /// Called before the run makes a group's files ready, which writes `laid_out_bytes`.
    fn group(&mut self, _group: u32, _jobs: &[&JobSpec], _laid_out_bytes: u64) {}
    /// Called several times per second while a group runs, with the bytes that its jobs have read
    /// and written, and the estimated progress from 0 to 1.
    fn progress(&mut self, _read_bytes: u64, _written_bytes: u64, _fraction: f64) {}
    /// Called when all jobs of a group are ready, before their clock starts. If it fails, no job of
    /// the group begins.
    fn ready(&mut self) -> Result<(), Error> {
        Ok(())
    }
    /// Returns whether jobs that are asked to stop report the part that they have done, instead of
    /// an error.
    fn keeps_a_part(&self) -> bool {
        false
    }
    /// Called with a remark that is not part of the result.
    fn note(&mut self, _text: &str) {}
}

impl Watcher for () {}

/// Returns the values of all histograms in one.
pub fn merged<'a>(histograms: impl Iterator<Item = &'a Histogram<u64>>) -> Histogram<u64> {
    let mut all = Histogram::new(3).expect("3 digits are possible");
    histograms.for_each(|one| all.add(one).expect("it grows as it must"));
    all
}

/// Returns the first start and the last end of these jobs, in seconds since 1970; zeros without a
/// job.
pub fn span_s<'a>(jobs: impl IntoIterator<Item = &'a JobReport>) -> (f64, f64) {
    let (began, ended) = first_and_last(jobs);
    (began as f64 / 1e9, ended as f64 / 1e9)
}

/// Returns the time from the first start of these jobs to the last end, and zero without a job.
pub fn span<'a>(jobs: impl IntoIterator<Item = &'a JobReport>) -> Duration {
    let (began, ended) = first_and_last(jobs);
    Duration::from_nanos((ended - began) as u64)
}

/// Returns the first start and the last end, in nanoseconds since 1970; zeros without a job.
fn first_and_last<'a>(jobs: impl IntoIterator<Item = &'a JobReport>) -> (i128, i128) {
    let times = jobs.into_iter().map(|job| {
        let began = job.started_at.as_nanosecond();
        (began, began + job.elapsed.as_nanos() as i128)
    });
    times.reduce(|all, job| (all.0.min(job.0), all.1.max(job.1))).unwrap_or_default()
}
