//! The rows of job files: streams of 512 KiB x 64 in fixed buffers, and random reads of 4 KiB x 64
//! by one core from a device in memory, which measure the program and the kernel.

use super::contest::{Comparison, Contender, Contest, Requirement};
use super::copy::drop_cache;
use super::figures::Condition;
use super::job::{self, Job, Runner, Size, check_fallbacks, peak};
use super::outcome::{Outcome, Unit};
use super::rows::Row;
use super::site::Site;
use super::t_io_uring;
use crate::zram::{DEVICE, SIZE_BYTES};
use lab::tools::failure::{Failure, Tried};
use rustix::thread::{CpuSet, sched_getaffinity};

/// The length of the streams by default.
const STREAM_GIB: u64 = 2;
const RUNTIME_S: u32 = 3;
/// The random reads, in words.
const READS: &str = "random read, 4 KiB x 64, one core";
const READ_BYTES: u64 = 4096;
/// Reads in flight, of the rows that are held against the leanest reader.
const LEAN_IODEPTH: u32 = 128;
/// Instructions in user space that a read may take by `wrote run`, and by an engine alone.
const INSTRUCTIONS_MAX: [f64; 2] = [350.0, 200.0];
/// Reads of the short run in which instructions are counted; the long one has three times as many.
const COUNTED_READS: u64 = 16_384;
/// Counts differ by a percent or two: a median of more rounds says no more.
const COUNT_ROUNDS_MAX: u32 = 3;
/// The file that is read without a device in memory.
const FILE: &str = "instructions";
const FILE_BYTES: u64 = 64 << 20;

/// Compares the streams of a row.
pub fn streams(row: Row, site: &Site) -> Result<Contest, Failure> {
    let size = site.size(STREAM_GIB);
    let (job, words) = stream_job(row, site.has_poll_queues, &size);
    let prepare = if is_read(row) { "" } else { "rm -f testfile" };
    if is_read(row) {
        let lay = peak("peak-lay", "write", false, false, &size.text);
        site.write(&lay)?;
        site.run(&Runner::Fio.command("", &lay))?;
        site.run(&drop_cache("testfile"))?;
    }
    let mut requirements = Requirement::of_best(Condition::AtLeast(1.0));
    if row == Row::PeakWrite {
        requirements.extend(Requirement::of_each(Comparison::Cpu, &[Condition::AtMost(0.7)]));
    }
    let contender =
        |runner: Runner| runner.contender(runner.program(), "", job.clone(), prepare, site);
    let contenders = vec![contender(Runner::Wrote)?, contender(Runner::Fio)?];
    Ok(Contest::new(format!("job file, {words}"), Unit::Stream, contenders, requirements))
}

fn is_read(row: Row) -> bool {
    matches!(row, Row::PeakRead | Row::PeakReadSqpoll)
}

/// Makes the job of a row of streams, and its words. Without poll queues the kernel cannot poll for
/// completions, and it polls for submissions only in the rows named after that.
fn stream_job(row: Row, has_poll_queues: bool, size: &Size) -> (Job, String) {
    let [name, _] = row.words();
    let (rw, blocks) = if is_read(row) { ("read", "written") } else { ("write", "allocated") };
    let is_sqpoll = matches!(row, Row::PeakWriteSqpoll | Row::PeakReadSqpoll);
    let (hipri, sqthread_poll) = (has_poll_queues && !is_sqpoll, has_poll_queues || is_sqpoll);
    let polling = match (hipri, sqthread_poll) {
        (true, _) => ", polled",
        (false, true) => ", sqthread_poll",
        (false, false) => "",
    };
    let size = &size.text;
    let words = format!("{rw}, {size}, direct 512 KiB x 64, fixedbufs{polling}; blocks {blocks}");
    (peak(&name, rw, hipri, sqthread_poll, size), words)
}

/// Compares wrote's random reads with fio's.
pub fn random_read(site: &Site) -> Result<Contest, Failure> {
    let contenders =
        [Runner::Wrote, Runner::Fio].map(|runner| (runner, runner.program(), read_job()));
    reads("job file", contenders, Condition::AtLeast(1.5), site)
}

/// Compares wrote with latencies and without: the cost of the instrument, where the program has the
/// largest part in the figures.
pub fn instrument(site: &Site) -> Result<Contest, Failure> {
    let [timed, untimed] = timed_and_untimed();
    let contenders = [
        (Runner::Wrote, "`wrote run`", timed),
        (Runner::Wrote, "`wrote run`, gtod_reduce=1", untimed),
    ];
    reads("with latencies", contenders, Condition::AtLeast(0.95), site)
}

fn reads(
    what: &str,
    contenders: [(Runner, &str, Job); 2],
    asked: Condition,
    site: &Site,
) -> Result<Contest, Failure> {
    let pin = pin()?;
    let contender =
        |(runner, name, job): (Runner, _, _)| runner.contender(name, &pin, job, "", site);
    Ok(Contest::new(
        format!("{what}, {READS}, {DEVICE}"),
        Unit::Reads,
        contenders.into_iter().map(contender).collect::<Result<_, Failure>>()?,
        Requirement::of_best(asked),
    ))
}

