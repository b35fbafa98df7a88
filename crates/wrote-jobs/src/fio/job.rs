//! A builder of jobs from a draft, with checks of combined values.

use super::draft::Draft;
use super::value::{BYTES_MAX, Size};
use super::{Notes, ParseError, files};
use crate::fio_report::options;
use crate::jobs::is_synchronous;
use crate::spec::{BlockSizes, Data, JobSpec, Think, Verify, share};
use rand::{Rng, SeedableRng};
use rand_xoshiro::SplitMix64;
use std::path::PathBuf;
use std::time::Duration;
use wrote::Ioengine;
use wrote_result::units;

/// The maximum number of jobs in a file, including clones. Each job is a thread.
const JOBS_MAX: usize = 1024;

const BS_BYTES: u64 = 4096;

/// The seed of jobs that repeat the same operations in each run (`randrepeat=1`): fio's `randseed`.
const REPEATED_SEED: u64 = 0x89;

/// Adds the jobs of a draft to `jobs`, or returns the draft's errors.
pub(super) fn add(
    draft: &Draft,
    group: u32,
    random_seed: u64,
    jobs: &mut Vec<JobSpec>,
    notes: &mut Notes,
) -> Vec<ParseError> {
    let strict = [check_engine(draft), check_times_and_rates(draft), check_data(draft)];
    let strict = strict.into_iter().filter(|_| !draft.as_fio);
    let checks = strict.chain([check_room(draft, jobs)]);
    let mut errors: Vec<ParseError> = checks.filter_map(Result::err).collect();
    note_engine(draft, notes);
    if errors.is_empty() {
        errors.extend(add_checked(draft, group, random_seed, jobs, notes).err());
    }
    errors
}

fn add_checked(
    draft: &Draft,
    group: u32,
    random_seed: u64,
    jobs: &mut Vec<JobSpec>,
    notes: &mut Notes,
) -> Result<(), ParseError> {
    let blocks = blocks(draft, notes)?;
    let mut job = spec(draft, group, &blocks);
    job.options = options(&job, draft.numjobs as usize).into();
    for clone in 0..draft.numjobs {
        let seed = seed(draft.randseed, &job, random_seed, jobs.len());
        let files = files::paths(draft, clone);
        let makes_folders_in = files::directory(draft, clone).map(PathBuf::from);
        let makes_folders_in = Some(makes_folders_in.unwrap_or_default());
        let mut job = JobSpec { clone, seed, ..job.clone() };
        (job.files.paths, job.files.makes_folders_in) = (files, makes_folders_in);
        set_region(draft, &blocks, &mut job, notes)?;
        jobs.push(job);
    }
    Ok(())
}

/// Returns the job of a draft, without the regions of its files.
pub(super) fn described(draft: &Draft) -> JobSpec {
    let blocks = blocks(draft, &mut Notes::default()).expect("as fio, every `ba` is taken");
    let mut job = spec(draft, 0, &blocks);
    job.files.paths = files::paths(draft, 0);
    job
}

/// The block sizes of reads and writes, and the smallest and largest block that the job uses.
struct Blocks {
    read: BlockSizes,
    write: BlockSizes,
    least_bytes: u64,
    most_bytes: u64,
}

fn check_room(draft: &Draft, jobs: &[JobSpec]) -> Result<(), ParseError> {
    if jobs.len() + draft.numjobs as usize > JOBS_MAX {
        return Err(draft.wrong("numjobs", format!("makes more than {JOBS_MAX} jobs in all")));
    }
    Ok(())
}

fn check_engine(draft: &Draft) -> Result<(), ParseError> {
    let ioengine = draft.job.io.ioengine;
    if is_synchronous(ioengine) && draft.job.io.iodepth > 1 {
        let default = if draft.said("ioengine") { "" } else { ", the default," };
        return Err(draft.wrong(
            "iodepth",
            format!(
                "ioengine={}{default} does one operation at a time (fio would silently use 1): use \
                 ioengine=io_uring, or leave out iodepth",
                draft.engine()
            ),
        ));
    }
    if ioengine == Ioengine::Mmap && draft.job.io.direct {
        return Err(draft.wrong(
            if draft.said("direct") { "direct" } else { "buffered" },
            "ioengine=mmap goes through the page cache; use psync or io_uring to bypass it",
        ));
    }
    Ok(())
}

