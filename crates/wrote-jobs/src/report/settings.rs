//! The settings of a row, as requested and in effect, in the terms of the result.

use super::before::Known;
use crate::jobs::{JobReport, NEW_BLOCKS};
use crate::spec::{BlockShare, BlockSizes, Fallocate, JobSpec, SyncEach};
use wrote::{Ioengine, Survives};
use wrote_result::document::{Blocks, Direction, Fallback, Flush, Settings, SettingsPair};

/// Returns the settings of the jobs of one row, which differ only in their files and in their
/// shares of a rate.
pub(super) fn pair(jobs: &[JobReport], direction: Direction, known: &Known) -> SettingsPair {
    let asked = asked(jobs, direction, known);
    let mut fallbacks: Vec<Fallback> = jobs.iter().flat_map(steps).collect();
    fallbacks.sort();
    fallbacks.dedup();
    let effective = effective(jobs, &asked);
    SettingsPair { asked, effective, fallbacks }
}

fn steps(job: &JobReport) -> impl Iterator<Item = Fallback> {
    job.effective.fallbacks.iter().map(fallback).chain(job.fallbacks.iter().cloned())
}

/// Converts a fallback of the engine into the form used in results.
pub fn fallback(step: &wrote::engine::Fallback) -> Fallback {
    Fallback { wanted: step.wanted.into(), got: step.got.into(), because: step.because.clone() }
}

fn asked(jobs: &[JobReport], direction: Direction, known: &Known) -> Settings {
    let io = &jobs[0].spec.io;
    let ring = |wanted: bool| (io.ioengine == Ioengine::IoUring).then_some(wanted);
    let each: Vec<Settings> = jobs.iter().map(|job| of_spec(&job.spec, direction)).collect();
    Settings {
        size_bytes: jobs.iter().map(|job| size_bytes(&job.spec)).sum(),
        numjobs: jobs.len() as u32,
        blocks: match direction {
            Direction::Write => blocks(jobs, known),
            Direction::Read if jobs.iter().all(|job| job.unwritten_bytes == Some(0)) => {
                Blocks::Written
            }
            Direction::Read => Blocks::Unknown,
        },
        registered_buffers: ring(io.fixedbufs),
        registered_files: ring(io.registerfiles),
        sqpoll: ring(io.sqthread_poll),
        iopoll: ring(io.hipri),
        rate_bytes_per_s: mean(&each, |settings| settings.rate_bytes_per_s),
        rate_iops: mean(&each, |settings| settings.rate_iops),
        ..each[0].clone()
    }
}

/// Returns the settings of a job that follow from its specification alone.
pub fn of_spec(spec: &JobSpec, direction: Direction) -> Settings {
    let (order, pace) = (&spec.order, &spec.pace);
    let is_write = direction == Direction::Write;
    let sizes = order.sizes(is_write);
    let more_than_one = |count: u32| (count > 1).then_some(count);
    let (rate, rate_iops) = match is_write {
        true => (pace.write_rate_bytes_per_s, pace.write_rate_iops),
        false => (pace.read_rate_bytes_per_s, pace.read_rate_iops),
    };
    Settings {
        rw: spec.order.rw.as_str().into(),
        ioengine: spec.io.ioengine.into(),
        bs_bytes: sizes.most_bytes(),
        iodepth: spec.io.iodepth,
        direct: spec.io.direct,
        sync: if is_write { flush(spec) } else { Flush::None },
        rwmixread_percent: (order.rw.read && order.rw.write).then_some(order.rwmixread_percent),
        bssplit: split(sizes),
        bs_bytes_min: match sizes {
            BlockSizes::Split(_) => None,
            BlockSizes::Range { least_bytes, .. } => Some(*least_bytes),
        },
        runtime_s: pace.runtime.map(|runtime| runtime.as_secs_f64()),
        time_based: pace.time_based.then_some(true),
        ramp_time_s: Some(pace.ramp_time.as_secs_f64()).filter(|ramp_s| *ramp_s > 0.0),
        rate_bytes_per_s: rate.map(|bytes| bytes as f64),
        rate_iops: rate_iops.map(f64::from),
        rate_process: (rate.is_some() || rate_iops.is_some()).then_some(pace.rate_process),
        percentage_random: order
            .percentage_random
            .filter(|_| order.rw.random)
            .map(|percents| percents[usize::from(is_write)]),
        random_distribution: order.random_distribution.words().filter(|_| order.rw.random),
        thinktime_s: pace.think.map(|think| think.time.as_secs_f64()),
        thinktime_blocks: pace.think.map(|think| think.blocks),
        nrfiles: more_than_one(spec.files.paths.len() as u32),
        loops: more_than_one(pace.loops),
        data: spec.writes.data.words().filter(|_| is_write),
        untimed: (!spec.latencies).then_some(true),
        verify: spec.writes.verify.map(|_| "crc32c".into()),
        ..Settings::default()
    }
}

/// Returns the mean of the jobs' rates, which may differ by one operation or byte per second;
/// `None` if a job has no rate.
fn mean(all: &[Settings], rate: fn(&Settings) -> Option<f64>) -> Option<f64> {
    let rates = all.iter().map(rate).collect::<Option<Vec<f64>>>()?;
    Some(rates.iter().sum::<f64>() / rates.len() as f64)
}

