//! The run of one group: makes its files ready, runs its jobs at once, and adds up their reports.

use super::crew::{Jobs, sequence, sqpolls};
use super::files::Files;
use super::made::Made;
use super::overlap::overlaps;
use super::{GroupReport, Permissions, Watcher, held, span};
use crate::spec::JobSpec;
use crate::worker::Progress;
use crate::{clock, gates};
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use wrote_machine::usage::Usage;
use wrote_machine::watch::cpu::CpuWatch;
use wrote_result::{Error, Stop};

pub fn run_group(
    specs: &[&JobSpec],
    made: &mut Made,
    permissions: Permissions,
    stop: &Stop,
    watcher: &mut dyn Watcher,
) -> Result<GroupReport, Error> {
    stop.check()?;
    let files = Files::examine(specs, made, permissions)?;
    let jobs: Vec<JobSpec> = specs.iter().map(|spec| (*spec).clone()).collect();
    watcher.group(specs[0].group, &jobs, files.laid_out_bytes()?);
    let overlaps = overlaps(specs);
    let ready = files.make_ready(made, stop)?;
    let regions: Vec<Vec<Range<u64>>> = ready.iter().map(|ready| ready.regions.clone()).collect();
    let mut held = held::before(specs, &regions);
    let device = specs[0].files.first().and_then(|path| wrote::device::device_at(path));
    // The bytes that each job transfers, for its progress.
    let totals = specs
        .iter()
        .zip(&ready)
        .map(|(spec, ready)| Ok(sequence(spec, ready)?.outline().total_bytes()));
    let totals = totals.collect::<Result<Vec<Option<u64>>, Error>>()?;
    let progress: Vec<Progress> = specs.iter().map(|_| Progress::default()).collect();
    let failed = AtomicBool::new(false);
    let sqpolls = sqpolls(specs);
    let crew = Jobs { specs, ready, sqpolls, progress: &progress, stop, failed: &failed };
    let begin = Instant::now();
    let mut watch = || {
        let moved: Vec<[u64; 2]> = progress.iter().map(Progress::moved_bytes).collect();
        let far = specs.iter().zip(&totals).zip(&moved);
        let far = far.map(|((spec, total), moved)| fraction(spec, *total, *moved, begin.elapsed()));
        let sum = |direction: usize| moved.iter().map(|moved| moved[direction]).sum();
        watcher.progress(sum(0), sum(1), far.fold(1.0, f64::min));
    };
    let (jobs, (process, counted, cpu)) = gates::together(&crew, specs.len(), &mut watch, |go| {
        let cpu = CpuWatch::begin();
        let before = clock::counters(device.as_ref());
        let usage_before = Usage::now();
        go();
        let process = Usage::now().since(&usage_before);
        let counted = clock::counters(device.as_ref()).zip(before);
        let cpu = cpu.end();
        held::after(&mut held);
        (process, counted.map(|(after, before)| after.since(&before)), cpu)
    })?;
    stop.check()?;
    Ok(GroupReport {
        elapsed: span(&jobs),
        jobs,
        device_written_bytes: counted.map(|counted| counted.written_bytes),
        device_read_bytes: counted.map(|counted| counted.read_bytes),
        process: specs.iter().all(|spec| spec.ramp_time.is_zero()).then_some(process),
        max_rss_bytes: process.max_rss_bytes,
        cpu_busiest: cpu.busiest,
        cpu_waited_s: cpu.waited_s,
        held: held.into_iter().map(|(held, _)| held).collect(),
        overlaps,
    })
}

/// Returns the part of a job that is done, from 0 to 1, the larger one of its time and its bytes.
fn fraction(spec: &JobSpec, total: Option<u64>, moved: [u64; 2], elapsed: Duration) -> f64 {
    let by_time = spec.runtime.map_or(0.0, |runtime| {
        let whole = spec.startdelay + spec.ramp_time + runtime;
        elapsed.as_secs_f64() / whole.as_secs_f64().max(1e-9)
    });
    let by_bytes = total.map_or(0.0, |total| (moved[0] + moved[1]) as f64 / total.max(1) as f64);
    by_time.max(by_bytes).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::tests::spec;
    use crate::spec::Rw;

    #[test]
    fn how_far_a_job_is_follows_from_its_time_or_its_bytes_whichever_is_farther() {
        let (second, rw) = (Duration::from_secs(1), Rw { read: true, write: false, random: false });
        let timed = JobSpec {
            runtime: Some(2 * second),
            ramp_time: second,
            startdelay: second,
            ..spec("a", rw)
        };
        assert_eq!(fraction(&timed, None, [5, 5], second), 0.25);
        assert_eq!(fraction(&timed, Some(20), [5, 5], second), 0.5);
        assert_eq!(fraction(&timed, Some(20), [15, 15], 9 * second), 1.0);
        assert_eq!(fraction(&spec("a", rw), Some(0), [0, 0], second), 0.0);
    }
}
