//! Runs a program once: starts it, watches it, and kills it if it hangs or the user stops the run.

use super::answer;
use super::build::BuiltProgram;
use super::workload::Table;
use crate::child::{End, Limits, Outcome, complaint, shown, supervise};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use wrote_jobs::machine::usage;
use wrote_result::{Error, Stop, units};

/// The maximum number of bytes of standard error to keep, from its end.
const STDERR_BYTES_MAX: usize = 16 << 10;
/// The maximum excess of a program's files over the expected size, in bytes. Runtimes write small
/// files, too.
const EXCESS_BYTES_MAX: u64 = 64 << 20;

/// The output of a program that exited successfully, and the measurements that the program can't
/// make itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ProgramOutput {
    pub stdout: String,
    /// The time from the program's start to its termination.
    pub process_s: f64,
    pub max_rss_bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    pub table: &'a Table,
    /// The file that the program writes or reads.
    pub path: &'a Path,
    /// The working folder of the program, where runtimes leave crash reports.
    pub folder: &'a Path,
    pub timeout: Duration,
}

/// Runs a program. `Ok(Err(..))` is the program's failure, in one line: exit code, signal, message
/// on standard error, or time limit. No process of its group outlives this call.
///
/// The program inherits our environment, in which it finds its toolchain, except for the locale.
/// With `C.UTF-8`, texts and numbers are the same on every machine, and every language treats text
/// as UTF-8.
pub(super) fn run(
    built: &BuiltProgram,
    call: Call,
    stop: &Stop,
) -> Result<Result<ProgramOutput, String>, Error> {
    let Some((program, arguments)) = built.run.split_first() else {
        return Ok(Err("has no command to run".into()));
    };
    let mut command = Command::new(program);
    let Table { task, size, count, .. } = call.table;
    command
        .args(arguments)
        .arg(task.as_str())
        .arg(call.path)
        .args([size.to_string(), count.to_string()])
        .args(&built.arguments)
        .current_dir(call.folder)
        .env("LC_ALL", "C.UTF-8");
    let limits = Limits {
        timeout: call.timeout,
        stdout_bytes_max: answer::bytes_max(call.table),
        stderr_bytes_max: STDERR_BYTES_MAX,
        is_kept: true,
    };
    let file_bytes_max = call.table.content().len().saturating_add(EXCESS_BYTES_MAX);
    let (mut peak, mut looks, began) = (None, 0_u32, Instant::now());
    let mut look = |process: u32| {
        if looks == 0 {
            // The program has just started, so a reading of its usage may still show our process.
            limit_files(process, file_bytes_max);
        } else {
            // The peak never falls, so the last reading is the highest.
            let bytes = usage::peak_memory_bytes_of(process);
            peak = bytes.map(|bytes| (bytes, began.elapsed())).or(peak);
        }
        looks += 1;
    };
    let outcome = match supervise(&mut command, limits, stop, &mut look) {
        // This program can't be started, but others may be.
        Err(Error::Failed(because)) => return Ok(Err(because)),
        other => other?,
    };
    if let Some(because) = failure(&outcome, call.timeout) {
        return Ok(Err(because));
    }
    Ok(Ok(ProgramOutput {
        stdout: String::from_utf8_lossy(&outcome.stdout).into_owned(),
        process_s: outcome.elapsed_s,
        max_rss_bytes: peak.and_then(|(bytes, at)| in_time(bytes, at, outcome.elapsed_s)),
    }))
}

/// Limits the size of the program's files (`RLIMIT_FSIZE`, prlimit(2)), so that endless output does
/// not fill the disk. Processes that the program has already started are not affected.
fn limit_files(process: u32, bytes_max: u64) {
    let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) else { return };
    let Rlimit { current, maximum } = getrlimit(Resource::Fsize);
    let current = Some(current.map_or(bytes_max, |current| current.min(bytes_max)));
    let _ = prlimit(Some(process), Resource::Fsize, Rlimit { current, maximum });
}

/// Returns the memory peak if it was read in the second half of the program's lifetime; otherwise
/// `None`, because an earlier reading could miss the peak of a short-lived program.
fn in_time(peak_bytes: u64, seen_at: Duration, process_s: f64) -> Option<u64> {
    (seen_at.as_secs_f64() >= process_s / 2.0).then_some(peak_bytes)
}

fn failure(outcome: &Outcome, timeout: Duration) -> Option<String> {
    let End::Exited(status) = outcome.status else {
        let limit = units::seconds(timeout.as_secs_f64());
        return Some(format!("took longer than {limit} and was ended"));
    };
    let Some(failure) = outcome.status.failure() else {
        return printed_too_much(outcome);
    };
    let hint = match status.signal().and_then(Signal::from_named_raw) {
        Some(Signal::KILL) => ", as happens where memory is full",
        Some(Signal::XFSZ) => ": its file became far too long",
        _ => "",
    };
    let said = complaint(&outcome.stderr).map_or_else(String::new, |line| format!(": {line}"));
    Some(format!("{failure}{hint}{said}"))
}

