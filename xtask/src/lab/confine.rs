//! The tests and `wrote bench` where io_uring is refused or little memory may be locked.

use super::bench::{lost, reduced, rows};
use super::sysctl::Sysctl;
use crate::failure::{Failure, Tried};
use crate::report::{Counts, Outcome, Report};
use crate::repository::{CARGO_LIMIT, cargo, release_wrote, root, target};
use crate::run::{Finished, Show, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The packages whose tests run confined; the engine's first.
const PACKAGES: [&str; 7] = [
    "wrote",
    "wrote-result",
    "wrote-machine",
    "wrote-jobs",
    "wrote-bench",
    "wrote-langs",
    "wrote-cli",
];
/// Programs of tests that do not run confined: they write to disks of their own, or build and run programs of
/// other languages, for minutes, and what of them depends on io_uring the benchmark of each condition shows.
const LEFT_OUT: [&str; 3] = ["findings", "langs", "language_programs"];
/// How long one program of tests, or one benchmark, may take in one condition.
const LIMIT: Duration = Duration::from_secs(5 * 60);
const IO_URING_DISABLED: &str = "/proc/sys/kernel/io_uring_disabled";

/// A way of being confined, and what a benchmark then has to say.
struct Condition {
    name: &'static str,
    /// Arguments of `confine`.
    arguments: &'static [&'static str],
    /// The kernel's reason, in the rows that asked for io_uring.
    reason: &'static str,
    /// Whether io_uring is gone altogether, not only its registered buffers.
    no_ring: bool,
}

const CONDITIONS: &[Condition] = &[
    Condition {
        name: "io_uring refused by a container (EPERM)",
        arguments: &["--io-uring", "eperm"],
        reason: "Operation not permitted",
        no_ring: true,
    },
    Condition {
        name: "a kernel without io_uring (ENOSYS)",
        arguments: &["--io-uring", "enosys"],
        reason: "Function not implemented",
        no_ring: true,
    },
    Condition {
        name: "no memory may be locked",
        arguments: &["--memlock-bytes", "0"],
        reason: "Cannot allocate memory",
        no_ring: false,
    },
    Condition {
        name: "64 KiB of memory may be locked",
        arguments: &["--memlock-bytes", "65536"],
        reason: "Cannot allocate memory",
        no_ring: false,
    },
];

/// Forbidden by the administrator: nothing is confined, the kernel's own setting does it.
const DISABLED: Condition = Condition {
    name: "kernel.io_uring_disabled=2",
    arguments: &[],
    reason: "Operation not permitted",
    no_ring: true,
};

/// What is built outside and run inside.
struct Programs {
    confine: PathBuf,
    wrote: PathBuf,
    /// The test programs of each package, and the package's folder.
    tests: Vec<(&'static str, Vec<PathBuf>)>,
}

/// Runs every condition.
pub fn lab(report: &mut Report) -> Result<(), Failure> {
    let mut programs = None;
    report.step("lab confine: build", || {
        programs = Some(build()?);
        Ok(Outcome::Passed)
    })?;
    let Some(programs) = programs else { return Ok(()) };
    for condition in CONDITIONS {
        check(report, &programs, condition)?;
    }
    let disabled = Sysctl::set(Path::new(IO_URING_DISABLED), "2");
    match disabled {
        Ok(_until_the_end) => check(report, &programs, &DISABLED),
        Err(error) => {
            let because = format!("{IO_URING_DISABLED}: {error}");
            report
                .step(&format!("lab confine: {}", DISABLED.name), || Ok(Outcome::Skipped(because)))
        }
    }
}

fn build() -> Result<Programs, Failure> {
    let what = "cargo build -p confine";
    run(&mut cargo(&["build", "-p", "confine"]), CARGO_LIMIT, Show::Live)?.success(what)?;
    let tests = PACKAGES.map(|package| Ok((package, test_programs(&built(package)?))));
    Ok(Programs {
        confine: target().join("debug/confine"),
        wrote: release_wrote()?,
        tests: tests.into_iter().collect::<Result<_, Failure>>()?,
    })
}

/// Builds a package's tests; cargo's messages about it.
fn built(package: &str) -> Result<String, Failure> {
    let mut tests = cargo(&["test", "-p", package, "--no-run", "--message-format", "json"]);
    // Its messages are for us, and nobody reads colours in them.
    let finished = run(tests.env("CARGO_TERM_COLOR", "never"), CARGO_LIMIT, Show::Quiet)?;
    Ok(finished.success(&format!("cargo test -p {package} --no-run"))?.stdout)
}

/// The test programs that cargo's JSON messages name.
fn test_programs(messages: &str) -> Vec<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let is_left_out =
        |test: &Value| test["target"]["name"].as_str().is_some_and(|name| LEFT_OUT.contains(&name));
    let tests = messages
        .filter(|message| message["profile"]["test"] == true)
        .filter(|message| !is_left_out(message));
    tests.filter_map(|test| test["executable"].as_str().map(PathBuf::from)).collect()
}

