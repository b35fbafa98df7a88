//! The rows of fio's jobs: one for each direction of a job, in which its clones are combined.

use crate::fio;
use crate::report::of_spec;
use crate::spec::JobSpec;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use wrote_result::document::{Blocks, Direction, Latency, Row, Run, Settings, SettingsPair};

impl OutputJob {
    /// Returns whether both entries are clones of one job. Without `group_reporting`, fio reports
    /// each of the `numjobs` clones separately.
    pub(super) fn is_clone_of(&self, other: &OutputJob) -> bool {
        self.jobname == other.jobname && self.groupid == other.groupid
    }

    fn part(&self, direction: Direction) -> &OutputPart {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
        }
    }
}

/// Returns the rows of the batch: one for each direction in which bytes were transferred.
pub(super) fn rows(batch: &[OutputJob], spec: &JobSpec) -> Vec<Row> {
    let moved = |direction: &Direction| batch.iter().any(|job| job.part(*direction).io_bytes > 0);
    let directions: Vec<Direction> =
        [Direction::Read, Direction::Write].into_iter().filter(moved).collect();
    let both = directions.len() > 1;
    directions.into_iter().map(|direction| row(batch, spec, direction, both)).collect()
}

fn row(batch: &[OutputJob], spec: &JobSpec, direction: Direction, both: bool) -> Row {
    let job = &batch[0];
    let asked = settings(batch, spec, direction);
    let run = run(batch, direction);
    let way =
        format!("{} {}{}", asked.ioengine, asked.rw, if asked.direct { ", direct" } else { "" });
    let effective = Settings { iodepth: run.iodepth_reached, ..asked.clone() };
    let row = Row {
        name: if both { format!("{}/{direction}", job.jobname) } else { job.jobname.clone() },
        workload: format!("group {}", job.groupid),
        way,
        direction,
        // What a write survives depends on the device below, which fio does not examine.
        survives: None,
        settings: SettingsPair { asked, effective, fallbacks: Vec::new() },
        ..Row::default()
    };
    row.with_run(run)
}

fn settings(batch: &[OutputJob], spec: &JobSpec, direction: Direction) -> Settings {
    let text = |key| spec.option(key).map(str::to_owned);
    let number = |key| fio::bytes(spec.option(key)?);
    let numjobs = number("numjobs").unwrap_or(1).max(batch.len() as u64);
    let size = number("io_size").or_else(|| number("size"));
    let of_spec = of_spec(spec, direction);
    Settings {
        // These keys may have values that our own jobs do not accept.
        rw: text("rw").filter(|rw| rw.contains("trim") || rw.contains(':')).unwrap_or(of_spec.rw),
        ioengine: spec.option("ioengine").unwrap_or("psync").into(),
        iodepth: number("iodepth").unwrap_or(1) as u32,
        random_distribution: text("random_distribution").filter(|of| of != "random"),
        verify: text("verify").filter(|verify| verify != "0"),
        numjobs: numjobs as u32,
        size_bytes: size.map_or_else(
            || sum(batch.iter().map(|job| job.part(direction).io_bytes)),
            |size| size.saturating_mul(numjobs),
        ),
        blocks: Blocks::Unknown,
        ..of_spec
    }
}

/// Returns one run for all clones, which begin together: the sum of their bytes over their longest
/// time.
fn run(batch: &[OutputJob], direction: Direction) -> Run {
    let parts: Vec<&OutputPart> = batch.iter().map(|job| job.part(direction)).collect();
    let bytes = sum(parts.iter().map(|part| part.io_bytes));
    let runtime_ms = parts.iter().map(|part| part.runtime).fold(0.0, f64::max);
    let throughput: f64 = match parts.as_slice() {
        [one] => one.bw_bytes,
        _ if runtime_ms > 0.0 => bytes as f64 / (runtime_ms / 1e3),
        _ => parts.iter().map(|part| part.bw_bytes).sum(),
    };
    let operations = sum(parts.iter().map(|part| part.total_ios));
    let elapsed_s =
        if runtime_ms > 0.0 { runtime_ms / 1e3 } else { bytes as f64 / throughput.max(1.0) };
    // A job that reads and writes reports one CPU use, which is divided between the two directions.
    let both = sum(batch.iter().flat_map(|job| [job.read.total_ios, job.write.total_ios]));
    let share = if both == 0 { 1.0 } else { operations as f64 / both as f64 };
    let cpu_s = |percent: fn(&OutputJob) -> f64| {
        share * batch.iter().map(|job| percent(job) / 100.0 * job.job_runtime / 1e3).sum::<f64>()
    };
    Run {
        bytes,
        elapsed_s,
        throughput_bytes_per_s: throughput,
        iops: match parts.as_slice() {
            [one] => one.iops,
            _ => operations as f64 / elapsed_s.max(1e-9),
        },
        cpu_user_s: cpu_s(|job| job.usr_cpu),
        cpu_system_s: cpu_s(|job| job.sys_cpu),
        context_switches: (share * batch.iter().map(|job| job.ctx as f64).sum::<f64>()) as u64,
        iodepth_reached: batch.iter().map(depth_reached).max().unwrap_or(0),
        // The percentiles of several jobs cannot be merged.
        latency_ns: match parts.as_slice() {
            [one] => latency(one),
            _ => None,
        },
        flush_latency_ns: match batch {
            [one] if direction == Direction::Write => with_percentiles(&one.sync.lat_ns),
            _ => None,
        },
        ..Run::default()
    }
}

