//! What taking latencies costs: `wrote run` with and without, on the random reads of `random_read.rs`,
//! where the program has the largest part in what is measured.

use super::job::{Job, RANDOM_BYTES};
use super::measured::Measured;
use super::programs::{Programs, Setting, Side};
use super::random_read;
use super::ratio::Asked;
use super::table::{Line, Subject, Unit};
use super::turn::in_turn;
use super::zram::DEVICE;
use crate::failure::Failure;
use std::path::Path;

const UNIT: Unit = Unit::Reads(RANDOM_BYTES);

/// The job with latencies, and without: fio's `gtod_reduce`.
pub fn jobs() -> [Job; 2] {
    let timed = random_read::job();
    [timed.named("random-read-timed"), timed.named("random-read-untimed").with("gtod_reduce", "1")]
}

/// The line where there is no such device.
pub fn missing(because: String) -> Line {
    Line::missing(UNIT, subject(), because)
}

/// Measures both on the device, `pairs` times in turn, with the current folder `folder`.
pub fn measure(programs: &Programs, folder: &Path, pairs: u32) -> Result<Line, Failure> {
    measure_jobs(programs, Setting { folder, under: &random_read::pin()? }, &jobs(), pairs)
}

fn measure_jobs(
    programs: &Programs,
    setting: Setting,
    [timed, untimed]: &[Job; 2],
    pairs: u32,
) -> Result<Line, Failure> {
    let start_up_s =
        |job| programs.start_up_cpu_s(Side::Wrote, job, RANDOM_BYTES, setting, || Ok(()));
    let (timed_s, untimed_s) = (start_up_s(timed)?, start_up_s(untimed)?);
    let run = |job: &Job, start_up_s: f64| -> Result<Measured, Failure> {
        let ran = programs.run(Side::Wrote, job, setting)?;
        ran.check_operations(Side::Wrote, RANDOM_BYTES)?;
        Ok(ran.measured(start_up_s))
    };
    programs.check_fallbacks(timed, RANDOM_BYTES, setting)?;
    let mut line = Line::new(UNIT, subject());
    in_turn(
        pairs,
        || run(timed, timed_s),
        || run(untimed, untimed_s),
        |with, without| {
            line.add(with, without);
        },
    )?;
    Ok(line)
}

fn subject() -> Subject {
    Subject {
        what: format!("with latencies, random read, 4 KiB x 64, one core, {DEVICE}"),
        blocks: "written",
        peer: "wrote, gtod_reduce=1",
        throughput: Some(Asked::AtLeast(0.95)),
        cpu: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::programs::fake;
    use super::*;

    #[test]
    fn the_same_job_runs_with_and_without_latencies_by_wrote_alone() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let programs = fake::programs(folder.path(), 1000, RANDOM_BYTES);
        let setting = Setting { folder: folder.path(), under: &[] };
        let row = measure_jobs(&programs, setting, &jobs(), 1).expect("scripts").row();
        assert!(row.contains("| wrote, gtod_reduce=1 | **1.00** (1.00–1.00) |"), "{row}");
        assert!(row.ends_with("| ≥ 0.95, met |"), "{row}");
        let calls = std::fs::read_to_string(folder.path().join("calls")).expect("called");
        assert!(calls.contains("random-read-untimed.fio") && !calls.contains("fio --output"));
    }

    #[test]
    fn nothing_but_the_clock_tells_the_jobs_apart() {
        let [timed, untimed] = jobs().map(|job| job.text());
        assert_eq!(untimed.replace("gtod_reduce=1\n", ""), timed);
        assert_ne!(untimed, timed);
    }
}