/// Adds notes about keys that have no effect here, or a different effect than in fio.
fn note_engine(draft: &Draft, notes: &mut Notes) {
    let mut note = |key, text: &str| draft.note(key, text, notes);
    if draft.job.io.iodepth_batch_complete_min == 0 {
        let text = "waits for one; fio would poll";
        note("iodepth_batch_complete_min", text);
    }
    if draft.job.io.ioengine != Ioengine::IoUring {
        let text = format!("has no effect with ioengine={}", draft.engine());
        let only_of_io_uring = [
            ("hipri", draft.job.io.hipri),
            ("fixedbufs", draft.job.io.fixedbufs),
            ("registerfiles", draft.job.io.registerfiles),
            ("sqthread_poll", draft.job.io.sqthread_poll),
            ("sqthread_poll_cpu", draft.job.io.sqthread_poll_cpu.is_some()),
        ];
        for (key, _) in only_of_io_uring.iter().filter(|(_, on)| *on) {
            note(key, &text);
        }
        return;
    }
    if draft.job.io.hipri && !draft.job.io.direct {
        note("hipri", "has no effect: polling needs direct=1");
    }
    if draft.job.io.sqthread_poll_cpu.is_some() && !draft.job.io.sqthread_poll {
        note("sqthread_poll_cpu", "has no effect without sqthread_poll=1");
    }
    if draft.job.io.sqthread_poll && !draft.job.io.registerfiles && draft.said("registerfiles") {
        note("registerfiles", "has no effect: sqthread_poll registers files anyway, as in fio");
    }
}

fn check_times_and_rates(draft: &Draft) -> Result<(), ParseError> {
    if draft.job.pace.time_based && draft.job.pace.runtime.is_none() {
        return Err(draft.wrong("time_based", "needs runtime"));
    }
    if draft.job.pace.time_based && draft.job.pace.number_ios.is_some() {
        let problem = "has no effect with time_based, which runs until runtime ends, as in fio";
        return Err(draft.wrong("number_ios", problem));
    }
    let given = |rates: &[Option<u64>; 2]| rates.iter().flatten().any(|&rate| rate > 0);
    if given(&draft.rate) && given(&draft.rate_iops) {
        return Err(draft.wrong("rate_iops", "conflicts with a rate: give one of the two"));
    }
    if draft.rate_iops.iter().flatten().any(|&rate| rate > u64::from(u32::MAX)) {
        return Err(draft.wrong("rate_iops", "is more than 2^32 - 1 operations per second"));
    }
    Ok(())
}

fn check_data(draft: &Draft) -> Result<(), ParseError> {
    let compresses = draft.compress_percent.is_some_and(|percent| percent > 0);
    if draft.zero_buffers && compresses {
        let problem = "conflicts with zero_buffers=1: zeros compress more than any percentage";
        return Err(draft.wrong("buffer_compress_percentage", problem));
    }
    if draft.buffer_pattern.is_some() && (draft.zero_buffers || compresses) {
        let problem =
            "conflicts with zero_buffers and buffer_compress_percentage: give one of them";
        return Err(draft.wrong("buffer_pattern", problem));
    }
    Ok(())
}

/// Chooses the block sizes. `bssplit` takes precedence over `bsrange`, and `bsrange` over `bs`,
/// whatever the order of the lines, as in fio.
fn blocks(draft: &Draft, notes: &mut Notes) -> Result<Blocks, ParseError> {
    let all = [("bssplit", &draft.bssplit), ("bsrange", &draft.bsrange), ("bs", &draft.bs)];
    let of = |direction: usize| {
        let said = all.iter().find_map(|(key, sizes)| Some((*key, sizes[direction].clone()?)));
        said.unwrap_or(("bs", BlockSizes::one(BS_BYTES)))
    };
    let ((read_key, read), (write_key, write)) = (of(0), of(1));
    let keys = [read_key, write_key];
    for (key, _) in all {
        if draft.said(key) && !keys.contains(&key) {
            draft.note(key, format!("has no effect: {read_key} sets the sizes"), notes);
        }
    }
    let used = [(draft.job.order.rw.read, &read), (draft.job.order.rw.write, &write)];
    let used = || used.iter().filter(|(used, _)| *used).map(|(_, sizes)| sizes);
    let least_bytes = used().map(|sizes| sizes.least_bytes()).min().unwrap_or(BS_BYTES);
    let most_bytes = used().map(|sizes| sizes.most_bytes()).max().unwrap_or(BS_BYTES);
    if let Some(align) = draft.blockalign
        && align != least_bytes
    {
        let least = units::block_size(least_bytes);
        return Err(draft.wrong("ba", format!("offsets are multiples of the block size, {least}")));
    }
    Ok(Blocks { read, write, least_bytes, most_bytes })
}

