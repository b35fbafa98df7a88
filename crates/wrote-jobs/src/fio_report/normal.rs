//! fio's report for people (`--output-format=normal`), which scripts search with `grep`.

use super::direction::{Direction, Latency, Pairs};
use super::job::Job;
use super::number::{FIGURES, number_of};
use super::{DiskUtil, Document, VERSION};
use crate::spec::{BlockSizes, JobSpec};
use std::io::{self, Write};
use wrote_result::units::counted;

/// The number of significant digits in the bounds of latencies.
const FIGURES_OF_BOUNDS: usize = 6;
/// The number of latency buckets per line.
const BUCKETS_IN_LINE: usize = 5;

const MS: f64 = 1e6;
const US: f64 = 1e3;

/// Writes what fio prints before its jobs run: a description of each job.
pub fn write_head(specs: &[JobSpec], out: &mut dyn Write) -> io::Result<()> {
    for spec in specs {
        if spec.clone > 0 {
            if spec.clone == 1 {
                writeln!(out, "...")?;
            }
            continue;
        }
        let bs = |sizes: &BlockSizes| {
            let bound = |bytes| format!("{}B", number_of(bytes, FIGURES, true, ""));
            format!("{}-{}", bound(sizes.least_bytes()), bound(sizes.most_bytes()))
        };
        let (read, write) = (bs(&spec.order.read_bs), bs(&spec.order.write_bs));
        writeln!(
            out,
            "{}: (g={}): rw={}, bs=(R) {read}, (W) {write}, (T) {read}, ioengine={}, iodepth={}",
            spec.name,
            spec.group,
            spec.order.rw.as_str(),
            spec.option("ioengine").unwrap_or("psync"),
            spec.io.iodepth,
        )?;
    }
    let is_thread = specs.iter().any(|spec| spec.is_on("thread"));
    let count = match (is_thread, specs.len()) {
        (true, count) => counted(count as u64, "thread"),
        (false, 1) => "1 process".into(),
        (false, count) => format!("{count} processes"),
    };
    writeln!(out, "{VERSION}\nStarting {count}\n")
}

/// Writes the report on all jobs, groups and disks.
pub(super) fn write(document: &Document, out: &mut dyn Write) -> io::Result<()> {
    for job in &document.jobs {
        write_job(job, &document.time, out)?;
    }
    let mut groups: Vec<u32> = document.jobs.iter().map(|job| job.groupid).collect();
    groups.dedup();
    for group in groups {
        let jobs: Vec<&Job> = document.jobs.iter().filter(|job| job.groupid == group).collect();
        writeln!(out, "\nRun status group {group} (all jobs):")?;
        write_group("   READ", jobs.iter().map(|job| &job.read), out)?;
        write_group("  WRITE", jobs.iter().map(|job| &job.write), out)?;
    }
    if !document.disk_util.is_empty() {
        writeln!(out, "\nDisk stats (read/write):")?;
    }
    for disk in &document.disk_util {
        let DiskUtil { name, read_ios, write_ios, read_merges, write_merges, .. } = disk;
        let DiskUtil { read_ticks, write_ticks, in_queue, util, .. } = disk;
        let (read_sectors, write_sectors) = (disk.read_sectors, disk.write_sectors);
        writeln!(
            out,
            "  {name}: ios={read_ios}/{write_ios}, sectors={read_sectors}/{write_sectors}, \
             merge={read_merges}/{write_merges}, ticks={read_ticks}/{write_ticks}, \
             in_queue={in_queue}, util={util:.2}%"
        )?;
    }
    let Some(Pairs(idle)) = &document.cpu_idleness else { return Ok(()) };
    let each = idle[1..idle.len() - 2].iter().map(|(_, percent)| format!("{percent:.2}%"));
    let (system, each) = (idle[0].1, each.collect::<Vec<_>>().join(", "));
    writeln!(out, "\nCPU idleness:\n  system: {system:.2}%\n  percpu: {each}")?;
    writeln!(out, "  unit work: mean=0.00us, stddev=0.00")
}

