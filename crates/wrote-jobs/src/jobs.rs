//! Runs of jobs, and their reports. Groups run one after another; the jobs of a group run at the
//! same time.

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

/// Runs all jobs. If there are several ranks, they begin each group together. Files that the run
/// created are kept, unless the run fails on any rank or is interrupted.
///
/// # Errors
///
/// [`Error::Usage`] if the jobs make no sense together, [`Error::Interrupted`] if a caller raised
/// `stop`, and otherwise [`Error::Failed`]; also the errors of [`Peers::agree`].
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

/// The permissions of the jobs in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Whether jobs may overwrite existing files (W7).
    pub overwrite: bool,
    /// Whether jobs may read blocks that were never written.
    pub read_unwritten: bool,
    /// Whether jobs may write to the same bytes at the same time.
    pub overlap: bool,
    /// Whether jobs may create files that leave little space free, because the caller has checked
    /// that there is room for all of them.
    pub fill: bool,
    /// Whether files that are too short to be read are extended first.
    pub extend: bool,
    /// Whether jobs may write to block devices, because the caller has checked that the devices
    /// hold nothing.
    pub devices: bool,
}

/// The report of one job.
#[derive(Clone, Debug)]
pub struct JobReport {
    /// The job.
    pub spec: JobSpec,
    /// The engine's settings in effect, with each fallback.
    pub effective: wrote::Effective,
    /// Fallbacks other than the engine's (`fallocate` not supported, ..).
    pub fallbacks: Vec<wrote_result::document::Fallback>,
    /// Whether all files of the job bypassed the page cache.
    pub direct: bool,
    /// When the job's clock started, after `ramp_time`.
    pub started_at: jiff::Timestamp,
    /// The time until the last acknowledgement, including flushes (M1).
    pub elapsed: Duration,
    /// The time before the clock started, which is not counted (`ramp_time`).
    pub ramp: Duration,
    /// The report on the reads.
    pub read: DirectionReport,
    /// The report on the writes.
    pub write: DirectionReport,
    /// The duration of each `fsync(2)` and `fdatasync(2)`, in nanoseconds.
    pub flush_ns: Histogram<u64>,
    /// The time from each write to the end of the `fsync(2)` or `fdatasync(2)` that covers it
    /// (M11), in nanoseconds, if there are flushes between writes. With `latency_with_flush`, these
    /// are the job's latencies.
    pub durable_ns: Histogram<u64>,
    /// The number of bytes to be read that were never written; `None` if the kernel does not report
    /// it, as for a block device.
    pub unwritten_bytes: Option<u64>,
    /// The delays of operations with a rate, in nanoseconds: from when an operation was due and
    /// there was room for it until it was passed to the engine. Empty without a rate.
    pub issue_delay_ns: Histogram<u64>,
    /// How many bytes had been written at which time: at most about a thousand marks, spread about
    /// evenly over the bytes and the time. Empty without writes.
    pub trail: Vec<Mark>,
    /// The number of bytes that were read and checked, if the job writes with `do_verify`.
    pub verified_bytes: u64,
    /// The reads of `do_verify` after the clock stopped, and the time that they took.
    pub read_back: Option<(DirectionReport, Duration)>,
    /// The entries of the job's log files.
    pub log: Vec<Logged>,
    /// The rates in each second before the job's end, if the job ends once they are steady.
    pub steady: Option<Steadiness>,
    /// The CPU use of the job's thread. If the job is alone in its group, this is the use of the
    /// whole process, including the kernel's threads (SQPOLL, the workers of io_uring).
    pub usage: Usage,
    /// The number of operations in flight whenever the job queued another one.
    pub depths: Histogram<u64>,
    /// The number of operations submitted to the kernel together.
    pub submitted_together: Histogram<u64>,
    /// The number of operations that completed together.
    pub completed_together: Histogram<u64>,
}

impl JobReport {
    /// Returns the report on this direction.
    pub fn direction(&self, direction: Direction) -> &DirectionReport {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
        }
    }
}

/// Two jobs that used the same bytes of a file at the same time. At least one of the two wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// The file, under the name that the later job uses for it.
    pub file: PathBuf,
    /// The names of the jobs.
    pub jobs: [String; 2],
}