/// Sets the region of each file that the job uses, and the number of bytes to transfer.
fn set_region(
    draft: &Draft,
    blocks: &Blocks,
    job: &mut JobSpec,
    notes: &mut Notes,
) -> Result<(), ParseError> {
    let (mut offset_bytes, mut percent) = (0_u64, 0_u32);
    for (size, times) in [(draft.offset, 1), (draft.offset_increment, job.clone)] {
        match size {
            Size::Bytes(bytes) => {
                let moved = bytes.checked_mul(times.into());
                let offset = moved.and_then(|moved| moved.checked_add(offset_bytes));
                offset_bytes = offset.filter(|&offset| offset <= BYTES_MAX).ok_or_else(|| {
                    let what = "the last of the jobs would begin beyond 2^63 bytes";
                    draft.wrong("offset_increment", what)
                })?;
            }
            Size::Percent(part) => percent += part * times,
        }
    }
    match draft.filesize {
        Some(filesize) => {
            let moved = share(filesize, percent);
            offset_bytes = offset_bytes.saturating_add(moved - moved % blocks.least_bytes);
        }
        None => (job.files.offset_percent, job.files.size_percent) = (percent, draft.size_percent),
    }
    let file_bytes = file_bytes(draft, blocks, offset_bytes, notes)?;
    if file_bytes.is_some_and(|bytes| bytes > BYTES_MAX - offset_bytes) {
        let key = if draft.filesize.is_some() { "filesize" } else { "size" };
        return Err(draft.wrong(key, "the file would end beyond 2^63 bytes"));
    }
    job.pace.io_bytes = io_bytes(draft, blocks, file_bytes)?;
    (job.files.offset_bytes, job.files.file_bytes) = (offset_bytes, file_bytes);
    Ok(())
}

/// Returns the number of bytes that the job uses in each file, in whole blocks; `None` if no key
/// sets it. The files share `size`, but `filesize` is the length of each file.
fn file_bytes(
    draft: &Draft,
    blocks: &Blocks,
    offset_bytes: u64,
    notes: &mut Notes,
) -> Result<Option<u64>, ParseError> {
    let files = files::count(draft) as u64;
    let (key, bytes) = match (draft.filesize, draft.size) {
        (Some(filesize), _) => match filesize.checked_sub(offset_bytes) {
            None | Some(0) => return Err(draft.wrong("filesize", "the job begins beyond it")),
            Some(bytes) => {
                let most = draft.size_percent.map_or(u64::MAX, |part| share(filesize, part));
                ("filesize", bytes.min(most))
            }
        },
        (None, Some(size)) => ("size", size / files),
        (None, None) => return Ok(None),
    };
    let told = units::block_size;
    let subject = match (key, files) {
        ("size", 2..) => format!("its share of {files} files, {},", told(bytes)),
        _ => told(bytes),
    };
    if blocks.most_bytes > bytes {
        let block = told(blocks.most_bytes);
        return Err(draft.wrong(key, format!("{subject} is less than a block of {block}")));
    }
    let whole = bytes - bytes % blocks.least_bytes;
    if whole < bytes {
        let (whole, least) = (told(whole), told(blocks.least_bytes));
        draft.note(key, format!("{subject} is not a multiple of {least}; {whole} is used"), notes);
    }
    Ok(Some(whole))
}

/// Returns the number of bytes to transfer (whole blocks, and at least as much as requested);
/// `None` if only the files limit it. As in fio, `size` together with `filesize` cannot exceed the
/// files' bytes, but `io_size` can.
fn io_bytes(
    draft: &Draft,
    blocks: &Blocks,
    file_bytes: Option<u64>,
) -> Result<Option<u64>, ParseError> {
    let files_bytes = file_bytes.unwrap_or(u64::MAX).saturating_mul(files::count(draft) as u64);
    let bytes = match (draft.io_size, draft.filesize, draft.size) {
        (Some(Size::Bytes(bytes)), ..) => bytes,
        (Some(Size::Percent(percent)), _, Some(size)) => share(size, percent),
        (Some(Size::Percent(_)), _, None) => {
            return Err(draft.wrong("io_size", "is a share of size, but no size is given"));
        }
        (None, Some(_), Some(size)) => size.min(files_bytes),
        (None, ..) => return Ok(None),
    };
    Ok(Some(bytes.max(1).next_multiple_of(blocks.least_bytes)))
}

