//! Runs one group: prepares its files, runs its jobs at the same time, and combines their reports.

use super::check::{overlaps, sequence};
use super::crew::{Jobs, engine_options};
use super::files::{Files, Found};
use super::made::Made;
use super::{GroupReport, Held, Permissions, Watcher, span};
use crate::clock::{Cost, measured};
use crate::gates;
use crate::gates::Gate;
use crate::machine::usage::Usage;
use crate::peers::Peers;
use crate::spec::JobSpec;
use crate::worker::Progress;
use std::cell::RefCell;
use std::fs::File;
use std::ops::Range;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use wrote_result::{Error, Stop};

pub fn run_group(
    specs: &[&JobSpec],
    made: &mut Made,
    permissions: Permissions,
    stop: &Stop,
    watcher: &mut dyn Watcher,
    peers: Peers,
) -> Result<GroupReport, Error> {
    stop.check()?;
    // A rank that prepares its files would disturb the measurements of other ranks.
    peers.barrier("before a group")?;
    let files = Files::examine(specs, |path| Found::among(made, path), permissions)?;
    watcher.group(specs[0].group, specs, files.laid_out_bytes()?);
    let overlaps = overlaps(specs);
    let ready = files.make_ready(made, stop)?;
    let regions: Vec<Vec<Range<u64>>> = ready.iter().map(|ready| ready.regions.clone()).collect();
    let mut held = held_before(specs, &regions);
    let cached_before_bytes = read_from_cache(specs, &regions);
    let device = specs[0].files.paths.first().and_then(wrote::device::device_at);
    // The number of bytes that each job transfers, from which its progress follows.
    let totals = specs
        .iter()
        .zip(&regions)
        .map(|(spec, regions)| Ok(sequence(spec, regions.clone())?.outline().total_bytes()));
    let totals = totals.collect::<Result<Vec<Option<u64>>, Error>>()?;
    let progress: Vec<Progress> = specs.iter().map(|_| Progress::default()).collect();
    let (failed, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let engines = engine_options(specs);
    let (progress, failed, over) = (&progress[..], &failed, &over);
    let (keeps_a_part, never) = (watcher.keeps_a_part(), Stop::new());
    let of_jobs = if keeps_a_part { &never } else { stop };
    let crew = Jobs { specs, ready, engines, progress, stop: of_jobs, failed, over };
    let begin = Instant::now();
    let watcher = RefCell::new(watcher);
    let mut watch = || {
        let moved: Vec<[u64; 2]> = progress.iter().map(Progress::moved_bytes).collect();
        let far = specs.iter().zip(&totals).zip(&moved);
        let far = far.map(|((spec, total), moved)| fraction(spec, *total, *moved, begin.elapsed()));
        let sum = |direction: usize| moved.iter().map(|moved| moved[direction]).sum();
        let mut watcher = watcher.borrow_mut();
        watcher.progress(sum(0), sum(1), far.fold(1.0, f64::min));
        if keeps_a_part && stop.is_requested() {
            over.store(true, Ordering::Relaxed);
        }
    };
    let run = |number, gate: &Gate| crew.run(number, gate);
    let timed = gates::together(specs.len(), failed, run, &mut watch, |go| {
        watcher.borrow_mut().ready()?;
        peers.barrier("the start of a group")?;
        let ((), cost) = measured(device.as_ref(), Usage::now, go);
        held_after(&mut held);
        Ok(cost)
    });
    let (jobs, Cost { used, moved, cpu }) = timed?;
    of_jobs.check()?;
    Ok(GroupReport {
        elapsed: span(&jobs),
        jobs,
        device: moved,
        process: specs.iter().all(|spec| spec.pace.ramp_time.is_zero()).then_some(used),
        max_rss_bytes: used.max_rss_bytes,
        cpu_busiest: cpu.busiest,
        cpu_waited_s: cpu.waited_s,
        held: held.into_iter().map(|(held, _)| held).collect(),
        overlaps,
        cached_before_bytes,
    })
}

/// Returns how much of a job is done, from 0 to 1, by time or by bytes, whichever is more.
fn fraction(spec: &JobSpec, total: Option<u64>, moved: [u64; 2], elapsed: Duration) -> f64 {
    let by_time = spec.pace.runtime.map_or(0.0, |runtime| {
        let whole = spec.pace.startdelay + spec.pace.ramp_time + runtime;
        elapsed.as_secs_f64() / whole.as_secs_f64().max(1e-9)
    });
    let by_bytes = total.map_or(0.0, |total| (moved[0] + moved[1]) as f64 / total.max(1) as f64);
    by_time.max(by_bytes).min(1.0)
}

/// Returns each file of a direct job, with the bytes that are cached now, and with the job's
/// region.
fn held_before(specs: &[&JobSpec], regions: &[Vec<Range<u64>>]) -> Vec<(Held, Range<u64>)> {
    let mut all: Vec<(Held, Range<u64>)> = Vec::new();
    for (spec, regions) in specs.iter().zip(regions).filter(|(spec, _)| spec.io.direct) {
        for (file, region) in spec.files.paths.iter().zip(regions) {
            let is_known = |(held, _): &(Held, Range<u64>)| {
                held.file == *file && held.offset_bytes == region.start
            };
            let held_bytes = cached_bytes(file, region);
            let (Some(before_bytes), false) = (held_bytes, all.iter().any(is_known)) else {
                continue;
            };
            let (file, offset_bytes) = (file.clone(), region.start);
            let held = Held { file, offset_bytes, before_bytes, after_bytes: before_bytes };
            all.push((held, region.clone()));
        }
    }
    all
}

/// Returns the number of bytes to be read through the page cache that are already in it; `None` if
/// no job only reads through it, or if the kernel does not report it.
fn read_from_cache(specs: &[&JobSpec], regions: &[Vec<Range<u64>>]) -> Option<u64> {
    let is_read = |spec: &JobSpec| spec.order.rw.read && !spec.order.rw.write && !spec.io.direct;
    let reads = specs.iter().zip(regions).filter(|(spec, _)| is_read(spec));
    let files = reads.flat_map(|(spec, regions)| spec.files.paths.iter().zip(regions));
    let mut files = files.peekable();
    files.peek()?;
    files.map(|(file, region)| cached_bytes(file, region)).sum()
}

fn held_after(all: &mut [(Held, Range<u64>)]) {
    for (held, region) in all {
        held.after_bytes = cached_bytes(&held.file, region).unwrap_or(held.before_bytes);
    }
}

/// Returns the number of bytes of a region that are in the page cache; `None` if the kernel does
/// not report it, or if the path does not lead to a regular file.
fn cached_bytes(path: &Path, region: &Range<u64>) -> Option<u64> {
    // Opening a pipe would wait for its other end.
    if !path.metadata().ok()?.is_file() {
        return None;
    }
    let file = File::open(path).ok()?;
    let to = |end| wrote::cached_bytes(file.as_fd(), end);
    Some(to(region.end)?.saturating_sub(to(region.start)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::tests::spec;
    use crate::spec::READ;

    #[test]
    fn how_far_a_job_is_follows_from_its_time_or_its_bytes_whichever_is_farther() {
        let second = Duration::from_secs(1);
        let timed = spec("a", READ).with(|job| {
            job.pace.runtime = Some(2 * second);
            job.pace.ramp_time = second;
            job.pace.startdelay = second;
        });
        assert_eq!(fraction(&timed, None, [5, 5], second), 0.25);
        assert_eq!(fraction(&timed, Some(20), [5, 5], second), 0.5);
        assert_eq!(fraction(&timed, Some(20), [15, 15], 9 * second), 1.0);
        assert_eq!(fraction(&spec("a", READ), Some(0), [0, 0], second), 0.0);
    }
}

#[cfg(test)]
mod held_tests {
    use super::*;
    use crate::jobs::tests::spec;
    use crate::spec::WRITE;

    #[test]
    fn cached_writes_are_found_in_the_page_cache_and_a_hole_is_not() {
        let file = fixtures::file();
        file.as_file().set_len(3 << 20).unwrap();
        let files = vec![file.path().to_owned()];
        let direct = spec("a", WRITE).with(|job| (job.files.paths, job.io.direct) = (files, true));
        let region = 1 << 20..3 << 20;
        let mut all = held_before(&[&direct, &direct], &[vec![region.clone()], vec![region]]);
        if all.is_empty() {
            return fixtures::skip("page_cache", "the kernel does not say what is cached");
        }
        assert_eq!((all.len(), all[0].0.before_bytes), (1, 0), "the same bytes once");
        std::fs::write(file.path(), vec![1; 2 << 20]).unwrap();
        held_after(&mut all);
        assert_eq!(all[0].0.after_bytes, 1 << 20, "what lies before the region is not counted");
        let cached = direct.with(|job| job.io.direct = false);
        assert!(held_before(&[&cached], &[std::iter::once(0..1).collect()]).is_empty());
    }
}