/// The cached bytes of a file that a job uses with direct I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The file.
    pub file: PathBuf,
    /// The offset of the first byte that the job uses.
    pub offset_bytes: u64,
    /// The number of bytes cached from `offset_bytes` on before the group ran.
    pub before_bytes: u64,
    /// The number of bytes cached from `offset_bytes` on after the group ran.
    pub after_bytes: u64,
}

/// The report of a group. The counters belong to the device below its first job's files (M7).
#[derive(Clone, Debug, Default)]
pub struct GroupReport {
    /// The jobs, in the order of the job file.
    pub jobs: Vec<JobReport>,
    /// The time from the start of the first job to the end of the last.
    pub elapsed: Duration,
    /// The device's counters while the group ran, which include all programs.
    pub device: Option<Counters>,
    /// The process's CPU use and peak memory while the group ran, including kernel threads that
    /// work for the process. `None` if a job has a ramp, which reports leave out.
    pub process: Option<Usage>,
    /// The process's peak resident memory, in bytes.
    pub max_rss_bytes: u64,
    /// The CPU that was busiest while the group ran, counting the work of all programs.
    pub cpu_busiest: Option<CpuBusy>,
    /// The time for which the jobs' threads were ready to run but waited for a CPU, in seconds.
    pub cpu_waited_s: Option<f64>,
    /// The files of direct jobs, as far as the kernel reports their cached bytes.
    pub held: Vec<Held>,
    /// Jobs that used the same bytes at the same time.
    pub overlaps: Vec<Overlap>,
    /// The number of bytes that jobs are to read through the page cache and that were already in it
    /// when the clock started. `None` if no job only reads through the page cache, or if the kernel
    /// does not report it.
    pub cached_before_bytes: Option<u64>,
}

impl GroupReport {
    /// Returns the number of file bytes that the jobs wrote.
    pub fn written_bytes(&self) -> u64 {
        self.jobs.iter().map(|job| job.write.bytes).sum()
    }
}

/// Receives the progress of a run of jobs. By default, every method does nothing.
pub trait Watcher {
    /// Called before the run prepares a group's files, for which it writes `laid_out_bytes`.
    fn group(&mut self, _group: u32, _jobs: &[&JobSpec], _laid_out_bytes: u64) {}
    /// Called several times per second while a group runs, with the bytes that its jobs have read
    /// and written, and with the estimated progress from 0 to 1.
    fn progress(&mut self, _read_bytes: u64, _written_bytes: u64, _fraction: f64) {}
    /// Called when all jobs of a group are ready, before their clock starts. If this fails, no job
    /// of the group begins.
    fn ready(&mut self) -> Result<(), Error> {
        Ok(())
    }
    /// Returns whether jobs that are stopped early report what they have done so far, instead of an
    /// error.
    fn keeps_a_part(&self) -> bool {
        false
    }
    /// Called with a remark that is not part of the result.
    fn note(&mut self, _text: &str) {}
}

impl Watcher for () {}

/// Merges all histograms into one.
pub fn merged<'a>(histograms: impl Iterator<Item = &'a Histogram<u64>>) -> Histogram<u64> {
    let mut all = Histogram::new(3).expect("3 digits are possible");
    histograms.for_each(|one| all.add(one).expect("it grows as it must"));
    all
}

/// Returns the first start and the last end of these jobs, in seconds since 1970; zeros if there
/// are no jobs.
pub fn span_s<'a>(jobs: impl IntoIterator<Item = &'a JobReport>) -> (f64, f64) {
    let (began, ended) = first_and_last(jobs);
    (began as f64 / 1e9, ended as f64 / 1e9)
}

/// Returns the time from the first start of these jobs to the last end; zero if there are no jobs.
pub fn span<'a>(jobs: impl IntoIterator<Item = &'a JobReport>) -> Duration {
    let (began, ended) = first_and_last(jobs);
    Duration::from_nanos((ended - began) as u64)
}

/// Returns the first start and the last end, in nanoseconds since 1970; zeros if there are no jobs.
fn first_and_last<'a>(jobs: impl IntoIterator<Item = &'a JobReport>) -> (i128, i128) {
    let times = jobs.into_iter().map(|job| {
        let began = job.started_at.as_nanosecond();
        (began, began + job.elapsed.as_nanos() as i128)
    });
    times.reduce(|all, job| (all.0.min(job.0), all.1.max(job.1))).unwrap_or_default()
}
