//! Runs the tests and `wrote bench` while io_uring is refused or lockable memory is limited.

use super::bench::{lost, reduced, rows};
use crate::fixtures::Setting;
use crate::tools::failure::{Failure, Tried};
use crate::tools::programs::{self, Program, run_all};
use crate::tools::report::{Counts, Report};
use crate::tools::repository::target;
use crate::tools::run::output;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Test programs that are never run confined, because they write to disks of their own.
const NEVER: [&str; 1] = ["findings"];
/// Test programs that do not open an engine.
const NO_ENGINE: [&str; 2] = ["wrote_report", "wrote_result"];
/// Modules of tests that run programs in other languages, do no I/O, or take minutes. Their use of
/// io_uring is covered by the benchmark in each condition.
const NEVER_MODULES: [&str; 7] =
    ["drawn_", "langs::", "log_soak::", "programs::", "text::", "pages::", "mpi::"];
/// Modules of the library's tests that probe the ring and fall back, or use a log as a program
/// does. No other tests cover this.
const ENGINE: [&str; 3] = ["engine::", "file_waiting::", "writer::"];
const LOG: [&str; 2] = ["append::", "open::"];
const IO_URING_DISABLED: &str = "/proc/sys/kernel/io_uring_disabled";

/// A confinement, and what a benchmark must report under it.
struct Condition {
    name: &'static str,
    /// The arguments for `lab confine`.
    arguments: Words,
    /// The kernel's reason, which must be reported in the rows that requested io_uring.
    reason: &'static str,
    /// Whether io_uring is refused completely, not only its registered buffers.
    no_ring: bool,
}

const CONDITIONS: &[Condition] = &[
    no_ring("io_uring refused by a container (EPERM)", &["--io-uring", "eperm"], FORBIDDEN),
    no_ring(
        "a kernel without io_uring (ENOSYS)",
        &["--io-uring", "enosys"],
        "Function not implemented",
    ),
    little_memory("no memory may be locked", &["--memlock-bytes", "0"]),
    little_memory("64 KiB of memory may be locked", &["--memlock-bytes", "65536"]),
];

/// The condition in which the administrator disables io_uring with the kernel's setting; no process
/// is confined.
const DISABLED: Condition = no_ring("kernel.io_uring_disabled=2", &[], FORBIDDEN);

const FORBIDDEN: &str = "Operation not permitted";

type Words = &'static [&'static str];

const fn no_ring(name: &'static str, arguments: Words, reason: &'static str) -> Condition {
    Condition { name, arguments, reason, no_ring: true }
}

const fn little_memory(name: &'static str, arguments: Words) -> Condition {
    let reason = "Cannot allocate memory";
    Condition { name, arguments, reason, no_ring: false }
}

/// A part of the tests, which can be run separately.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// The library's modules in `ENGINE`, and a benchmark.
    Engine,
    /// All other tests of programs that do I/O.
    Rest,
}

/// The programs that are run confined, and the program that confines them.
struct Programs {
    confine: PathBuf,
    wrote: PathBuf,
    tests: Vec<Program>,
}

/// Runs a share of the tests under every condition.
pub fn lab(report: &mut Report, share: Share) -> Result<(), Failure> {
    let built = report.make("lab confine: build", || {
        let (tests, confine) = (programs::build()?, target().join("debug/lab"));
        Ok(Programs { tests, confine, wrote: target().join("debug/wrote") })
    })?;
    let Some(programs) = built else { return Ok(()) };
    for condition in CONDITIONS {
        check(report, &programs, condition, share)?;
    }
    match Setting::set(IO_URING_DISABLED, "2") {
        Ok(_until_the_end) => check(report, &programs, &DISABLED, share),
        Err(because) => report.skip("lab confine: kernel.io_uring_disabled=2", because),
    }
}

fn check(
    report: &mut Report,
    programs: &Programs,
    condition: &Condition,
    share: Share,
) -> Result<(), Failure> {
    let name = condition.name;
    let words = if share == Share::Engine { "tests" } else { "rest of the tests" };
    report.step(&format!("lab confine: {words}: {name}"), || tests(programs, condition, share))?;
    if share == Share::Rest {
        return Ok(());
    }
    report.step(&format!("lab confine: wrote bench: {name}"), || bench(programs, condition))
}

