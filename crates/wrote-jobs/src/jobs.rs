//! Runs jobs: one group after the other, the jobs of a group at once.

mod check;
mod crew;
mod files;
mod group;
mod held;
mod layout;
mod made;
mod place;
#[cfg(test)]
mod tests;
mod unwritten;
mod verify;

pub use held::cached_bytes;
pub use layout::lay_out;
pub use place::file_key;

use crate::spec::JobSpec;
pub use crate::worker::Mark;
use hdrhistogram::Histogram;
use std::path::PathBuf;
use std::time::Duration;
use wrote_result::document::CpuBusy;
use wrote_result::{Error, Stop};

/// What a run of jobs is asked, beside the jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Permissions {
    /// Files that exist may be written over (W7).
    pub overwrite: bool,
    /// Blocks that were never written may be read.
    pub read_unwritten: bool,
    /// Jobs may write to the same bytes at once.
    pub overlap: bool,
}

/// What one job did.
#[derive(Clone, Debug)]
pub struct JobReport {
    /// What it was asked.
    pub spec: JobSpec,
    /// What the engine really did, with each fallback.
    pub effective: wrote::Effective,
    /// Each further step from what was asked to what was done (`fallocate` not supported, ..).
    pub fallbacks: Vec<wrote_result::document::Fallback>,
    /// Whether all of its files bypassed the page cache.
    pub direct: bool,
    /// When its clock started, after `ramp_time`.
    pub started_at: jiff::Timestamp,
    /// From then to the last acknowledgement, flushes included (M1).
    pub elapsed: Duration,
    /// What was read.
    pub read: DirectionReport,
    /// What was written.
    pub write: DirectionReport,
    /// Nanoseconds of each `fsync(2)` and `fdatasync(2)`.
    pub flush_ns: Histogram<u64>,
    /// Bytes of its files that it was to read and that were never written; none where that can't be
    /// told, as of a block device.
    pub unwritten_bytes: Option<u64>,
    /// Nanoseconds by which each operation under a rate was handed on later than it was due, or than
    /// there was room for it; empty without a rate.
    pub issue_delay_ns: Histogram<u64>,
    /// How many bytes were written when: hundreds of marks along the run, about evenly in bytes and in
    /// time; none where nothing was written.
    pub trail: Vec<Mark>,
    /// What `do_verify` read and checked, after the clock stopped.
    pub verified_bytes: u64,
    /// CPU seconds in user space: of the job's thread, and where it is alone in its group of the whole
    /// process, so that the kernel's threads that work for it (SQPOLL, io_uring's workers) count. So
    /// for the others below.
    pub cpu_user_s: f64,
    /// CPU seconds in the kernel.
    pub cpu_system_s: f64,
    /// Voluntary and involuntary context switches.
    pub context_switches: u64,
    /// Page faults that needed the disk.
    pub major_faults: u64,
    /// Page faults that did not.
    pub minor_faults: u64,
    /// How many operations were in flight when another was queued: how often each depth was seen.
    pub depths: Histogram<u64>,
    /// How many operations were handed on together.
    pub submitted_together: Histogram<u64>,
    /// How many completed together.
    pub completed_together: Histogram<u64>,
}

/// What one job did in one direction.
#[derive(Clone, Debug)]
pub struct DirectionReport {
    /// Bytes transferred.
    pub bytes: u64,
    /// Operations.
    pub operations: u64,
    /// Nanoseconds from when an operation was queued, or should have been under a rate (M5), to when
    /// its completion was seen.
    pub latency_ns: Histogram<u64>,
    /// Bytes per second, a sample for each half second.
    pub bandwidth_samples_bytes_per_s: Vec<f64>,
    /// Operations per second, a sample for each half second.
    pub iops_samples: Vec<f64>,
}

/// Two jobs that used the same bytes of a file at once, and not only to read them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// The file, as the later of the two names it.
    pub file: PathBuf,
    /// What the jobs are called.
    pub jobs: [String; 2],
}

/// A file that a job uses past the page cache, and what that held of the bytes that are used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The file.
    pub file: PathBuf,
    /// Where the bytes begin that are used.
    pub offset_bytes: u64,
    /// Bytes of them in the page cache before.
    pub before_bytes: u64,
    /// Bytes of them in the page cache after.
    pub after_bytes: u64,
}

/// What a group did to the device below its first job's files, by the block layer's counters (M7).
#[derive(Clone, Debug, Default)]
pub struct GroupReport {
    /// The jobs, in the order of the job file.
    pub jobs: Vec<JobReport>,
    /// From the first job's start to the last one's end.
    pub elapsed: Duration,
    /// Bytes that the device was written meanwhile, by anyone.
    pub device_written_bytes: Option<u64>,
    /// Bytes that were read from the device meanwhile, by anyone.
    pub device_read_bytes: Option<u64>,
    /// The process's peak resident memory, in bytes.
    pub max_rss_bytes: u64,
    /// The CPU that had the most to do meanwhile, whoever gave it.
    pub cpu_busiest: Option<CpuBusy>,
    /// CPU seconds that threads of all jobs were ready to run and had no CPU.
    pub cpu_waited_s: Option<f64>,
    /// The files that were to be used past the page cache; without those of which the kernel does not
    /// say what it holds.
    pub held: Vec<Held>,
    /// Jobs that used the same bytes at once.
    pub overlaps: Vec<Overlap>,
}

/// Is told how far the jobs are.
pub trait Watcher {
    /// Called before a group's files are made ready: `laid_out_bytes` will be written first.
    fn group(&mut self, _group: u32, _jobs: &[JobSpec], _laid_out_bytes: u64) {}
    /// Called a few times a second while a group runs: bytes read and written so far, over all its
    /// jobs, and how far it is, from 0 to 1, as far as anyone can tell.
    fn progress(&mut self, _read_bytes: u64, _written_bytes: u64, _fraction: f64) {}
    /// Something to be said that is no part of the result.
    fn note(&mut self, _text: &str) {}
}

/// A watcher that says nothing.
impl Watcher for () {}

/// Runs all jobs. Files that the run made stay; when it is interrupted or fails they are removed.
///
/// # Errors
///
/// [`Error::Usage`] when the jobs make no sense together, [`Error::Interrupted`] when `stop` was
/// raised, else [`Error::Failed`].
pub fn run(
    specs: &[JobSpec],
    permissions: Permissions,
    stop: &Stop,
    watcher: &mut dyn Watcher,
) -> Result<Vec<GroupReport>, Error> {
    check::check(specs, permissions, &mut |text| watcher.note(text))?;
    // Removes what was made, unless all goes well.
    let mut made = made::Made::default();
    let mut reports = Vec::new();
    for group in check::groups(specs) {
        reports.push(group::run_group(&group, &mut made, permissions, stop, watcher)?);
    }
    made.keep();
    Ok(reports)
}
