//! fio's terse format (`--minimal`, `--output-format=terse`): a line for each job, with fields
//! separated by `;`.

use super::direction::{Direction, Latency, Pairs};
use super::job::Job;
use super::{DiskUtil, Document, VERSION};
use std::fmt::Write as _;
use std::io::{self, Write};

/// The number of percentiles in a line. Missing percentiles are filled in with zeros.
const PERCENTILES: usize = 20;

pub(super) fn write(document: &Document, out: &mut dyn Write) -> io::Result<()> {
    document.jobs.iter().try_for_each(|job| writeln!(out, "{}", line(job, document)))
}

fn line(job: &Job, document: &Document) -> String {
    let version = document.terse_version;
    let program = if version == 2 { String::new() } else { format!("{VERSION};") };
    let mut line = format!("{version};{program}{};{};{}", job.jobname, job.groupid, job.error);
    let trim = Direction::default();
    let directions = [&job.read, &job.write, &trim];
    let count = if version == 3 { 2 } else { 3 };
    for direction in &directions[..count] {
        add_direction(&mut line, direction, &job.percentiles, version);
    }
    let Job { usr_cpu, sys_cpu, ctx, majf, minf, .. } = job;
    // Writing to a `String` never fails.
    let _ = write!(line, ";{usr_cpu:.6}%;{sys_cpu:.6}%;{ctx};{majf};{minf}");
    for (_, share) in &job.iodepth_level.0 {
        let _ = write!(line, ";{share:.1}%");
    }
    for (_, share) in job.latency_us.0.iter().chain(&job.latency_ms.0) {
        let _ = write!(line, ";{share:.2}%");
    }
    for disk in document.disk_util.iter().filter(|_| version > 2) {
        let DiskUtil { name, read_ios, write_ios, read_merges, write_merges, .. } = disk;
        let DiskUtil { read_ticks, write_ticks, in_queue, util, .. } = disk;
        let _ = write!(
            line,
            ";{name};{read_ios};{write_ios};{read_merges};{write_merges};{read_ticks};\
             {write_ticks};{in_queue};{util:.2}%"
        );
    }
    match &job.description {
        Some(text) => line + ";" + text,
        None => line,
    }
}

fn add_direction(line: &mut String, direction: &Direction, percentiles: &[f64], version: u32) {
    let Direction { io_kbytes, bw, iops, runtime, .. } = direction;
    let _ = write!(line, ";{io_kbytes};{bw};{};{runtime}", *iops as u64);
    add_latency(line, &direction.slat_ns);
    add_latency(line, &direction.clat_ns);
    let found = direction.lat_ns.percentile.as_ref().or(direction.clat_ns.percentile.as_ref());
    let found = found.map(|Pairs(found)| found);
    for (index, percent) in percentiles.iter().enumerate() {
        let ns = found.and_then(|found| found.get(index)).map_or(0, |(_, ns)| *ns);
        let _ = write!(line, ";{percent:.6}%={}", ns / 1000);
    }
    line.push_str(&";0%=0".repeat(PERCENTILES.saturating_sub(percentiles.len())));
    add_latency(line, &direction.lat_ns);
    let Direction { bw_min, bw_max, bw_agg, bw_mean, bw_dev, .. } = direction;
    let _ = write!(line, ";{bw_min};{bw_max};{bw_agg:.6}%;{bw_mean:.6};{bw_dev:.6}");
    if version == 5 {
        let Direction { bw_samples, iops_min, iops_max, iops_mean, iops_stddev, .. } = direction;
        let _ = write!(line, ";{bw_samples};{iops_min};{iops_max};{iops_mean:.6};{iops_stddev:.6}");
        let _ = write!(line, ";{}", direction.iops_samples);
    }
}

/// Appends the fields of a latency, converted to microseconds.
fn add_latency(line: &mut String, latency: &Latency) {
    let Latency { min, max, mean, stddev, .. } = latency;
    let (mean, stddev) = (mean / 1e3, stddev / 1e3);
    let _ = write!(line, ";{};{};{mean:.6};{stddev:.6}", min / 1000, max / 1000);
}
