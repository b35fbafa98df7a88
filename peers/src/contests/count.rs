//! Counts instructions in user space by callgrind, which needs no counter of the processor: the
//! difference between a long and a short run, divided by the additional reads. The start's cost
//! cancels out.

use super::contest::Contender;
use super::job::{Job, Runner, check_fallbacks};
use super::outcome::Outcome;
use super::site::Site;
use lab::tools::failure::{Failure, Tried};
use rustix::thread::{CpuSet, sched_getaffinity};

/// Reads of the short run; the long one has three times as many.
const READS: u64 = 16_384;
const READ_BYTES: u64 = 4096;

/// Returns the words that pin a program to one processor.
pub fn pin() -> Result<String, Failure> {
    let allowed = sched_getaffinity(None).tried("sched_getaffinity")?;
    Ok(format!("taskset -c {} ", choice(&allowed)))
}

/// Returns the second processor if the process may use it, because most interrupts go to the first.
fn choice(allowed: &CpuSet) -> usize {
    let all = || (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    all().find(|&cpu| cpu > 0).or_else(|| all().next()).unwrap_or(0)
}

/// Adds callgrind's count in `stderr` to an outcome.
fn add(outcome: Outcome, stderr: &str) -> Result<Outcome, Failure> {
    let instructions = instructions(stderr);
    let nothing = || Failure::Failed("callgrind counted nothing".to_owned());
    Ok(Outcome { instructions: Some(instructions.ok_or_else(nothing)?), ..outcome })
}

/// Makes a contender that runs `job` twice by `runner`, and counts the instructions between.
pub fn counted(
    name: &str,
    runner: Runner,
    job: &Job,
    under: &str,
    site: &Site,
) -> Result<Contender, Failure> {
    if runner == Runner::Wrote {
        check_fallbacks(under, &job.for_bytes(READ_BYTES).named("start-up"), site)?;
    }
    let short = job.for_bytes(READS * READ_BYTES);
    let long = job.named(&format!("{}-long", job.name)).for_bytes(3 * READS * READ_BYTES);
    site.write(&short)?;
    site.write(&long)?;
    let longer = runner.command(under, &long);
    let count = move |job: &Job, line: &str, site: &Site| {
        let finished = site.run(line)?;
        add(job.outcome(runner, &finished.stdout)?, &finished.stderr)
    };
    let (shown, command) = (Some(short.clone()), runner.command(under, &short));
    let run = move |site: &Site, line: &str| {
        let (short, long) = (count(&short, line, site)?, count(&long, &longer, site)?);
        difference(runner.name(), short, long)
    };
    Ok(Contender { job: shown, ..Contender::new(name, command, run) })
}

/// Subtracts the short run of `name` from the long one, which must have more of both counts.
fn difference(name: &str, short: Outcome, long: Outcome) -> Result<Outcome, Failure> {
    let between = |long: u64, short: u64| long.checked_sub(short).filter(|&n| n > 0);
    let instructions = long.instructions.zip(short.instructions);
    let instructions = instructions.and_then(|(long, short)| between(long, short));
    match (instructions, between(long.operations, short.operations)) {
        (Some(_), Some(operations)) => Ok(Outcome { instructions, operations, ..long }),
        _ => Err(Failure::Failed(format!("{name}: no difference: {short:?}, {long:?}"))),
    }
}

/// Adds up callgrind's lines "==123== Collected : 12345", one for each process.
fn instructions(stderr: &str) -> Option<u64> {
    let counts = stderr.lines().filter_map(|line| line.split_once("== Collected : "));
    counts
        .map(|(_, count)| count.trim().parse::<u64>().ok())
        .sum::<Option<u64>>()
        .filter(|&n| n > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contests::outcome::Unit;

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
    fn work_done_once_by_a_program_cancels_out() {
        let count = |instructions: u64, operations: u64| Outcome {
            instructions: Some(instructions),
            operations,
            ..Outcome::default()
        };
        let short = count(90_000_000 + 2700 * 16_384, 16_384);
        let long = count(90_000_000 + 2700 * 49_152, 49_152);
        let between = difference("fio", short, long).expect("a difference");
        assert_eq!(Unit::Instructions.rate(&between), 2700.0);
        assert!(difference("fio", long, short).is_err());
        assert!(difference("fio", short, short).is_err());
    }

    #[test]
    fn callgrinds_count_is_the_sum_of_all_processes() {
        let stderr = "==11317== Events    : Ir\n==11317== Collected : 95297696\n==11317==\n\
                      ==11317== I   refs:      95,297,696\n==11318== Collected : 4\n";
        assert_eq!(instructions(stderr), Some(95_297_700));
        assert_eq!(instructions("==1== Command: fio\n"), None);
    }
}