fn check(report: &mut Report, programs: &Programs, condition: &Condition) -> Result<(), Failure> {
    let name = condition.name;
    report.step(&format!("lab confine: tests: {name}"), || tests(programs, condition))?;
    report.step(&format!("lab confine: wrote bench: {name}"), || {
        bench(programs, condition).map(|()| Outcome::Passed)
    })
}

fn confined(programs: &Programs, condition: &Condition, program: &Path) -> Command {
    let mut command = Command::new(&programs.confine);
    command.args(condition.arguments).arg("--").arg(program);
    command
}

/// Counts as one step: the tests themselves are counted where nothing is refused.
///
/// Where there is no ring at all the whole suite runs; where only its buffers can't be registered,
/// the engine's part of it.
fn tests(programs: &Programs, condition: &Condition) -> Result<Outcome, Failure> {
    let (mut passed, mut failures, mut skipped) = (0, Vec::new(), Vec::new());
    let packages = if condition.no_ring { &programs.tests[..] } else { &programs.tests[..1] };
    for (package, tests) in packages {
        let folder = root().join("crates").join(package);
        for test in tests {
            let mut command = confined(programs, condition, test);
            // Tests of what is refused here skip themselves; that is no gap.
            command.env_remove("WROTE_REQUIRE_ALL").env_remove("WROTE_SKIPS_FILE");
            command.env("CARGO_MANIFEST_DIR", &folder).current_dir(&folder);
            let finished = run(&mut command, LIMIT, Show::Quiet)?;
            let counts = Counts::read(&finished, "");
            passed += counts.passed;
            skipped.extend(counts.skipped);
            if let Some(trouble) = &finished.trouble {
                show(&finished);
                failures.push(format!("{} ({trouble})", counts.failures.join(", ")));
            }
        }
    }
    if passed == 0 {
        failures.push("no test ran".to_owned());
    }
    eprintln!("{passed} tests passed, {} of them by skipping themselves", skipped.len());
    for skip in skipped {
        eprintln!("  {skip}");
    }
    if failures.is_empty() {
        Ok(Outcome::Passed)
    } else {
        Err(Failure::Failed(failures.join("; ")))
    }
}

fn bench(programs: &Programs, condition: &Condition) -> Result<(), Failure> {
    // In the target folder: it is on a disk, where /tmp may not be.
    let folder = tempfile::tempdir_in(target()).tried("a temporary folder")?;
    let mut command = confined(programs, condition, &programs.wrote);
    command.arg("bench").arg(folder.path());
    command.args(["--size", "16M", "--runs", "1", "--only", "ladder", "--format", "json"]);
    let finished = run(&mut command, LIMIT, Show::Quiet)?.success("wrote bench")?;
    let rows = rows(&finished.stdout)?;
    let asked = ("ioengine", &Value::from("io_uring"));
    if condition.no_ring {
        lost(&rows, asked, condition.reason)
    } else {
        reduced(&rows, asked, condition.reason)
    }
}

fn show(finished: &Finished) {
    eprint!("{}{}", finished.stdout, finished.stderr);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_test_programs_are_taken_from_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","profile":{"test":false},"executable":"/t/wrote"}
{"reason":"compiler-artifact","profile":{"test":true},"executable":"/t/deps/wrote-1"}
{"reason":"compiler-artifact","profile":{"test":true},"executable":null}
{"reason":"build-finished","success":true}
not a message"#;
        assert_eq!(test_programs(messages), [PathBuf::from("/t/deps/wrote-1")]);
    }
}
