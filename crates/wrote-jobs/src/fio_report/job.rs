//! An entry of fio's `jobs`: one job, or several that are reported as one.

use super::direction::{self, BATCHES, DEPTHS, Pairs};
use super::direction::{Direction, Latency};
use super::number::{FIGURES, number_of};
use crate::jobs::{JobReport, merged};
use crate::spec::{BlockSizes, JobSpec};
use hdrhistogram::Histogram;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;
use wrote::Survives;
use wrote_result::document::{self as result, Direction as Way, Row};
use wrote_result::units;

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Job {
    pub jobname: String,
    pub groupid: u32,
    job_start: i64,
    pub error: i32,
    /// The time left, in seconds; 0 after the end.
    eta: u64,
    elapsed: u64,
    #[serde(rename = "job options")]
    job_options: Pairs<String>,
    pub read: Direction,
    pub write: Direction,
    trim: Direction,
    pub sync: Sync,
    /// The sum of the run times of the entry's jobs, in milliseconds.
    job_runtime: u64,
    pub usr_cpu: f64,
    pub sys_cpu: f64,
    pub ctx: u64,
    pub majf: u64,
    pub minf: u64,
    pub iodepth_level: Pairs<f64>,
    pub iodepth_submit: Pairs<f64>,
    pub iodepth_complete: Pairs<f64>,
    pub latency_ns: Pairs<f64>,
    pub latency_us: Pairs<f64>,
    pub latency_ms: Pairs<f64>,
    pub latency_depth: u32,
    latency_target: u64,
    latency_percentile: f64,
    latency_window: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    steadystate: Option<Value>,
    #[serde(skip)]
    pub steady_line: Option<String>,
    /// A line about what a write of the job survives, and about figures that fio does not have.
    #[serde(rename = "wrote", skip_serializing_if = "Option::is_none")]
    pub survival: Option<String>,
    /// The number of jobs in the entry.
    #[serde(skip)]
    pub jobs: usize,
    #[serde(rename = "desc", skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip)]
    pub percentiles: Arc<[f64]>,
}

