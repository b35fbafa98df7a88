//! Reports of jobs in fio's own forms, for the scripts, plots and people that read them: JSON,
//! text, lines of fields, and log files.
//!
//! Keys, order and units follow fio 3.33 and later; `docs/results.md` lists the differences.

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

/// The version that programs which call fio look for. They read a number to its end, so that ours
/// does not stand beside it.
pub const VERSION: &str = "fio-3.42";

/// A form of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// Fields with `;` between.
    Terse,
    /// JSON.
    Json,
    /// Text for people.
    Normal,
}

/// Facts in the document besides the jobs.
#[derive(Clone, Debug, Default)]
pub struct About<'a> {
    /// The end of the last job.
    pub ended_at: jiff::Timestamp,
    /// The keys of the job file's `[global]`, as written, in their order.
    pub global: &'a [(String, String)],
    /// The kernel's name of the device below the first job's files: `sda1`.
    pub device: Option<&'a str>,
    /// The result in our own form, for what fio leaves out.
    pub result: Option<&'a result::Document>,
    /// The part of the time in which each CPU was idle (`--idle-prof`).
    pub idleness: Option<Vec<(u32, f64)>>,
    /// JSON has every bucket of the latencies (`json+`).
    pub bins: bool,
    /// The version of the lines of fields.
    pub terse_version: u32,
}

/// fio's document, only for serialization.
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
    /// Figures that fio has no key for.
    #[serde(skip_serializing_if = "Option::is_none")]
    wrote: Option<Wrote>,
}

#[derive(Clone, Debug, Serialize)]
struct Wrote {
    version: &'static str,
    findings: Vec<Finding>,
}

/// The block layer's counters of the device below, for all processes.
#[derive(Clone, Debug, Serialize)]
struct DiskUtil {
    name: String,
    read_ios: u64,
    write_ios: u64,
    read_sectors: u64,
    write_sectors: u64,
    read_merges: u64,
    write_merges: u64,
    /// Milliseconds, as the next three.
    read_ticks: u64,
    write_ticks: u64,
    in_queue: u64,
    /// Percent of the time.
    util: f64,
}

/// Makes fio's document of reports.
///
/// Each job, and each of its `numjobs`, is an entry of `jobs`; jobs of a group with
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
        // As ctime(3) writes it, but in UTC: fio uses the local time.
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
    /// Writes the report in each of these forms, in fio's order.
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

/// Returns percents of all CPUs and of each. fio weighs a loop of its own; the kernel's ticks need
/// none.
fn idleness(cpus: &[(u32, f64)]) -> Pairs<f64> {
    let sum: f64 = cpus.iter().map(|(_, idle)| idle).sum();
    let mut pairs = vec![("system".to_owned(), sum * 100.0 / cpus.len().max(1) as f64)];
    pairs.extend(cpus.iter().map(|(cpu, idle)| (format!("cpu-{cpu}"), idle * 100.0)));
    pairs.extend(["unit_mean", "unit_stddev"].map(|name| (name.to_owned(), 0.0)));
    Pairs(pairs)
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

fn entries_of(group: &GroupReport, elapsed_s: u64, bins: bool) -> Vec<Job> {
    let begins = |spec: &JobSpec| spec.clone == 0 && spec.is_on("new_group");
    let as_one = |a: &JobReport, b: &JobReport| {
        a.spec.group_reporting && b.spec.group_reporting && !begins(&b.spec)
    };
    let entries: Vec<&[JobReport]> = group.jobs.chunk_by(as_one).collect();
    // The rate of all entries together, for each entry's share of it.
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
