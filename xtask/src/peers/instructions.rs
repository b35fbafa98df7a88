//! Instructions in user space that one small random read takes: the difference between a long and
//! a short run, divided by the reads between them, so that what a program does once cancels out.

use super::job::{Job, RANDOM_BYTES, random_read};
use super::programs::{Programs, Ran, Setting, Side};
use super::random_read::pin;
use super::ratio::Asked;
use super::table::Counted;
use super::turn::in_turn;
use crate::failure::{Failure, Tried};
use crate::run::{Show, run as run_command};
use crate::zram;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Reads of the short run; the long one has three times as many.
const READS: u64 = 16_384;
/// Counts differ by a percent or two: a median of many says no more.
const MOST_PAIRS: u32 = 3;
/// The file that is read where there is no device for it.
const FILE_BYTES: u64 = 64 << 20;
const PERF_RESULT: &str = "perf.csv";

/// Who counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counter {
    /// The processor's own counter.
    Perf,
    /// Valgrind, which runs the program on a processor of its own making: for virtual machines that
    /// show no counters.
    Callgrind,
}

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// `/dev/zram0`, which the caller has.
    Zram,
    /// A small file in the current folder.
    File,
}

/// Instructions and reads of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Count {
    instructions: u64,
    operations: u64,
}

/// Counts on `place`, at most `pairs` times in turn, with the current folder `folder`.
pub fn count(
    programs: &Programs,
    place: Place,
    folder: &Path,
    pairs: u32,
) -> Result<Counted, Failure> {
    let counter = Counter::here();
    let _file = (place == Place::File).then(|| File::new(folder)).transpose()?;
    let under = under(counter)?;
    let setting = Setting { folder, under: &under };
    programs.check_fallbacks(&job(place), RANDOM_BYTES, setting)?;
    let mut counted = Counted {
        what: place.what(),
        by: counter.name(),
        asked: Asked::AtMost(0.5),
        pairs: vec![],
    };
    let measure = |side: Side| {
        let run = |reads| -> Result<Count, Failure> {
            let ran = programs.run(side, &job(place).for_bytes(reads * RANDOM_BYTES), setting)?;
            let instructions = counter.instructions(&ran, folder)?;
            ran.check_operations(side, RANDOM_BYTES)?;
            Ok(Count { instructions, operations: ran.output.operations })
        };
        let (short, long) = (run(READS)?, run(3 * READS)?);
        let name = side.name();
        per_read(short, long)
            .ok_or_else(|| Failure::Failed(format!("{name}: no difference: {short:?}, {long:?}")))
    };
    in_turn(
        pairs.min(MOST_PAIRS),
        || measure(Side::Wrote),
        || measure(Side::Fio),
        |ours, theirs| {
            eprintln!("{}: wrote {ours:.0}, fio {theirs:.0} instructions a read", place.what());
            counted.pairs.push((ours, theirs));
        },
    )?;
    Ok(counted)
}

/// The commands as one would type them.
pub fn describe(place: Place) -> Result<[String; 2], Failure> {
    let under = under(Counter::here())?;
    Ok([Side::Wrote, Side::Fio].map(|side| side.describe(&describe_job(place), &under)))
}

/// The job file of the short run.
pub fn describe_job(place: Place) -> Job {
    job(place).for_bytes(READS * RANDOM_BYTES)
}

/// One process, also with fio: valgrind counts each for itself.
fn job(place: Place) -> Job {
    let (filename, size_bytes) = match place {
        Place::Zram => (zram::DEVICE, zram::SIZE_BYTES),
        Place::File => (FILE, FILE_BYTES),
    };
    random_read("instructions", filename, &size_bytes.to_string()).with("thread", "1")
}

/// Instructions per read between two runs; `None` unless the longer one has more of both.
fn per_read(short: Count, long: Count) -> Option<f64> {
    let instructions = long.instructions.checked_sub(short.instructions)?;
    let operations = long.operations.checked_sub(short.operations)?;
    (instructions > 0 && operations > 0).then(|| instructions as f64 / operations as f64)
}