fn read_job() -> Job {
    job::random_read("random-read", DEVICE, SIZE_BYTES).for_seconds(RUNTIME_S)
}

/// Makes the job with latencies, and without them by fio's `gtod_reduce`.
fn timed_and_untimed() -> [Job; 2] {
    let job = |name| read_job().named(name);
    [job("random-read-timed"), job("random-read-untimed").with("gtod_reduce=1")]
}

/// Returns the words that pin a program to one processor.
fn pin() -> Result<String, Failure> {
    let allowed = sched_getaffinity(None).tried("sched_getaffinity")?;
    Ok(format!("taskset -c {} ", choice(&allowed)))
}

/// Returns the second processor where the process may use it: most interrupts go to the first.
fn choice(allowed: &CpuSet) -> usize {
    let all = || (0..CpuSet::MAX_CPU).filter(|&cpu| allowed.is_set(cpu));
    all().find(|&cpu| cpu > 0).or_else(|| all().next()).unwrap_or(0)
}

/// A program that counts instructions in user space.
#[derive(Clone, Copy)]
struct Counter {
    name: &'static str,
    /// The words that have it run a program.
    command: &'static str,
    /// Reads the count in stderr.
    read: fn(&str) -> Option<u64>,
}

/// The processor's own counter.
const PERF: Counter = Counter {
    name: "perf stat",
    command: "perf stat -x, -e instructions:u -- ",
    read: perf_instructions,
};

/// Valgrind, which emulates a processor: for virtual machines without counters.
const CALLGRIND: Counter = Counter {
    name: "callgrind",
    command: "valgrind --tool=callgrind --callgrind-out-file=/dev/null ",
    read: callgrind_instructions,
};

impl Counter {
    /// Returns that which works here.
    fn of(site: &Site) -> Counter {
        let perf = site.run(&format!("{}true", PERF.command));
        let has_perf = perf.is_ok_and(|counted| perf_instructions(&counted.stderr).is_some());
        if has_perf { PERF } else { CALLGRIND }
    }

    /// Adds the count in `stderr` to an outcome.
    fn add(self, outcome: Outcome, stderr: &str) -> Result<Outcome, Failure> {
        let instructions = (self.read)(stderr);
        let nothing = || Failure::Failed(format!("{} counted nothing", self.name));
        Ok(Outcome { instructions: Some(instructions.ok_or_else(nothing)?), ..outcome })
    }
}

/// Compares wrote's random reads with those of fio's `t/io_uring`, 128 in flight.
pub fn read_limit(site: &Site) -> Result<Contest, Failure> {
    let pin = pin()?;
    let job = lean_job("read-limit").for_seconds(RUNTIME_S);
    let wrote = Runner::Wrote.contender("`wrote run`", &pin, job, "", site)?;
    Ok(Contest::new(
        format!("random read, 4 KiB x {LEAN_IODEPTH}, one core, {DEVICE}"),
        Unit::Reads,
        vec![wrote, t_io_uring::contender(&pin, DEVICE)],
        Requirement::of_best(Condition::AtLeast(1.0)),
    ))
}

fn lean_job(name: &str) -> Job {
    job::random_reads_of(name, DEVICE, SIZE_BYTES, LEAN_IODEPTH)
}

/// Compares the instructions in user space that one small random read takes: the difference between
/// a long and a short run, divided by the reads between them. The cost of the start cancels out.
pub fn instructions(site: &Site) -> Result<Contest, Failure> {
    let counter = Counter::of(site);
    let is_zram = site.zram.is_some();
    if !is_zram {
        site.run(&format!("head -c {FILE_BYTES} /dev/urandom > {FILE} && sync {FILE}"))?;
    }
    let job = counted_job(is_zram);
    let under = format!("{}{}", pin()?, counter.command);
    check_fallbacks(&under, &job.for_bytes(READ_BYTES).named("start-up"), site)?;
    let contender = |runner| counted(runner, &job, counter, &under, site);
    let place = if is_zram { DEVICE } else { "a file of 64 MiB" };
    Ok(Contest {
        rounds_max: COUNT_ROUNDS_MAX,
        ..Contest::new(
            format!("job file, {READS}, {place}, by {}", counter.name),
            Unit::Instructions,
            vec![contender(Runner::Wrote)?, contender(Runner::Fio)?],
            Requirement::of_each(Comparison::Rate, &[Condition::AtMost(0.5)]),
        )
    })
}

