//! Random reads of 4 KiB x 64 by one core from a device in memory, which measure the program and
//! the kernel.

use super::contest::{Contest, Requirement};
use super::figures::Condition;
use super::job::{Job, Runner, random_read as random_read_job};
use super::outcome::Unit;
use super::site::Site;
use crate::failure::{Failure, Tried};
use crate::zram::{DEVICE, SIZE_BYTES};
use rustix::thread::{CpuSet, sched_getaffinity};

const RUNTIME_S: u32 = 3;
/// The work, in words.
pub const WORDS: &str = "random read, 4 KiB x 64, one core";

/// Returns the words that pin a program to one processor.
pub fn pin() -> Result<String, Failure> {
    let allowed = sched_getaffinity(None).tried("sched_getaffinity")?;
    Ok(format!("taskset -c {} ", choice(&allowed)))
}

/// Returns the second processor where the process may use it: most interrupts go to the first.
fn choice(allowed: &CpuSet) -> usize {
    let all = || (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    all().find(|&cpu| cpu > 0).or_else(|| all().next()).unwrap_or(0)
}

fn job() -> Job {
    random_read_job("random-read", DEVICE, SIZE_BYTES).for_seconds(RUNTIME_S)
}

/// Makes the job with latencies, and without them by fio's `gtod_reduce`.
fn timed_and_untimed() -> [Job; 2] {
    [job().named("random-read-timed"), job().named("random-read-untimed").with("gtod_reduce=1")]
}

/// Compares wrote with fio.
pub fn random_read(site: &Site) -> Result<Contest, Failure> {
    let contenders = [Runner::Wrote, Runner::Fio].map(|runner| (runner, runner.program(), job()));
    contest("job file", contenders, Condition::AtLeast(1.5), site)
}

/// Compares wrote with latencies and without: the cost of the instrument, where the program has the
/// largest part in the figures.
pub fn instrument(site: &Site) -> Result<Contest, Failure> {
    let [timed, untimed] = timed_and_untimed();
    let contenders = [
        (Runner::Wrote, "`wrote run`", timed),
        (Runner::Wrote, "`wrote run`, gtod_reduce=1", untimed),
    ];
    contest("with latencies", contenders, Condition::AtLeast(0.95), site)
}

fn contest(
    what: &str,
    contenders: [(Runner, &str, Job); 2],
    asked: Condition,
    site: &Site,
) -> Result<Contest, Failure> {
    let pin = pin()?;
    let contenders = contenders.into_iter();
    let contenders =
        contenders.map(|(runner, name, job)| runner.contender(name, &pin, job, "true", site));
    Ok(Contest::new(
        format!("{what}, {WORDS}, {DEVICE}"),
        Unit::Reads,
        contenders.collect::<Result<_, Failure>>()?,
        Requirement::of_best(asked),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::site::fake;
    use super::*;

    #[test]
    fn the_first_processor_is_taken_only_where_it_is_the_only_one() {
        let choice = |cpus: &[usize]| {
            let mut set = CpuSet::new();
            cpus.iter().for_each(|&cpu| set.set(cpu));
            super::choice(&set)
        };
        assert_eq!(choice(&[0, 1, 2]), 1);
        assert_eq!(choice(&[0, 5]), 5);
        assert_eq!(choice(&[0]), 0);
    }

    #[test]
    fn both_run_on_one_core_and_the_line_compares_them() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 1000, 4096);
        let measured = random_read(&site).expect("scripts").measure(&site).expect("scripts");
        let table = &measured.table;
        assert!(table.contains("\n| `wrote run` | 2.00 (2.00–2.00) |"), "{table}");
        assert!(table.contains("\n| fio | 1.00 (1.00–1.00) |"), "{table}");
        assert!(table.contains("| **2.00** (2.00–2.00) |"), "{table}");
        assert!(table.ends_with("| ≥ 1.50, met |"), "{table}");
        let expected = format!("{}fio ", pin().expect("a processor"));
        assert!(measured.commands[1].starts_with(&expected), "{:?}", measured.commands);
    }

    #[test]
    fn the_job_is_bound_by_time_on_the_device() {
        let text = job().text();
        assert!(text.contains("\nfilename=/dev/zram0\n"), "{text}");
        assert!(text.contains("\nruntime=3\n"), "{text}");
    }

    #[test]
    fn the_same_job_runs_with_and_without_latencies_by_wrote_alone() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 1000, 4096);
        let table = instrument(&site).expect("scripts").measure(&site).expect("scripts").table;
        assert!(table.contains("\n| `wrote run`, gtod_reduce=1 | 2.00 (2.00–2.00) |"), "{table}");
        assert!(table.ends_with("| ≥ 0.95, met |"), "{table}");
        let calls = fake::calls(&site);
        assert!(calls.iter().any(|call| call.contains("random-read-untimed.fio")), "{calls:?}");
        assert!(!calls.iter().any(|call| call.starts_with("fio ")), "{calls:?}");
    }

    #[test]
    fn nothing_but_the_clock_tells_the_jobs_apart() {
        let [timed, untimed] = timed_and_untimed().map(|job| job.text());
        assert_eq!(untimed.replace("gtod_reduce=1\n", ""), timed);
        assert_ne!(untimed, timed);
    }
}
