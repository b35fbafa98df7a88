//! fio's log files (`write_bw_log`, `write_lat_log`, `write_iops_log`). Each line describes one
//! operation, or the mean over `log_avg_msec`: the time in milliseconds, the value, the direction,
//! the bytes and the offset.

use crate::jobs::{GroupReport, JobReport, Logged};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A key that requests log files, and one of those files: the suffix of its name, and its values.
type Kind = (&'static str, &'static str, fn(&Logged, f64) -> u64);

const KINDS: [Kind; 5] = [
    // KiB/s.
    ("write_bw_log", "bw", |entry, seconds| (entry.bytes as f64 / seconds / 1024.0) as u64),
    ("write_iops_log", "iops", |entry, seconds| match entry.operations {
        1 if seconds < 1e-3 => 1,
        operations => (operations as f64 / seconds) as u64,
    }),
    // Nanoseconds.
    ("write_lat_log", "slat", |_, _| 0),
    ("write_lat_log", "clat", |entry, _| entry.latency_ns),
    ("write_lat_log", "lat", |entry, _| entry.latency_ns),
];

/// Returns the names and texts of all log files that the jobs request. With `aggregated`, adds the
/// rates of all jobs together (`--bandwidth-log`).
pub fn logs(groups: &[GroupReport], aggregated: bool) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = Vec::new();
    let jobs = || groups.iter().flat_map(|group| &group.jobs);
    for (write, name) in [(false, "agg-read_bw.log"), (true, "agg-write_bw.log")] {
        if aggregated {
            let mut sums: BTreeMap<u64, f64> = BTreeMap::new();
            for job in jobs() {
                for entry in job.log.iter().filter(|entry| entry.write == write) {
                    let rate = entry.bytes as f64 / entry.span_ms.max(1) as f64 / 1.024;
                    *sums.entry(entry.at_ms).or_default() += rate;
                }
            }
            let direction = u8::from(write);
            let line = |(ms, rate)| format!("{ms}, {}, {direction}, 0, 0\n", rate as u64);
            files.push((name.into(), sums.into_iter().map(line).collect()));
        }
    }
    files.extend(aggregated.then(|| ("agg-trim_bw.log".into(), String::new())));
    for (number, job) in jobs().enumerate() {
        for (key, kind, value) in KINDS {
            let Some(prefix) = job.spec.option(key) else { continue };
            if job.spec.is_on(&format!("disable_{kind}")) {
                continue;
            }
            // Without a value, the job's name is the prefix.
            let prefix = if prefix == "1" { &job.spec.name } else { prefix };
            let is_of_all = job.spec.is_off("per_job_logs");
            let number = if is_of_all { String::new() } else { format!(".{}", number + 1) };
            let text = text(job, kind, value);
            let name = format!("{prefix}_{kind}{number}.log");
            match files.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => known.push_str(&text),
                None => files.push((name, text)),
            }
        }
    }
    files
}

fn text(job: &JobReport, kind: &str, value: fn(&Logged, f64) -> u64) -> String {
    let is_mean = job.spec.log.is_some_and(|mean_over| !mean_over.is_zero());
    let (is_of_epoch, offsets) = (job.spec.is_on("log_unix_epoch"), job.spec.is_on("log_offset"));
    let epoch_ms = if is_of_epoch { job.started_at.as_millisecond() as u64 } else { 0 };
    let mut text = String::new();
    // The time until an operation is submitted is not measured.
    for entry in job.log.iter().filter(|_| kind != "slat" || is_mean) {
        let (seconds, bytes) = match is_mean {
            true => (entry.span_ms.max(1) as f64 / 1e3, 0),
            // The rate of a single operation follows from its latency.
            false if kind == "iops" => (1e-9, entry.bytes),
            false => (entry.latency_ns.max(1) as f64 / 1e9, entry.bytes),
        };
        let direction = u8::from(entry.write);
        let offset = if offsets { format!(", {}", entry.offset) } else { String::new() };
        let (at_ms, value) = (epoch_ms + entry.at_ms, value(entry, seconds));
        // Writing to a `String` never fails.
        let _ = writeln!(text, "{at_ms}, {value}, {direction}, {bytes}{offset}, 0");
    }
    text
}