fn write_job(job: &Job, time: &str, out: &mut dyn Write) -> io::Result<()> {
    let (name, group, jobs, err) = (&job.jobname, job.groupid, job.jobs, job.error);
    let pid = std::process::id();
    writeln!(out, "{name}: (groupid={group}, jobs={jobs}): err={err:2}: pid={pid}: {time}")?;
    if let Some(text) = &job.description {
        writeln!(out, "  Description  : [{text}]")?;
    }
    write_direction("read", &job.read, "", out)?;
    write_direction("write", &job.write, "; 0 zone resets", out)?;
    for (unit, shares) in
        [("nsec", &job.latency_ns), ("usec", &job.latency_us), ("msec", &job.latency_ms)]
    {
        let shown: Vec<String> =
            shares.0.iter().filter(|(_, share)| *share > 0.0).map(bucket).collect();
        for line in shown.chunks(BUCKETS_IN_LINE) {
            writeln!(out, "  lat ({unit})   : {}", line.join(", "))?;
        }
    }
    if job.sync.total_ios > 0 {
        writeln!(out, "  fsync/fdatasync/sync_file_range:")?;
        write_latency("sync", &job.sync.lat_ns, out)?;
        write_percentiles("sync", &job.sync.lat_ns, out)?;
    }
    let Job { usr_cpu, sys_cpu, ctx, majf, minf, .. } = job;
    writeln!(
        out,
        "  cpu          : usr={usr_cpu:.2}%, sys={sys_cpu:.2}%, ctx={ctx}, majf={majf}, minf={minf}"
    )?;
    writeln!(out, "  IO depths    : {}", shares(&job.iodepth_level))?;
    writeln!(out, "     submit    : {}", shares(&job.iodepth_submit))?;
    writeln!(out, "     complete  : {}", shares(&job.iodepth_complete))?;
    let (reads, writes) = (job.read.total_ios, job.write.total_ios);
    writeln!(
        out,
        "     issued rwts: total={reads},{writes},0,{} short=0,0,0,0 dropped=0,0,0,0",
        job.sync.total_ios
    )?;
    writeln!(
        out,
        "     latency   : target=0, window=0, percentile=100.00%, depth={}",
        job.latency_depth
    )?;
    if let Some(line) = &job.steady_line {
        writeln!(out, "  steadystate  : {line}")?;
    }
    match &job.survival {
        Some(text) => writeln!(out, "  wrote        : {text}"),
        None => Ok(()),
    }
}

fn bucket((label, share): &(String, f64)) -> String {
    format!("{label}={share:.2}%")
}