/// Returns fio's JSON object about a job that ends when its rate is steady, and the corresponding
/// line of text; `None` for any other job.
fn steady(job: &JobReport) -> Option<(Value, String)> {
    let (steady, found) = (job.spec.pace.steady?, job.steady.as_ref()?);
    let whole = |rates: &[f64]| -> Vec<u64> { rates.iter().map(|rate| *rate as u64).collect() };
    let mean = |rates: &[u64]| rates.iter().sum::<u64>() / rates.len().max(1) as u64;
    let (iops, bw) = (whole(&found.iops), whole(&found.bytes));
    let (iops_mean, bw_mean) = (mean(&iops), mean(&bw));
    let (off, percent) = (found.criterion, if steady.percent { "%" } else { "" });
    let criterion = format!("{off:.6}{percent}");
    let ss = job.spec.option("steadystate").unwrap_or_default();
    let (yes, kind) = (if found.attained { "yes" } else { "no" }, ss.split(':').next()?);
    let [binary, decimal] = [true, false].map(|binary| number_of(bw_mean, FIGURES, binary, "B/s"));
    let kind = match kind.strip_suffix("_slope") {
        Some(rate) => format!("{rate} slope"),
        None => format!("{kind} mean dev"),
    };
    let line = format!(
        "attained={yes}, bw={binary} ({decimal}), iops={iops_mean}, {kind}={off:.3}{percent}"
    );
    let object = json!({
        "ss": ss,
        "duration": steady.over.as_secs(),
        "attained": u8::from(found.attained),
        "criterion": criterion,
        "max_deviation": if steady.slope { 0.0 } else { off },
        "slope": if steady.slope { off } else { 0.0 },
        "data": { "bw_mean": bw_mean, "iops_mean": iops_mean, "iops": iops, "bw": bw },
    });
    Some((object, line))
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Sync {
    pub total_ios: u64,
    pub lat_ns: Latency,
}

impl Job {
    /// Returns the entry of one or more jobs. Figures that cannot be added up are the first job's.
    /// `elapsed_s` covers all jobs of the run, `numjobs` is the number of jobs with the first one's
    /// name, and the rates are those at which the whole group read and wrote.
    pub(super) fn of(
        entry: &[JobReport],
        elapsed_s: u64,
        numjobs: usize,
        group_bytes_per_s: [f64; 2],
        bins: bool,
    ) -> Job {
        let spec = &entry[0].spec;
        let read = Direction::of(entry, Way::Read, group_bytes_per_s[0], bins);
        let write = Direction::of(entry, Way::Write, group_bytes_per_s[1], bins);
        let all =
            |histogram: fn(&JobReport) -> &Histogram<u64>| merged(entry.iter().map(histogram));
        let flushes = all(|job| &job.flush_ns);
        let both = entry.iter().flat_map(|job| [&job.read.latency_ns, &job.write.latency_ns]);
        let [latency_ns, latency_us, latency_ms] = direction::latencies(&merged(both));
        let running_s: f64 = entry.iter().map(|job| job.elapsed.as_secs_f64()).sum();
        let backs = entry.iter().filter_map(|job| job.read_back.as_ref());
        let verifying_s: f64 = backs.map(|(_, elapsed)| elapsed.as_secs_f64()).sum();
        let cpu = |used: fn(&JobReport) -> f64| {
            entry.iter().map(used).sum::<f64>() * 100.0 / running_s.max(1e-9)
        };
        let shows = !spec.is_off("clat_percentiles") || spec.is_on("lat_percentiles");
        let sum = |count: fn(&JobReport) -> u64| entry.iter().map(count).sum();
        let (steadystate, steady_line) = steady(&entry[0]).unzip();
        Job {
            jobname: spec.name.clone(),
            groupid: spec.group,
            job_start: entry
                .iter()
                .map(|job| (job.started_at - job.ramp).as_millisecond())
                .min()
                .unwrap_or_default(),
            elapsed: elapsed_s,
            job_options: Pairs(options(spec, numjobs)),
            read,
            write,
            sync: Sync {
                total_ios: flushes.len(),
                lat_ns: Latency::of(&flushes, spec.percentiles_if(shows), bins && shows),
            },
            job_runtime: ((running_s + verifying_s) * 1000.0).round() as u64,
            usr_cpu: cpu(|job| job.usage.cpu_user_s),
            sys_cpu: cpu(|job| job.usage.cpu_system_s),
            ctx: sum(|job| job.usage.context_switches),
            majf: sum(|job| job.usage.major_faults),
            minf: sum(|job| job.usage.minor_faults),
            iodepth_level: direction::shares(&all(|job| &job.depths), &DEPTHS),
            iodepth_submit: direction::shares(&all(|job| &job.submitted_together), &BATCHES),
            iodepth_complete: direction::shares(&all(|job| &job.completed_together), &BATCHES),
            latency_ns,
            latency_us,
            latency_ms,
            latency_depth: spec.io.iodepth,
            latency_percentile: 100.0,
            steadystate,
            steady_line,
            jobs: entry.len(),
            description: spec.option("description").map(str::to_owned),
            percentiles: spec.percentiles.clone(),
            ..Job::default()
        }
    }
}

impl Job {
    /// Adds what a write survives, and when it became durable, from our own result.
    pub(super) fn add_survival(&mut self, result: &result::Document) {
        let rows = result.scenarios.iter().flat_map(|scenario| &scenario.rows);
        let is_own = |row: &&Row| {
            let rest = row.name.strip_prefix(&self.jobname);
            row.direction == Way::Write && rest.is_some_and(|rest| ["", "/write"].contains(&rest))
        };
        let Some(row) = rows.into_iter().find(is_own) else { return };
        let Some(survives) = row.survives else { return };
        let mut text = match survives {
            Survives::PowerLoss => "a write here survives a power loss",
            Survives::OsCrash => "a write here survives a crash of the system, and no power loss",
            Survives::ProcessCrash => "a write here survives a crash of the process only",
            Survives::Nothing => "a write here survives nothing",
        }
        .to_owned();
        match row.durable_latency_ns {
            Some(durable) => {
                let (median, p99) = (units::nanoseconds(durable.p50), durable.known_p99());
                text += &format!("; durable after {median} (median)");
                text += &p99
                    .map_or(String::new(), |p99| format!(", {} (P99)", units::nanoseconds(p99)));
            }
            None if self.sync.total_ios == 0 && survives < Survives::PowerLoss => {
                text += "; nothing was flushed";
            }
            None => {}
        }
        let in_memory = row.runs.iter().filter_map(|run| run.page_cache_bytes).sum::<u64>();
        if in_memory > 0 {
            text += &format!("; {} stayed in memory", units::bytes(in_memory));
        }
        self.survival = Some(text);
    }
}

/// Returns the options as written, followed by options that readers such as fio-plot look for.
pub(crate) fn options(spec: &JobSpec, numjobs: usize) -> Vec<(String, String)> {
    let mut options: Vec<(String, String)> = Vec::new();
    // If both [global] and the section set a key, the last value applies.
    for (key, value) in spec.options.iter() {
        match options.iter_mut().find(|(known, _)| known == key) {
            Some((_, known)) => known.clone_from(value),
            None => options.push((key.clone(), value.clone())),
        }
    }
    let looked_for = [
        ("rw", spec.order.rw.as_str().to_owned()),
        ("bs", block_sizes(spec)),
        ("iodepth", spec.io.iodepth.to_string()),
        ("numjobs", numjobs.to_string()),
    ];
    // Sizes that the job file gives in another form appear in that form only, as in fio.
    let has_sizes = ["bssplit", "bsrange"].iter().any(|key| spec.option(key).is_some());
    for (key, value) in looked_for {
        let is_other = key == "bs" && has_sizes;
        if !is_other && !options.iter().any(|(known, _)| known == key) {
            options.push((key.into(), value));
        }
    }
    options
}

/// Returns block sizes in fio's notation: `4k`; `4k,64k` for both directions; `4k/60:64k/40`.
pub fn block_sizes(spec: &JobSpec) -> String {
    match (spec.order.rw.read, spec.order.rw.write) {
        (true, true) if spec.order.read_bs != spec.order.write_bs => {
            format!("{},{}", block_size(&spec.order.read_bs), block_size(&spec.order.write_bs))
        }
        (true, _) => block_size(&spec.order.read_bs),
        _ => block_size(&spec.order.write_bs),
    }
}

fn block_size(sizes: &BlockSizes) -> String {
    let one = |bytes: u64| match bytes {
        b if b > 0 && b.is_multiple_of(1 << 20) => format!("{}m", b >> 20),
        b if b > 0 && b.is_multiple_of(1 << 10) => format!("{}k", b >> 10),
        b => b.to_string(),
    };
    match sizes {
        BlockSizes::Range { least_bytes, most_bytes } => {
            format!("{}-{}", one(*least_bytes), one(*most_bytes))
        }
        BlockSizes::Split(shares) if shares.len() == 1 => one(shares[0].bytes),
        BlockSizes::Split(shares) => {
            let shares = shares.iter().map(|s| format!("{}/{}", one(s.bytes), s.percent));
            shares.collect::<Vec<_>>().join(":")
        }
    }
}
