//! Reports of jobs as fio's own JSON, for the scripts and plots that read it.
//!
//! Keys, order and units follow `fio --output-format=json` (fio 3.33 and later); `docs/results.md`
//! lists the differences.

mod direction;
mod job;

use crate::jobs::{GroupReport, JobReport};
use direction::Pairs;
use job::Job;
pub(crate) use job::options;
use serde::Serialize;
use std::time::Duration;
use wrote_result::document::Direction;

/// The kernel's unit of counters of a disk with any block size.
const SECTOR_BYTES: u64 = 512;

/// Facts in the document besides the jobs.
#[derive(Clone, Copy, Debug)]
pub struct About<'a> {
    /// The end of the last job.
    pub ended_at: jiff::Timestamp,
    /// The keys of the job file's `[global]`, as written, in their order.
    pub global: &'a [(String, String)],
    /// The kernel's name of the device below the first job's files: `sda1`.
    pub device: Option<&'a str>,
}

/// fio's document, only for serialization.
#[derive(Clone, Debug, Serialize)]
pub struct Document {
    #[serde(rename = "fio version")]
    fio_version: String,
    timestamp: i64,
    timestamp_ms: i64,
    time: String,
    #[serde(rename = "global options")]
    global_options: Pairs<String>,
    jobs: Vec<Job>,
    disk_util: Vec<DiskUtil>,
}

/// The block layer's counters of the device below, for all processes. fio's other figures of a disk
/// (requests, merges, ticks, utilisation) are not counted here and left out.
#[derive(Clone, Debug, Serialize)]
struct DiskUtil {
    name: String,
    read_sectors: u64,
    write_sectors: u64,
}

/// Makes fio's document of reports.
///
/// Each job, and each of its `numjobs`, is an entry of `jobs`; jobs of a group with
/// `group_reporting` are one entry. The version is `wrote-` and ours, as fio's is `fio-3.33`.
pub fn document(groups: &[GroupReport], about: &About) -> Document {
    let elapsed_s = whole_seconds(whole_span(groups.iter().flat_map(|group| &group.jobs)));
    let jobs = groups.iter().flat_map(|group| entries_of(group, elapsed_s)).collect();
    Document {
        fio_version: concat!("wrote-", env!("CARGO_PKG_VERSION")).into(),
        timestamp: about.ended_at.as_second(),
        timestamp_ms: about.ended_at.as_millisecond(),
        // As ctime(3) writes it, but in UTC: fio uses the local time.
        time: about.ended_at.strftime("%a %b %e %H:%M:%S %Y").to_string(),
        global_options: Pairs(unchanged(groups, about.global)),
        jobs,
        disk_util: about.device.and_then(|device| disk_util(groups, device)).into_iter().collect(),
    }
}

/// Returns the global options that hold for every job. Readers prefer them to a job's own, so an
/// option that a section changes is left out; each job has it anyway.
fn unchanged(groups: &[GroupReport], global: &[(String, String)]) -> Vec<(String, String)> {
    let holds = |option: &&(String, String)| {
        groups.iter().flat_map(|group| &group.jobs).all(|job| {
            let of_job = job.spec.options.iter().rev().find(|(key, _)| *key == option.0);
            of_job.is_none_or(|(_, value)| *value == option.1)
        })
    };
    global.iter().filter(holds).cloned().collect()
}

fn entries_of(group: &GroupReport, elapsed_s: u64) -> Vec<Job> {
    let as_one = |a: &JobReport, b: &JobReport| a.spec.group_reporting && b.spec.group_reporting;
    let entries: Vec<&[JobReport]> = group.jobs.chunk_by(as_one).collect();
    // The rate of all entries together, for each entry's share of it.
    let rate = |direction| entries.iter().map(|entry| bytes_per_s(entry, direction)).sum::<f64>();
    let rates = [Direction::Read, Direction::Write].map(rate);
    let of = |entry: &&[JobReport]| {
        let is_namesake = |job: &&JobReport| job.spec.name == entry[0].spec.name;
        Job::of(entry, elapsed_s, group.jobs.iter().filter(is_namesake).count(), rates)
    };
    entries.iter().map(of).collect()
}

fn bytes_per_s(entry: &[JobReport], direction: Direction) -> f64 {
    let (parts, elapsed) = direction::parts(entry, direction);
    let bytes: u64 = parts.iter().map(|part| part.bytes).sum();
    let elapsed_s = elapsed.as_secs_f64();
    if elapsed_s > 0.0 { bytes as f64 / elapsed_s } else { 0.0 }
}

/// Returns the time from the first start of a job to the last end, with what its clock leaves out:
/// the delay and the ramp before it, and the reads of `do_verify` after it.
fn whole_span<'a>(jobs: impl Iterator<Item = &'a JobReport>) -> Duration {
    let times = jobs.map(|job| {
        let verified = job.read_back.as_ref().map_or(Duration::ZERO, |(_, elapsed)| *elapsed);
        let begun = job.started_at - job.ramp - job.spec.pace.startdelay;
        (begun, job.started_at + job.elapsed + verified)
    });
    let ends = times.reduce(|all, job| (all.0.min(job.0), all.1.max(job.1)));
    ends.and_then(|(begun, ended)| ended.duration_since(begun).try_into().ok()).unwrap_or_default()
}

fn whole_seconds(elapsed: Duration) -> u64 {
    elapsed.as_nanos().div_ceil(1_000_000_000) as u64
}

/// `None` where no counters were read.
fn disk_util(groups: &[GroupReport], device: &str) -> Option<DiskUtil> {
    let sectors = |bytes: fn(&GroupReport) -> Option<u64>| {
        Some(groups.iter().map(bytes).sum::<Option<u64>>()? / SECTOR_BYTES)
    };
    Some(DiskUtil {
        name: device.into(),
        read_sectors: sectors(|group| group.device_read_bytes)?,
        write_sectors: sectors(|group| group.device_written_bytes)?,
    })
}