/// Counts the instructions that one read of `read_limit` takes by `wrote run`, and by an engine
/// alone.
pub fn read_instructions(site: &Site) -> Result<Vec<Contest>, Failure> {
    let counter = Counter::of(site);
    let under = format!("{}{}", pin()?, counter.command);
    let job = lean_job("read-instructions");
    let line = |reads: u64| format!("{under}trial reads --reads {reads} {DEVICE}");
    let longer = line(3 * COUNTED_READS);
    let count = move |line: &str, site: &Site| {
        let finished = site.run(line)?;
        let outcome = Outcome::of_line(&finished.stdout, line)?;
        counter.add(outcome, &finished.stderr)
    };
    let run = move |site: &Site, line: &str| {
        difference("trial", count(line, site)?, count(&longer, site)?)
    };
    let engine = Contender::new("`Engine`", line(COUNTED_READS), run);
    let contenders = [counted(Runner::Wrote, &job, counter, &under, site)?, engine];
    let contest = |(contender, most)| Contest {
        rounds_max: COUNT_ROUNDS_MAX,
        ..Contest::new(
            format!("random read, 4 KiB x {LEAN_IODEPTH}, {DEVICE}, by {}", counter.name),
            Unit::Instructions,
            vec![contender],
            vec![Requirement {
                of: Comparison::Own,
                asked: Condition::AtMost(most),
                contender: Some(0),
            }],
        )
    };
    Ok(contenders.into_iter().zip(INSTRUCTIONS_MAX).map(contest).collect())
}

/// Makes a contender that runs `job` twice by `runner`, and counts the instructions between.
fn counted(
    runner: Runner,
    job: &Job,
    counter: Counter,
    under: &str,
    site: &Site,
) -> Result<Contender, Failure> {
    let short = job.for_bytes(COUNTED_READS * READ_BYTES);
    let long = job.named(&format!("{}-long", job.name)).for_bytes(3 * COUNTED_READS * READ_BYTES);
    site.write(&short)?;
    site.write(&long)?;
    let longer = runner.command(under, &long);
    let count = move |job: &Job, line: &str, site: &Site| {
        let finished = site.run(line)?;
        counter.add(job.outcome(runner, &finished.stdout)?, &finished.stderr)
    };
    let (shown, command) = (Some(short.clone()), runner.command(under, &short));
    let run = move |site: &Site, line: &str| {
        let (short, long) = (count(&short, line, site)?, count(&long, &longer, site)?);
        difference(runner.name(), short, long)
    };
    Ok(Contender { job: shown, ..Contender::new(runner.program(), command, run) })
}

/// Makes the job. It is one process also with fio, because valgrind counts each process.
fn counted_job(is_zram: bool) -> Job {
    let (filename, bytes) = if is_zram { (DEVICE, SIZE_BYTES) } else { (FILE, FILE_BYTES) };
    job::random_read("instructions", filename, bytes).with("thread=1")
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

/// Reads the count in "12345,,instructions:u,…" of `perf stat -x,`; `None` without one.
fn perf_instructions(stderr: &str) -> Option<u64> {
    let (before, _) = stderr.split_once(",,instructions:u,")?;
    before.rsplit(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
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
    use super::super::site::fake;
    use super::*;

    #[test]
    fn completions_are_polled_for_only_where_the_device_has_queues_for_it() {
        let text = |row, queues| stream_job(row, queues, &Size::gib(2)).0.text();
        for row in [Row::PeakWrite, Row::PeakRead] {
            assert!(text(row, false).contains("\nhipri=0\n"));
            assert!(text(row, false).contains("\nsqthread_poll=0\n"));
            assert!(text(row, true).contains("\nhipri=1\n"));
            assert!(text(row, true).contains("\nsqthread_poll=1\n"));
        }
        for row in [Row::PeakWriteSqpoll, Row::PeakReadSqpoll] {
            assert!(text(row, true).contains("\nhipri=0\n"));
            assert!(text(row, false).contains("\nsqthread_poll=1\n"));
        }
    }

    #[test]
    fn both_write_a_new_file_each_time_and_the_line_compares_them() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 8, 512 << 10);
        let contest = streams(Row::PeakWrite, &site).expect("scripts");
        let table = contest.measure(&site).expect("scripts").table;
        let head =
            "| job file, write, 4m, direct 512 KiB x 64, fixedbufs; blocks allocated | MB/s |";
        assert!(table.starts_with(head), "{table}");
        assert!(table.contains("\n| `wrote run` | 8.39 (8.39–8.39) | "), "{table}");
        assert!(table.contains("\n| fio | 4.19 (4.19–4.19) | "), "{table}");
        assert!(table.contains("| **2.00** (2.00–2.00) | "), "{table}");
        assert!(table.contains("| ≥ 1.00, met; CPU ≤ 0.70, "), "{table}");
    }

    #[test]
    fn a_program_that_writes_too_little_is_found_out() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let site = fake::site(folder.path(), 7, 512 << 10);
        let contest = streams(Row::PeakWrite, &site).expect("scripts");
        let failed = contest.measure(&site).expect_err("too little");
        assert_eq!(failed.to_string(), "wrote: 3670016 bytes, not 4194304");
    }

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
        let text = read_job().text();
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

    #[test]
    fn what_a_program_does_once_cancels_out() {
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
        let text = |is_zram| counted_job(is_zram).for_bytes(COUNTED_READS * READ_BYTES).text();
        assert!(text(true).contains("\nthread=1\nio_size=67108864\n"), "{}", text(true));
        assert!(text(true).contains("\nfilename=/dev/zram0\n"), "{}", text(true));
        assert!(text(false).contains("\nfilename=instructions\n"), "{}", text(false));
    }
}