fn printed_too_much(outcome: &Outcome) -> Option<String> {
    if outcome.stdout_total_bytes <= outcome.stdout.len() as u64 {
        return None;
    }
    let start = String::from_utf8_lossy(&outcome.stdout);
    Some(format!(
        "printed {}, which is not an answer: {}",
        units::bytes(outcome.stdout_total_bytes),
        shown(start.lines().next().unwrap_or_default(), answer::SHOWN_CHARS_MAX)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::langs::workload::Task;

    /// A time limit that no terminating program of these tests reaches, even on the busiest
    /// machine.
    const LONG: Duration = Duration::from_secs(100);

    fn shell(script: &str) -> BuiltProgram {
        let run = ["sh", "-c", script, "sh"].map(str::to_owned).to_vec();
        let arguments = vec!["variant".into()];
        BuiltProgram { run, arguments, folder: "/".into() }
    }

    fn ran(built: &BuiltProgram, timeout: Duration) -> Result<ProgramOutput, String> {
        let folder = tempfile::tempdir().unwrap();
        let table = Table { task: Task::Save, size: 500, count: 3, cold: false, in_time: false };
        let path = Path::new("/data/job-1.data");
        let call = Call { table: &table, path, folder: folder.path(), timeout };
        run(built, call, &Stop::new()).unwrap()
    }

    fn fails(script: &str) -> String {
        let because = ran(&shell(script), LONG).unwrap_err();
        assert_eq!(because.lines().count(), 1, "{because}");
        because
    }

    #[test]
    fn the_memory_of_a_program_that_was_seen_only_at_its_start_is_not_known() {
        assert_eq!(in_time(4096, Duration::from_millis(1), 0.004), None);
        assert_eq!(in_time(4096, Duration::from_millis(3), 0.004), Some(4096));
    }

    #[test]
    fn a_program_is_told_its_task_and_which_of_several_it_is_in_a_known_locale() {
        let ended = ran(&shell("echo \"$@\"; echo $LC_ALL; touch here; ls"), LONG).unwrap();
        assert_eq!(ended.stdout, "save /data/job-1.data 500 3 variant\nC.UTF-8\nhere\n");
        assert!(ended.process_s > 0.0);
    }

    #[test]
    fn the_memory_of_a_program_is_told() {
        let ended = ran(&shell("sleep 1"), LONG).unwrap();
        assert!(ended.max_rss_bytes.is_some_and(|bytes| bytes > 100_000), "{ended:?}");
    }

    #[test]
    fn a_program_that_crashes_is_told_of_with_its_code_or_signal_and_what_it_said() {
        assert_eq!(fails("exit 3"), "ended with exit code 3");
        assert_eq!(fails("echo a; echo no >&2; exit 3"), "ended with exit code 3: no");
        assert_eq!(fails("kill -SEGV $$"), "was ended by SIGSEGV");
        assert!(fails("kill -KILL $$").contains("memory is full"));
        assert_eq!(fails("kill -ABRT $$"), "was ended by SIGABRT");
        let with = |run: Vec<String>| BuiltProgram { run, ..shell("") };
        let missing = ran(&with(vec!["/no/such/program".into()]), LONG);
        assert!(missing.unwrap_err().contains("/no/such/program"));
        assert!(ran(&with(Vec::new()), LONG).is_err());
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        let hangs = ran(&shell("while :; do sleep 1; done"), Duration::from_secs(1));
        assert_eq!(hangs.unwrap_err(), "took longer than 1.00 s and was ended");
    }

    #[test]
    fn a_program_that_prints_without_end_is_bounded_and_told_of() {
        let because = fails("head -c 3000000 /dev/zero | tr '\\0' x");
        assert!(because.starts_with("printed 3.00 MB, which is not an answer: xxx"), "{because}");
    }

    #[test]
    fn a_file_that_becomes_far_too_long_is_the_programs_end() {
        // The program waits until the limit is set. Its file is a hole except for one byte.
        let limited = "trap : XFSZ; while test $(ulimit -f) = unlimited; do sleep 0.01; done; ";
        let script = "dd if=/dev/zero of=long bs=1 count=1 seek=200000000 2>/dev/null || exit 9";
        let because = fails(&format!("{limited}{script}"));
        assert!(because.starts_with("ended with exit code 9"), "{because}");
        // A file longer than requested, but within the limit.
        let script = "dd if=/dev/zero of=long bs=1 count=1 seek=10000000 2>/dev/null || exit 9";
        ran(&shell(&format!("{limited}{script}")), LONG).unwrap();
    }

    #[test]
    fn a_stop_ends_the_program_and_the_run() {
        let (stop, folder) = (Stop::new(), tempfile::tempdir().unwrap());
        stop.request();
        let table = Table { task: Task::Lines, size: 64, count: 3, cold: false, in_time: false };
        let path = folder.path().join("job-1.data");
        let call = Call { table: &table, path: &path, folder: folder.path(), timeout: LONG };
        let ran = run(&shell("sleep 100"), call, &stop);
        assert!(matches!(ran, Err(Error::Interrupted)));
    }
}
