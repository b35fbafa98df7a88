//! Instructions in user space that one small random read takes: the difference between a long and
//! a short run, divided by the reads between them. The cost of the start cancels out.

use super::contest::{Comparison, Contender, Contest, Requirement};
use super::figures::Condition;
use super::job::{Job, Runner, check_fallbacks, random_read};
use super::outcome::{Outcome, Unit};
use super::reads::{WORDS, pin};
use super::site::Site;
use crate::failure::{Failure, Tried};
use crate::run::Finished;
use crate::zram;

const READ_BYTES: u64 = 4096;
/// Reads of the short run; the long one has three times as many.
const READS: u64 = 16_384;
/// Counts differ by a percent or two: a median of more rounds says no more.
const ROUNDS_MAX: u32 = 3;
/// The file that is read without a device in memory.
const FILE: &str = "instructions";
const FILE_BYTES: u64 = 64 << 20;
const PERF_RESULT: &str = "perf.csv";

/// A program that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counter {
    /// The processor's own counter.
    Perf,
    /// Valgrind, which emulates a processor: for virtual machines without counters.
    Callgrind,
}

/// Makes the contest.
pub fn contest(site: &Site) -> Result<Contest, Failure> {
    let counter = if count_by_perf(site).is_ok() { Counter::Perf } else { Counter::Callgrind };
    let is_zram = site.zram.is_some();
    if !is_zram {
        site.run(&format!("head -c {FILE_BYTES} /dev/urandom > {FILE} && sync {FILE}"))?;
    }
    let (short, long) = (job(is_zram).for_bytes(READS * READ_BYTES), job(is_zram).named("long"));
    let long = long.for_bytes(3 * READS * READ_BYTES);
    let under = format!("{}{}", pin()?, counter.command());
    check_fallbacks(&under, &job(is_zram).for_bytes(READ_BYTES).named("start-up"), site)?;
    site.write(&short)?;
    site.write(&long)?;
    let contender = |runner: Runner| {
        let jobs = [short.clone(), long.clone()];
        let commands = [&short, &long].map(|job| runner.command(&under, job));
        let command = commands[0].clone();
        let run = move |site: &Site| {
            let count = |number: usize| -> Result<Outcome, Failure> {
                let finished = site.run(&commands[number])?;
                let outcome = jobs[number].outcome(runner, &finished.stdout)?;
                Ok(Outcome { instructions: Some(counter.count(&finished, site)?), ..outcome })
            };
            let (short, long) = (count(0)?, count(1)?);
            difference(short, long).ok_or_else(|| {
                let name = runner.name();
                Failure::Failed(format!("{name}: no difference: {short:?}, {long:?}"))
            })
        };
        Contender { job: Some(short.clone()), ..Contender::new(runner.program(), command, run) }
    };
    let place = if is_zram { zram::DEVICE } else { "a file of 64 MiB" };
    Ok(Contest {
        rounds_max: ROUNDS_MAX,
        ..Contest::new(
            format!("job file, {WORDS}, {place}, by {}", counter.name()),
            Unit::Instructions,
            vec![contender(Runner::Wrote), contender(Runner::Fio)],
            Requirement::of_each(Comparison::Rate, &[Condition::AtMost(0.5)]),
        )
    })
}

/// Makes the job. It is one process also with fio, because valgrind counts each process.
fn job(is_zram: bool) -> Job {
    let (filename, size_bytes) =
        if is_zram { (zram::DEVICE, zram::SIZE_BYTES) } else { (FILE, FILE_BYTES) };
    random_read("instructions", filename, size_bytes).with("thread=1")
}

/// Subtracts the short run from the long one; `None` unless the long run has more of both counts.
fn difference(short: Outcome, long: Outcome) -> Option<Outcome> {
    let instructions = long.instructions?.checked_sub(short.instructions?).filter(|&n| n > 0)?;
    let operations = long.operations.checked_sub(short.operations).filter(|&n| n > 0)?;
    Some(Outcome { instructions: Some(instructions), operations, ..long })
}

/// Fails where perf has no counter.
fn count_by_perf(site: &Site) -> Result<u64, Failure> {
    let finished = site.run(&format!("{}true", Counter::Perf.command()))?;
    Counter::Perf.count(&finished, site)
}

impl Counter {
    fn name(self) -> &'static str {
        if self == Counter::Perf { "perf stat" } else { "callgrind" }
    }

    /// Returns the words that have the counter run a program.
    fn command(self) -> String {
        match self {
            Counter::Perf => format!("perf stat -x, -e instructions:u -o {PERF_RESULT} -- "),
            Counter::Callgrind => {
                "valgrind --tool=callgrind --callgrind-out-file=/dev/null ".to_owned()
            }
        }
    }

    /// Reads the count of a run.
    fn count(self, finished: &Finished, site: &Site) -> Result<u64, Failure> {
        let count = match self {
            Counter::Callgrind => callgrind_instructions(&finished.stderr),
            Counter::Perf => {
                let path = site.folder.join(PERF_RESULT);
                perf_instructions(&std::fs::read_to_string(&path).tried(path.display())?)
            }
        };
        count.ok_or_else(|| Failure::Failed(format!("{} counted nothing", self.name())))
    }
}

/// Reads the count in the line "12345,,instructions:u,…" of `perf stat -x,`; `None` without one.
fn perf_instructions(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains(",instructions:u,"))?;
    line.split(',').next()?.parse().ok()
}

/// Adds up callgrind's lines "==123== Collected : 12345", one for each process.
fn callgrind_instructions(stderr: &str) -> Option<u64> {
    let counts = stderr.lines().filter_map(|line| line.split_once("== Collected : "));
    counts
        .map(|(_, count)| count.trim().parse::<u64>().ok())
        .sum::<Option<u64>>()
        .filter(|&n| n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_does_once_cancels_out() {
        let count = |instructions: u64, operations: u64| Outcome {
            instructions: Some(instructions),
            operations,
            ..Outcome::default()
        };
        let short = count(90_000_000 + 2700 * 16_384, 16_384);
        let long = count(90_000_000 + 2700 * 49_152, 49_152);
        let between = difference(short, long).expect("a difference");
        assert_eq!(Unit::Instructions.rate(&between), 2700.0);
        assert_eq!(difference(long, short), None);
        assert_eq!(difference(short, short), None);
    }

    #[test]
    fn callgrinds_count_is_the_sum_of_all_processes() {
        let stderr = "==11317== Events    : Ir\n==11317== Collected : 95297696\n==11317==\n\
                      ==11317== I   refs:      95,297,696\n==11318== Collected : 4\n";
        assert_eq!(callgrind_instructions(stderr), Some(95_297_700));
        assert_eq!(callgrind_instructions("==1== Command: fio\n"), None);
    }

    #[test]
    fn perfs_count_is_read_where_there_is_one() {
        let counted = "# started on Sat Nov 21 16:31:54 2026\n\n\
                       123456,,instructions:u,1000000,100.00,,\n";
        assert_eq!(perf_instructions(counted), Some(123_456));
        assert_eq!(perf_instructions("<not supported>,,instructions:u,0,100.00,,\n"), None);
    }

    #[test]
    fn the_job_is_one_process_and_bound_by_reads() {
        let text = |is_zram| job(is_zram).for_bytes(READS * READ_BYTES).text();
        assert!(text(true).contains("\nthread=1\nio_size=67108864\n"), "{}", text(true));
        assert!(text(true).contains("\nfilename=/dev/zram0\n"), "{}", text(true));
        assert!(text(false).contains("\nfilename=instructions\n"), "{}", text(false));
    }
}