fn under(counter: Counter) -> Result<Vec<String>, Failure> {
    let mut words = pin()?;
    words.extend(counter.command().into_iter().map(str::to_owned));
    Ok(words)
}

impl Place {
    fn what(self) -> String {
        let place = match self {
            Place::Zram => zram::DEVICE,
            Place::File => "a file of 64 MiB",
        };
        format!("job file, random read, 4 KiB x 64, one core, {place}")
    }
}

impl Counter {
    /// perf where it counts here, else valgrind.
    fn here() -> Counter {
        let mut perf = Command::new("perf");
        perf.args(["stat", "-x,", "-e", "instructions:u", "--", "true"]);
        let said = run_command(&mut perf, Duration::from_secs(20), Show::Quiet);
        match said.ok().and_then(|finished| perf_instructions(&finished.stderr)) {
            Some(_) => Counter::Perf,
            None => Counter::Callgrind,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Counter::Perf => "perf stat",
            Counter::Callgrind => "callgrind",
        }
    }

    fn command(self) -> Vec<&'static str> {
        match self {
            Counter::Perf => {
                vec!["perf", "stat", "-x,", "-e", "instructions:u", "-o", PERF_RESULT, "--"]
            }
            Counter::Callgrind => {
                vec!["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
            }
        }
    }

    /// What it counted in a run with the current folder `folder`.
    fn instructions(self, ran: &Ran, folder: &Path) -> Result<u64, Failure> {
        let count = match self {
            Counter::Callgrind => callgrind_instructions(&ran.stderr),
            Counter::Perf => {
                let path = folder.join(PERF_RESULT);
                perf_instructions(&std::fs::read_to_string(&path).tried(path.display())?)
            }
        };
        count.ok_or_else(|| Failure::Failed(format!("{} counted nothing", self.name())))
    }
}

/// The count in `perf stat -x,`'s lines "12345,,instructions:u,…"; `None` where it was not counted.
fn perf_instructions(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.contains(",instructions:u,"))?;
    line.split(',').next()?.parse().ok()
}

/// The sum of callgrind's lines "==123== Collected : 12345", one for each process.
fn callgrind_instructions(stderr: &str) -> Option<u64> {
    let counts = stderr.lines().filter_map(|line| line.split_once("== Collected : "));
    counts
        .map(|(_, count)| count.trim().parse::<u64>().ok())
        .sum::<Option<u64>>()
        .filter(|&n| n > 0)
}

const FILE: &str = "instructions";

/// The small file; removed when dropped.
struct File<'a>(&'a Path);

impl File<'_> {
    fn new(folder: &Path) -> Result<File<'_>, Failure> {
        let file = File(folder);
        let path = folder.join(FILE);
        let write = || -> std::io::Result<()> {
            let random = std::fs::File::open("/dev/urandom")?;
            let mut written = std::fs::File::create_new(&path)?;
            std::io::copy(&mut std::io::Read::take(random, FILE_BYTES), &mut written)?;
            written.flush()?;
            written.sync_all()
        };
        write().tried(path.display())?;
        Ok(file)
    }
}

impl Drop for File<'_> {
    fn drop(&mut self) {
        // It is in a folder that is removed with all that is left in it.
        let _ = std::fs::remove_file(self.0.join(FILE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_does_once_cancels_out() {
        let count = |instructions, operations| Count { instructions, operations };
        let short = count(90_000_000 + 2700 * 16_384, 16_384);
        let long = count(90_000_000 + 2700 * 49_152, 49_152);
        assert_eq!(per_read(short, long), Some(2700.0));
        assert_eq!(per_read(long, short), None);
        assert_eq!(per_read(short, short), None);
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
        let text = describe_job(Place::Zram).text();
        assert!(text.contains("\nthread=1\nio_size=67108864\n"), "{text}");
        assert!(text.contains("\nfilename=/dev/zram0\n"), "{text}");
        let text = describe_job(Place::File).text();
        assert!(text.contains("\nfilename=instructions\n"), "{text}");
    }
}