/// Returns a seed that differs between jobs, so that clones on the same file use different offsets.
fn seed(randseed: Option<u64>, job: &JobSpec, random_seed: u64, number: usize) -> u64 {
    let repeats = !job.is_off("randrepeat") || job.is_on("allrandrepeat");
    let seed = randseed.unwrap_or(if repeats { REPEATED_SEED } else { random_seed });
    let mut mixed = SplitMix64::seed_from_u64(seed);
    mixed.next_u64().wrapping_add(SplitMix64::seed_from_u64(number as u64).next_u64())
}

fn spec(draft: &Draft, group: u32, blocks: &Blocks) -> JobSpec {
    let mut job = draft.job.clone();
    let is_ring = job.io.ioengine == Ioengine::IoUring;
    let rate = |rate: Option<u64>| rate.filter(|&rate| rate > 0);
    let iops = |iops: Option<u64>| rate(iops).map(|rate| rate as u32);
    (job.group, job.options, job.lines) = (group, draft.pairs().into(), draft.lines().into());
    // Without `lat`, fio still reports `clat`.
    let reduces = job.is_on("gtod_reduce");
    job.latencies = !(reduces || job.is_on("disable_lat") && job.is_on("disable_clat"));
    job.samples = !job.is_on("disable_bw_measurement");

    (job.order.read_bs, job.order.write_bs) = (blocks.read.clone(), blocks.write.clone());
    job.order.as_fio = draft.as_fio;

    let io = &mut *job.io;
    // fio's mapping goes through the page cache, whatever `direct` says.
    io.direct &= io.ioengine != Ioengine::Mmap;
    io.iodepth_batch = io.iodepth_batch.min(io.iodepth);
    io.iodepth_batch_complete_min = io.iodepth_batch_complete_min.clamp(1, io.iodepth);
    io.hipri &= io.direct && is_ring;
    io.fixedbufs &= is_ring;
    io.registerfiles = (io.registerfiles || io.sqthread_poll) && is_ring;
    io.sqthread_poll &= is_ring;
    io.sqthread_poll_cpu = io.sqthread_poll_cpu.filter(|_| io.sqthread_poll);

    let pace = &mut *job.pace;
    pace.counts_short_ramp = draft.as_fio;
    pace.time_based &= pace.runtime.is_some();
    pace.number_ios = pace.number_ios.filter(|_| !pace.time_based);
    [pace.read_rate_bytes_per_s, pace.write_rate_bytes_per_s] = draft.rate.map(rate);
    [pace.read_rate_iops, pace.write_rate_iops] = draft.rate_iops.map(iops);
    for (bytes, iops, sizes) in [
        (&mut pace.read_rate_bytes_per_s, &mut pace.read_rate_iops, &blocks.read),
        (&mut pace.write_rate_bytes_per_s, &mut pace.write_rate_iops, &blocks.write),
    ] {
        // Only the lower of two limits has an effect.
        if let (Some(bytes_per_s), Some(per_s)) = (*bytes, *iops) {
            let is_lower = bytes_per_s < u64::from(per_s) * sizes.least_bytes();
            if is_lower { *iops = None } else { *bytes = None }
        }
    }
    if let Some(steady) = &mut pace.steady {
        (steady.over, steady.ramp) = (draft.steady_duration, draft.steady_ramp);
    }
    pace.think = (!draft.thinktime.is_zero()).then_some(Think {
        time: draft.thinktime,
        spin: draft.thinktime_spin.min(draft.thinktime),
        blocks: draft.thinktime_blocks,
    });

    let is_logged = ["bw", "iops", "lat"].iter().any(|of| draft.said(&format!("write_{of}_log")));
    job.log = is_logged.then(|| Duration::from_millis(draft.log_avg_msec.into()));

    let after_writes = !job.is_off("do_verify") && job.order.rw.write;
    job.writes.verify = job.writes.verify.map(|_| Verify { after_writes });
    job.writes.data = match (&draft.buffer_pattern, draft.zero_buffers, draft.compress_percent) {
        (Some(pattern), ..) => Data::Pattern(pattern.clone()),
        (None, true, _) => Data::Zeros,
        (None, false, None | Some(0)) => Data::Random,
        (None, false, Some(percent)) => Data::Compressible(percent),
    };
    job
}
