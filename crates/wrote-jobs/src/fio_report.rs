//! Reports of jobs in fio's formats, for scripts, plotting tools and people used to fio: JSON,
//! text, the terse format, and log files.
//!
//! Keys, their order and units follow fio 3.33 and later; `docs/results.md` lists the differences.

mod direction;
mod job;
mod logs;
mod normal;
mod number;
mod terse;

use crate::jobs::{GroupReport, JobReport};
use crate::machine::counters::{Counters, SECTOR_BYTES};
use crate::spec::JobSpec;
use direction::Pairs;
use job::Job;
pub use job::block_sizes;
pub(crate) use job::options;
pub use logs::logs;
pub use normal::write_head;
use serde::Serialize;
use std::io::{self, Write};
use std::time::Duration;
use wrote_result::document::{self as result, Direction, Finding};

/// The version string for programs that call fio and check its version. They parse everything after
/// `fio-` as fio's version, so ours is not appended.
pub const VERSION: &str = "fio-3.42";

/// A format of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// Lines of fields separated by `;`.
    Terse,
    /// JSON.
    Json,
    /// Text for people.
    Normal,
}

/// The facts that the report contains in addition to the jobs.
#[derive(Clone, Debug, Default)]
pub struct About<'a> {
    /// When the last job ended.
    pub ended_at: jiff::Timestamp,
    /// The keys of the job file's `[global]` section, as written and in order.
    pub global: &'a [(String, String)],
    /// The kernel's name for the device below the first job's files: `sda1`.
    pub device: Option<&'a str>,
    /// The result in our own format, for figures that fio does not have.
    pub result: Option<&'a result::Document>,
    /// The share of the time for which each CPU was idle (`--idle-prof`).
    pub idleness: Option<Vec<(u32, f64)>>,
    /// Whether JSON lists every bucket of the latencies (`json+`).
    pub bins: bool,
    /// The version of the terse format.
    pub terse_version: u32,
}

/// fio's JSON document, for serialization only.
#[derive(Debug, Serialize)]
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
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_idleness: Option<Pairs<f64>>,
    #[serde(skip)]
    terse_version: u32,
    /// The figures for which fio has no key.
    #[serde(skip_serializing_if = "Option::is_none")]
    wrote: Option<Wrote>,
}

#[derive(Clone, Debug, Serialize)]
struct Wrote {
    version: &'static str,
    findings: Vec<Finding>,
}

/// The block layer's counters for the device below, which include all processes.
#[derive(Clone, Debug, Serialize)]
struct DiskUtil {
    name: String,
    read_ios: u64,
    write_ios: u64,
    read_sectors: u64,
    write_sectors: u64,
    read_merges: u64,
    write_merges: u64,
    /// Milliseconds, like the next two fields.
    read_ticks: u64,
    write_ticks: u64,
    in_queue: u64,
    /// The share of the time for which the device was busy, in percent.
    util: f64,
}

/// Builds fio's document from reports.
///
/// Each job, and each of its `numjobs` clones, is an entry of `jobs`. The jobs of a group with
/// `group_reporting` are one entry.
pub fn document(groups: &[GroupReport], about: &About) -> Document {
    let elapsed_s = whole_seconds(whole_span(groups.iter().flat_map(|group| &group.jobs)));
    let mut jobs: Vec<Job> =
        groups.iter().flat_map(|group| entries_of(group, elapsed_s, about.bins)).collect();
    if let Some(result) = about.result {
        jobs.iter_mut().for_each(|job| job.add_survival(result));
    }
    let version = env!("CARGO_PKG_VERSION");
    let wrote = about.result.map(|result| Wrote { version, findings: result.findings.clone() });
    Document {
        fio_version: VERSION.into(),
        timestamp: about.ended_at.as_second(),
        timestamp_ms: about.ended_at.as_millisecond(),
        // The format of ctime(3), but in UTC, whereas fio uses the local time.
        time: about.ended_at.strftime("%a %b %e %H:%M:%S %Y").to_string(),
        global_options: Pairs(unchanged(groups, about.global)),
        jobs,
        disk_util: disk_util(groups, about.device).into_iter().collect(),
        cpu_idleness: about.idleness.as_ref().map(|cpus| idleness(cpus)),
        wrote,
        terse_version: about.terse_version,
    }
}

impl Document {
    /// Writes the report in each of these formats, in fio's order.
    ///
    /// # Errors
    ///
    /// The errors of `out`.
    pub fn write(&self, forms: &[Form], out: &mut dyn Write) -> io::Result<()> {
        let mut forms = forms.to_vec();
        forms.sort_unstable();
        forms.dedup();
        for form in forms {
            match form {
                Form::Terse => terse::write(self, out)?,
                Form::Normal => normal::write(self, out)?,
                Form::Json => {
                    serde_json::to_writer_pretty(&mut *out, self)?;
                    writeln!(out)?;
                }
            }
        }
        Ok(())
    }
}