fn confined(programs: &Programs, condition: &Condition, program: &Path) -> Command {
    let mut command = Command::new(&programs.confine);
    command.arg("confine").args(condition.arguments).arg("--").arg(program);
    command
}

/// Runs tests as a single step, because the unconfined run already counts them individually.
fn tests(programs: &Programs, condition: &Condition, share: Share) -> Result<(), Failure> {
    let job = |program: &Program| {
        let arguments = arguments(program, condition, share)?;
        let mut command = confined(programs, condition, &program.file);
        // A test of a feature that is refused may skip itself.
        command.env_remove("WROTE_REQUIRE_ALL");
        Some(program.job(command, &arguments))
    };
    let jobs = programs.tests.iter().filter_map(job).collect();
    let Counts { passed, failures, skipped, .. } = programs::sum(&run_all(jobs)?);
    eprintln!("{passed} tests passed, {} of them by skipping themselves", skipped.len());
    match (passed, &failures[..]) {
        (0, []) => Err(Failure::Failed("no test ran".to_owned())),
        (_, []) => Ok(()),
        _ => Err(Failure::Failed(failures.join("; "))),
    }
}

/// Returns the arguments that select a share of the tests in `program`; `None` if the program
/// contains none of them.
fn arguments(program: &Program, condition: &Condition, share: Share) -> Option<Vec<&'static str>> {
    let is_library = program.package == "wrote";
    // A ring without registered buffers still works, so only the library behaves differently.
    if !program.ships()
        || [&NEVER[..], &NO_ENGINE].concat().contains(&&*program.target)
        || !(is_library || condition.no_ring)
    {
        return None;
    }
    let engine = match &*program.target {
        _ if !is_library => &[],
        "log" => &LOG[..],
        _ => &ENGINE[..],
    };
    match share {
        Share::Engine => is_library.then(|| engine.to_vec()),
        Share::Rest => {
            let skipped = engine.iter().chain(&NEVER_MODULES);
            let skipped = skipped.flat_map(|module| ["--skip", module]);
            // In other programs, the ignored tests call foreign programs.
            Some(is_library.then_some("--include-ignored").into_iter().chain(skipped).collect())
        }
    }
}

fn bench(programs: &Programs, condition: &Condition) -> Result<(), Failure> {
    // The target folder is on a disk, whereas /tmp may be in memory.
    let folder = tempfile::tempdir_in(target()).tried("a temporary folder")?;
    let mut command = confined(programs, condition, &programs.wrote);
    command.arg("bench").arg(folder.path());
    command.args(["--size", "16M", "--runs", "1", "--only", "ladder", "--format", "json"]);
    let rows = rows(&output(&mut command, "wrote bench")?)?;
    let judge = if condition.no_ring { lost } else { reduced };
    judge(&rows, ("ioengine", &Value::from("io_uring")), condition.reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_a_condition_are_all_its_tests_and_none_twice() {
        let program = |package: &str, target: &str| Program {
            package: package.to_owned(),
            target: target.to_owned(),
            file: "/t/deps/it-1".into(),
            folder: format!("/r/crates/{package}").into(),
        };
        let both = |program: &Program, condition| {
            [Share::Engine, Share::Rest].map(|share| arguments(program, condition, share))
        };
        let [container, _, unlocked, ..] = CONDITIONS else { panic!("conditions") };
        let (library, command) = (program("wrote", "it"), program("wrote-cli", "it"));
        let [Some(log), Some(_)] = both(&program("wrote", "log"), container) else {
            panic!("two shares of the log's tests")
        };
        assert_eq!(log, LOG);
        for condition in [container, unlocked] {
            let [Some(engine), Some(rest)] = both(&library, condition) else { panic!("shares") };
            assert_eq!(engine, ENGINE);
            assert!(ENGINE.iter().all(|module| rest.contains(module)), "{rest:?}");
        }
        let [None, Some(rest)] = both(&command, container) else { panic!("one share") };
        assert!(!rest.contains(&ENGINE[0]) && rest.contains(&"langs::"), "{rest:?}");
        assert_eq!(both(&command, unlocked), [None, None]);
        assert_eq!(both(&program("wrote-cli", "findings"), container), [None, None]);
    }
}
