//! `wrote trace --replay`: the writes of a traced program run again on its disk, in turn with the
//! advised way.

use super::shown;
use crate::commands::run::parse;
use std::path::Path;
use std::time::Duration;
use wrote_bench::in_turn;
use wrote_bench::scratch::Scratch;
use wrote_jobs::jobs::{self, JobReport, Permissions};
use wrote_jobs::spec::{BlockSizes, JobSpec};
use wrote_result::stats::interval;
use wrote_result::trace::Replay;
use wrote_result::{Error, Stop, units};
use wrote_trace::Jobs;

/// The runs of each way, as an interval needs them.
const RUNS: u32 = 5;
/// The time of the trial run as traced; it determines the bytes of the other runs.
const TRIAL_MAX: Duration = Duration::from_secs(1);
/// The maximum number of bytes of a run.
const BYTES_MAX: u64 = 64 << 20;

/// Replays the writes to each file in a folder next to it. A file that cannot be replayed is noted
/// on standard error. Ends early if the user asks to stop: the trace is worth its report.
///
/// # Errors
///
/// If `wrote run` would refuse the jobs.
pub(super) fn replays(jobs: &Jobs, stop: &Stop) -> Result<Vec<Replay>, Error> {
    let specs = parse(&jobs.text)?;
    let mut replays = Vec::new();
    for (path, ways) in jobs.files.iter().zip(specs.chunks_exact(2)) {
        match replay(path, &ways[0], &ways[1], stop) {
            Ok(replay) => replays.extend(replay),
            Err(Error::Interrupted) => break,
            Err(error) => {
                crate::terminal::complain(&format!("note: --replay {}: {error}", shown(path)));
            }
        }
    }
    Ok(replays)
}

/// Replays the writes to one file; `None` if none fits in the trial's time.
fn replay(
    path: &Path,
    traced: &JobSpec,
    advised: &JobSpec,
    stop: &Stop,
) -> Result<Option<Replay>, Error> {
    let scratch = Scratch::make(path.parent().unwrap_or(path))?;
    let bytes = bytes_of(traced).min(BYTES_MAX);
    let runs = u64::from(1 + 2 * RUNS);
    // Overwritten blocks are written before.
    let laid_out_bytes = traced.files.file_bytes.filter(|_| traced.files.overwrite).unwrap_or(0);
    crate::terminal::say(&format!(
        "replay of {}: writes at most {} into {}, about {} at most",
        shown(path),
        units::bytes(runs * (bytes + laid_out_bytes)),
        shown(scratch.path()),
        units::seconds(runs as f64 * TRIAL_MAX.as_secs_f64())
    ));
    let file = scratch.file("trace", "replay", 0);
    let of = |spec: &JobSpec, bytes: u64| {
        with_bytes(spec, bytes).with(|job| job.files.paths = vec![file.clone()])
    };
    let trial = of(traced, bytes).with(|job| job.pace.runtime = Some(TRIAL_MAX));
    let trial = run(&trial, stop)?;
    let (bytes, writes) = (trial.write.bytes, trial.write.operations);
    if bytes == 0 {
        return Ok(None);
    }
    let ways = [of(traced, bytes), of(advised, bytes)];
    let mut times_s = [Vec::new(), Vec::new()];
    for turn in in_turn(ways.len(), 0..RUNS) {
        let report = run(&ways[turn.row], stop)?;
        times_s[turn.row].push(report.elapsed.as_secs_f64());
    }
    scratch.remove()?;
    let [as_traced_s, advised_s] = times_s.map(|times_s| interval(&times_s));
    let advised = &ways[1];
    Ok(Some(Replay {
        path: path.to_string_lossy().into_owned(),
        bytes,
        writes,
        runs: RUNS,
        as_traced_s,
        advised_s,
        advised_writes_per_flush: advised.writes.fdatasync,
        advised_write_bytes: advised.one_size().filter(|_| advised.writes.fdatasync.is_none()),
    }))
}

/// Returns the bytes that a job writes: its whole file by default.
fn bytes_of(spec: &JobSpec) -> u64 {
    spec.pace.io_bytes.or(spec.files.file_bytes).unwrap_or(0)
}

/// Returns a job that writes this many bytes at most. One in order writes them once.
fn with_bytes(spec: &JobSpec, bytes: u64) -> JobSpec {
    let bytes = bytes_of(spec).min(bytes);
    let mut spec = spec.clone();
    match spec.pace.io_bytes {
        Some(_) => spec.pace.io_bytes = Some(bytes),
        None => spec.files.file_bytes = Some(bytes),
    }
    if spec.order.write_bs.most_bytes() > bytes {
        spec.order.write_bs = BlockSizes::one(bytes);
    }
    spec
}

/// Runs a job alone; its file is removed.
fn run(spec: &JobSpec, stop: &Stop) -> Result<JobReport, Error> {
    let groups = jobs::run(
        std::slice::from_ref(spec),
        Permissions::default(),
        stop,
        &mut (),
        wrote_jobs::peers::Peers::ALONE,
    )?;
    let report = groups.into_iter().flat_map(|group| group.jobs).next();
    report.ok_or_else(|| Error::Failed("the job has no report".into()))
}