/// Returns the mean idle percentage of all CPUs, followed by the percentage of each CPU. fio has to
/// calibrate a loop for this purpose; the kernel's ticks require no calibration.
fn idleness(cpus: &[(u32, f64)]) -> Pairs<f64> {
    let sum: f64 = cpus.iter().map(|(_, idle)| idle).sum();
    let mut pairs = vec![("system".to_owned(), sum * 100.0 / cpus.len().max(1) as f64)];
    pairs.extend(cpus.iter().map(|(cpu, idle)| (format!("cpu-{cpu}"), idle * 100.0)));
    pairs.extend(["unit_mean", "unit_stddev"].map(|name| (name.to_owned(), 0.0)));
    Pairs(pairs)
}

/// Returns the global options that apply to every job. Programs that read the report prefer a
/// global option to a job's own, so an option that a section changes is left out. Each job lists
/// its options anyway.
fn unchanged(groups: &[GroupReport], global: &[(String, String)]) -> Vec<(String, String)> {
    let holds = |option: &&(String, String)| {
        groups.iter().flat_map(|group| &group.jobs).all(|job| {
            let of_job = job.spec.options.iter().rev().find(|(key, _)| *key == option.0);
            of_job.is_none_or(|(_, value)| *value == option.1)
        })
    };
    global.iter().filter(holds).cloned().collect()
}

fn entries_of(group: &GroupReport, elapsed_s: u64, bins: bool) -> Vec<Job> {
    let begins = |spec: &JobSpec| spec.clone == 0 && spec.is_on("new_group");
    let as_one = |a: &JobReport, b: &JobReport| {
        a.spec.group_reporting && b.spec.group_reporting && !begins(&b.spec)
    };
    let entries: Vec<&[JobReport]> = group.jobs.chunk_by(as_one).collect();
    // The rate of all entries together. Each entry reports its share of this rate.
    let rate = |direction| entries.iter().map(|entry| bytes_per_s(entry, direction)).sum::<f64>();
    let rates = [Direction::Read, Direction::Write].map(rate);
    let of = |entry: &&[JobReport]| {
        let is_namesake = |job: &&JobReport| job.spec.name == entry[0].spec.name;
        Job::of(entry, elapsed_s, group.jobs.iter().filter(is_namesake).count(), rates, bins)
    };
    entries.iter().map(of).collect()
}

fn bytes_per_s(entry: &[JobReport], direction: Direction) -> f64 {
    let (parts, elapsed) = direction::parts(entry, direction);
    let bytes: u64 = parts.iter().map(|part| part.bytes).sum();
    let elapsed_s = elapsed.as_secs_f64();
    if elapsed_s > 0.0 { bytes as f64 / elapsed_s } else { 0.0 }
}

/// Returns the time from the first start of a job to the last end. It includes what the jobs'
/// clocks leave out: the delay and the ramp before the clock starts, and the reads of `do_verify`
/// after it stops.
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

/// Returns the device's counters in fio's form; `None` if no counters were read.
fn disk_util(groups: &[GroupReport], device: Option<&str>) -> Option<DiskUtil> {
    let mut jobs = groups.iter().flat_map(|group| &group.jobs);
    let device = device.filter(|_| !jobs.any(|job| job.spec.is_off("disk_util")))?;
    let moved: Vec<Counters> = groups.iter().map(|group| group.device).collect::<Option<_>>()?;
    let sum = |of: fn(&Counters) -> u64| moved.iter().map(of).sum::<u64>();
    let elapsed_s: f64 = groups.iter().map(|group| group.elapsed.as_secs_f64()).sum();
    Some(DiskUtil {
        name: device.into(),
        read_ios: sum(|moved| moved.reads),
        write_ios: sum(|moved| moved.writes),
        read_sectors: sum(|moved| moved.read_bytes / SECTOR_BYTES),
        write_sectors: sum(|moved| moved.written_bytes / SECTOR_BYTES),
        read_merges: sum(|moved| moved.read_merges),
        write_merges: sum(|moved| moved.write_merges),
        read_ticks: sum(|moved| moved.read_ms),
        write_ticks: sum(|moved| moved.write_ms),
        in_queue: sum(|moved| moved.weighted_ms),
        util: (sum(|moved| moved.busy_ms) as f64 / 10.0 / elapsed_s.max(1e-3)).min(100.0),
    })
}