/// Returns the weakest settings among the jobs, and the deepest queue.
fn effective(jobs: &[JobReport], asked: &Settings) -> Settings {
    let first = &jobs[0].effective;
    let all = |is: fn(&JobReport) -> bool| jobs.iter().all(is);
    let ring = |is: bool| (first.ioengine == Ioengine::IoUring).then_some(is);
    let not_allocated =
        jobs.iter().flat_map(|job| &job.fallbacks).any(|step| step.got == NEW_BLOCKS);
    let flags = first.ring_flags.iter().map(|flag| (*flag).to_owned()).collect();
    Settings {
        ioengine: first.ioengine.into(),
        iodepth: iodepth_reached(jobs),
        direct: all(|job| job.direct),
        blocks: match asked.blocks {
            Blocks::Allocated if not_allocated => Blocks::New,
            blocks => blocks,
        },
        registered_buffers: ring(all(|job| job.effective.registered_buffers)),
        registered_files: ring(all(|job| job.effective.registered_files)),
        huge_pages: Some(all(|job| job.effective.huge_pages)),
        ring_flags: ring(true).map(|_| flags),
        sqpoll: ring(all(|job| job.effective.sqpoll)),
        iopoll: ring(all(|job| job.effective.iopoll)),
        ..asked.clone()
    }
}

/// Returns the maximum number of operations that a single job had in flight.
pub(super) fn iodepth_reached(jobs: &[JobReport]) -> u32 {
    jobs.iter().map(|job| job.effective.iodepth_reached).max().unwrap_or_default()
}

/// Returns what an acknowledged write of these jobs survives with the settings in effect (M3).
///
/// A flush after every few writes may leave the last writes uncovered, so it is ignored.
pub(super) fn survives(jobs: &[JobReport], known: &Known) -> Survives {
    let of_job = |job: &JobReport| {
        let spec = &job.spec;
        let each = |after: Option<u32>| after == Some(1);
        let flushed = spec.writes.sync != SyncEach::No
            || spec.writes.end_fsync
            || spec.writes.end_fdatasync
            || each(spec.writes.fsync)
            || each(spec.writes.fdatasync);
        let of_file = |file: &std::path::PathBuf| {
            let target = known.before.target(file);
            // A block device has no file system that could move a block.
            let in_place = target.writes_in_place() || target.filesystem == "none";
            let in_place = in_place && job.direct && known.is_settled(file, spec);
            target.survives(Survives::of_write(flushed, in_place))
        };
        spec.files.paths.iter().map(of_file).min().unwrap_or(Survives::Nothing)
    };
    jobs.iter().map(of_job).min().unwrap_or(Survives::Nothing)
}

/// Returns the number of bytes that one job is to transfer; the length of its files if the job uses
/// them completely.
fn size_bytes(spec: &JobSpec) -> u64 {
    let most = spec.number_ios_bytes().unwrap_or(u64::MAX);
    if let Some(bytes) = spec.pace.io_bytes {
        return bytes.min(most);
    }
    let whole = |file: &std::path::PathBuf| {
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        length.saturating_sub(spec.files.offset_bytes)
    };
    let of_file = |file| spec.files.file_bytes.unwrap_or_else(|| whole(file));
    spec.files.paths.iter().map(of_file).sum::<u64>().min(most)
}

/// Returns how the job flushes: the strongest kind of flush if there are several.
fn flush(spec: &JobSpec) -> Flush {
    match (spec.writes.sync, spec.writes.fsync, spec.writes.fdatasync) {
        (SyncEach::Sync, _, _) => Flush::OSyncEach,
        (SyncEach::Dsync, _, _) => Flush::ODsyncEach,
        (SyncEach::No, Some(1), _) => Flush::FsyncEach,
        (SyncEach::No, _, Some(1)) => Flush::FdatasyncEach,
        _ if spec.writes.end_fsync => Flush::FsyncAtEnd,
        _ if spec.writes.end_fdatasync => Flush::FdatasyncAtEnd,
        (SyncEach::No, Some(writes), _) => Flush::FsyncEvery(writes),
        (SyncEach::No, None, Some(writes)) => Flush::FdatasyncEvery(writes),
        (SyncEach::No, None, None) => Flush::None,
    }
}

/// Returns the state of the blocks that the jobs request.
fn blocks(jobs: &[JobReport], known: &Known) -> Blocks {
    let files = || jobs.iter().flat_map(|job| &job.spec.files.paths);
    if files().all(|file| known.is_settled(file, &jobs[0].spec)) {
        Blocks::Written
    } else if files().any(|file| known.is_changed(file)) {
        Blocks::Unknown
    } else {
        match jobs[0].spec.files.fallocate {
            Fallocate::Native | Fallocate::Keep => Blocks::Allocated,
            Fallocate::None | Fallocate::Truncate => Blocks::New,
        }
    }
}

fn split(sizes: &BlockSizes) -> Option<Vec<BlockShare>> {
    match sizes {
        BlockSizes::Split(shares) if shares.len() > 1 => Some(shares.clone()),
        _ => None,
    }
}