/// Returns the shares as `1=100.0%, 2=0.0%, ..`.
fn shares(Pairs(shares): &Pairs<f64>) -> String {
    let one = |(label, share): &(String, f64)| format!("{label}={share:.1}%");
    shares.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn write_direction(
    name: &str,
    direction: &Direction,
    behind: &str,
    out: &mut dyn Write,
) -> io::Result<()> {
    if direction.total_ios == 0 {
        return Ok(());
    }
    let [binary, decimal] =
        [true, false].map(|binary| number_of(direction.bw_bytes, FIGURES, binary, "B/s"));
    let iops = number_of(direction.iops as u64, FIGURES, false, "");
    let bytes = number_of(direction.io_bytes, FIGURES, true, "B");
    let runtime = direction.runtime;
    writeln!(out, "  {name}: IOPS={iops}, BW={binary} ({decimal})({bytes}/{runtime}msec){behind}")?;
    write_latency("clat", &direction.clat_ns, out)?;
    write_latency(" lat", &direction.lat_ns, out)?;
    write_percentiles("clat", &direction.clat_ns, out)?;
    write_percentiles(" lat", &direction.lat_ns, out)?;
    if direction.bw_samples > 0 {
        let (unit, by) = if direction.bw_mean > 1048576.0 { ("MiB", 1024) } else { ("KiB", 1) };
        let of = |figure: f64| figure / by as f64;
        writeln!(
            out,
            "   bw ({unit:>5}/s): min={:5}, max={:5}, per={:.2}%, avg={:5.2}, stdev={:5.2}, \
             samples={}",
            direction.bw_min / by,
            direction.bw_max / by,
            direction.bw_agg,
            of(direction.bw_mean),
            of(direction.bw_dev),
            direction.bw_samples
        )?;
        writeln!(
            out,
            "   iops        : min={:5}, max={:5}, avg={:5.2}, stdev={:5.2}, samples={}",
            direction.iops_min,
            direction.iops_max,
            direction.iops_mean,
            direction.iops_stddev,
            direction.iops_samples
        )?;
    }
    Ok(())
}

fn write_latency(name: &str, latency: &Latency, out: &mut dyn Write) -> io::Result<()> {
    if latency.count == 0 {
        return Ok(());
    }
    let is_above = |times: f64| {
        latency.min as f64 > 2.0 * times
            && latency.max as f64 > 99.0 * times + 999.0
            && latency.stddev > times
    };
    let (unit, by) = match () {
        () if is_above(MS) => ("msec", MS),
        () if is_above(US) => ("usec", US),
        () => ("nsec", 1.0),
    };
    let bound = |ns: u64| number_of((ns as f64 / by) as u64, FIGURES_OF_BOUNDS, false, "");
    writeln!(
        out,
        "    {name} ({unit}): min={}, max={}, avg={:5.2}, stdev={:5.2}",
        bound(latency.min),
        bound(latency.max),
        latency.mean / by,
        latency.stddev / by
    )
}

fn write_percentiles(name: &str, latency: &Latency, out: &mut dyn Write) -> io::Result<()> {
    let Some(Pairs(percentiles)) = &latency.percentile else { return Ok(()) };
    let values = || percentiles.iter().map(|(_, ns)| *ns);
    let (least, most) = (values().min().unwrap_or(0), values().max().unwrap_or(0));
    let (unit, by) = match (least, most) {
        (2_000_001.., 100_000_000..) => ("msec", 1_000_000),
        (2_001.., 100_000..) => ("usec", 1_000),
        _ => ("nsec", 1),
    };
    writeln!(out, "    {name} percentiles ({unit}):")?;
    let width = (most / by).max(1).ilog10() as usize + 1;
    let width = width.max(5);
    let in_line = 73 / (12 + width);
    for (index, line) in percentiles.chunks(in_line).enumerate() {
        let is_last = (index + 1) * in_line >= percentiles.len();
        let one = |(percent, ns): &(String, u64)| {
            let percent: f64 = percent.parse().unwrap_or_default();
            format!(" {percent:5.2}th=[{:width$}]", ns.div_ceil(by))
        };
        let line: Vec<String> = line.iter().map(one).collect();
        writeln!(out, "     |{}{}", line.join(","), if is_last { "" } else { "," })?;
    }
    Ok(())
}

fn write_group<'a>(
    name: &str,
    directions: impl Iterator<Item = &'a Direction>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let used: Vec<&Direction> = directions.filter(|direction| direction.total_ios > 0).collect();
    let (Some(least), Some(most)) = (
        used.iter().map(|direction| direction.bw_bytes).min(),
        used.iter().map(|direction| direction.bw_bytes).max(),
    ) else {
        return Ok(());
    };
    let runtimes = || used.iter().map(|direction| direction.runtime);
    let (shortest, longest) = (runtimes().min().unwrap_or(0), runtimes().max().unwrap_or(0));
    let bytes: u64 = used.iter().map(|direction| direction.io_bytes).sum();
    let seconds = used.iter().map(|one| one.io_bytes as f64 / one.bw_bytes.max(1) as f64);
    let all = (bytes as f64 / seconds.fold(1e-9, f64::max)) as u64;
    let two = |bytes, unit| [true, false].map(|binary| number_of(bytes, FIGURES, binary, unit));
    let [all, least, most] = [all, least, most].map(|rate| two(rate, "B/s"));
    let bytes = two(bytes, "B");
    write!(out, "{name}: bw={} ({}), ", all[0], all[1])?;
    write!(out, "{}-{} ({}-{}), ", least[0], most[0], least[1], most[1])?;
    writeln!(out, "io={} ({}), run={shortest}-{longest}msec", bytes[0], bytes[1])
}