/// Returns the sum, saturated, because the numbers of a foreign file may overflow.
fn sum(figures: impl Iterator<Item = u64>) -> u64 {
    figures.fold(0, u64::saturating_add)
}

/// Returns the deepest level that had operations. This is a lower bound, because fio counts depths
/// by powers of two.
fn depth_reached(job: &OutputJob) -> u32 {
    let levels = job.iodepth_level.iter().filter(|(_, percent)| **percent > 0.0);
    let depths = levels.filter_map(|(level, _)| level.trim_start_matches(">=").parse().ok());
    depths.max().unwrap_or(1)
}

/// Returns the latencies counted from an operation's creation if fio kept their percentiles
/// (`lat_percentiles`), or else those counted from its submission, which is fio's default. `None`
/// if one of our percentiles is missing.
fn latency(part: &OutputPart) -> Option<Latency> {
    [&part.lat_ns, &part.clat_ns].into_iter().flatten().find_map(with_percentiles)
}

fn with_percentiles(latency: &OutputLatency) -> Option<Latency> {
    let at = |percent: &str| latency.percentile.get(percent).copied();
    Some(Latency {
        min: latency.min,
        mean: latency.mean,
        p50: at("50.000000")?,
        p90: at("90.000000")?,
        p95: at("95.000000")?,
        p99: at("99.000000")?,
        p99_9: at("99.900000")?,
        max: latency.max,
        total: (latency.mean * latency.count as f64).round() as u64,
        count: latency.count,
    })
}

#[derive(Debug, Deserialize)]
pub(super) struct Output {
    #[serde(rename = "fio version")]
    pub version: String,
    #[serde(default)]
    pub timestamp: i64,
    #[serde(default, rename = "global options")]
    pub global: BTreeMap<String, Value>,
    pub jobs: Vec<OutputJob>,
}

#[derive(Debug, Deserialize)]
pub(super) struct OutputJob {
    pub jobname: String,
    #[serde(default)]
    pub groupid: u32,
    /// The errno of a failed job; 0 otherwise.
    #[serde(default)]
    pub error: i64,
    #[serde(default, rename = "job options")]
    pub options: BTreeMap<String, Value>,
    pub read: OutputPart,
    pub write: OutputPart,
    /// Figures on the job's `fsync(2)` and `fdatasync(2)` calls.
    #[serde(default)]
    pub sync: OutputSync,
    /// The sum of the run times of the entry's threads, in milliseconds.
    #[serde(default)]
    pub job_runtime: f64,
    /// The CPU time as a percentage of `job_runtime`.
    #[serde(default)]
    pub usr_cpu: f64,
    #[serde(default)]
    pub sys_cpu: f64,
    #[serde(default)]
    pub ctx: u64,
    /// The percentage of the operations at each depth.
    #[serde(default)]
    pub iodepth_level: BTreeMap<String, f64>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct OutputPart {
    #[serde(default)]
    pub io_bytes: u64,
    /// The rate in bytes per second. fio before version 3 has only KiB/s.
    pub bw_bytes: f64,
    #[serde(default)]
    pub iops: f64,
    /// The duration in milliseconds.
    #[serde(default)]
    pub runtime: f64,
    #[serde(default)]
    pub total_ios: u64,
    #[serde(default)]
    pub clat_ns: Option<OutputLatency>,
    #[serde(default)]
    pub lat_ns: Option<OutputLatency>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OutputSync {
    pub lat_ns: OutputLatency,
}

/// Latencies in nanoseconds.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OutputLatency {
    pub min: u64,
    pub max: u64,
    pub mean: f64,
    #[serde(rename = "N")]
    pub count: u64,
    pub percentile: BTreeMap<String, u64>,
}
