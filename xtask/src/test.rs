//! `cargo xtask test`: every check and test, one after the other, all of them also when one fails.

mod languages;
mod links;
pub mod prose;

use crate::failure::{Failure, Tried};
use crate::packages::{self, GUEST, TESTS};
use crate::report::{Counts, Outcome, Report};
use crate::repository::{CARGO_LIMIT, cargo, root};
use crate::run::{Show, run};
use crate::{fuzz, lab, model, repository, toolchains};
use std::process::Command;
use std::time::{Duration, Instant};

/// What everything together may take. A step that begins late has what is left of it.
const LIMIT: Duration = Duration::from_secs(75 * 60);
/// The modules of the wrote crate's tests `it` that also run with AddressSanitizer.
const SANITIZED: [&str; 7] = [
    "engine::",
    "engine_faults::",
    "file_drops::",
    "file_faults::",
    "file_waiting::",
    "writer::",
    "writer_faults::",
];
/// What is a workspace of its own: name and manifest.
const OTHERS: [(&str, &str); 2] =
    [("strange-fs", "lab/strange-fs/Cargo.toml"), ("rivals", "xtask/rivals/Cargo.toml")];

/// Check and test everything.
#[derive(clap::Args)]
pub struct Arguments {
    /// Install nothing: what is missing is skipped, and said.
    #[arg(long)]
    no_install: bool,
}

/// Runs every check and test.
pub fn test(arguments: &Arguments) -> Result<(), Failure> {
    let end = Instant::now() + LIMIT;
    let mut report = Report::default();
    report.step("Debian packages", || install(arguments))?;
    toolchains::step(&mut report, !arguments.no_install)?;
    for (name, words, environment) in checks() {
        report.step(&name, || {
            let mut command = cargo(&words);
            command.envs(environment);
            finish(&mut command, end, &name)
        })?;
    }
    report.step("no dependency twice", || no_duplicates(end))?;
    report.step("links between documents", links::check)?;
    report.step("build of the release", || repository::release_wrote().map(|_| Outcome::Passed))?;
    report.step("every language", || languages::check(!arguments.no_install))?;
    report.step("tests", || tests(&mut cargo(&["test", "--workspace", "--no-fail-fast"]), end))?;
    for (name, manifest) in OTHERS {
        report.step(&format!("tests of {name}"), || {
            tests(&mut cargo(&["test", "--no-fail-fast", "--manifest-path", manifest]), end)
        })?;
    }
    report.step("tests with AddressSanitizer", || sanitized(end))?;
    report
        .step("every order of threads", || tests(&mut model::command(model::PREEMPTIONS), end))?;
    report.step("fuzzer of the log", || fuzz::run_for(fuzz::SECONDS))?;
    lab::all(&mut report, !arguments.no_install)?;
    report.finish()
}

type Check = (String, Vec<&'static str>, Option<(&'static str, &'static str)>);

/// The checks that are one cargo command each: name, arguments, environment.
fn checks() -> Vec<Check> {
    let fmt = ["fmt", "--all", "--check"];
    let clippy = ["clippy", "--workspace", "--all-targets"];
    let strict = ["--", "-D", "warnings"];
    let doc = ["doc", "--workspace", "--no-deps"];
    let mut checks: Vec<Check> = vec![
        ("fmt".into(), fmt.to_vec(), None),
        ("clippy".into(), [&clippy[..], &strict].concat(), None),
        ("doc".into(), doc.to_vec(), Some(("RUSTDOCFLAGS", "-D warnings"))),
    ];
    for (name, manifest) in OTHERS.into_iter().chain([("the fuzzer", fuzz::MANIFEST)]) {
        let other = ["--manifest-path", manifest];
        checks.push((format!("fmt of {name}"), [&fmt[..], &other].concat(), None));
        checks.push((format!("clippy of {name}"), [&clippy[..], &other, &strict].concat(), None));
    }
    checks
}

fn install(arguments: &Arguments) -> Result<Outcome, Failure> {
    let needed = [TESTS, GUEST].concat();
    if !arguments.no_install {
        return packages::install(&needed).map(|()| Outcome::Passed);
    }
    let missing = packages::missing(&needed);
    if missing.is_empty() {
        return Ok(Outcome::Passed);
    }
    Ok(Outcome::Skipped(packages::describe(&missing)))
}

fn left(end: Instant) -> Duration {
    CARGO_LIMIT.min(end.saturating_duration_since(Instant::now()))
}

fn finish(command: &mut Command, end: Instant, name: &str) -> Result<Outcome, Failure> {
    let finished = run(command, left(end), Show::Live)?;
    match finished.trouble {
        None => Ok(Outcome::Passed),
        Some(trouble) => Err(Failure::Failed(format!("{name}: {trouble}"))),
    }
}

/// A dependency in two versions is compiled twice and cannot be passed from the one to the other.
fn no_duplicates(end: Instant) -> Result<Outcome, Failure> {
    let name = "cargo tree -d --workspace";
    let finished = run(&mut cargo(&["tree", "-d", "--workspace"]), left(end), Show::Live)?;
    let finished = finished.success(name)?;
    if finished.stdout.trim().is_empty() {
        return Ok(Outcome::Passed);
    }
    Err(Failure::Failed(format!("{name}: some dependency has two versions")))
}

/// The tests in which buffers change hands, with every access to memory checked.
///
/// The stable compiler brings the sanitizer, but takes `-Zsanitizer=address` only where
/// `RUSTC_BOOTSTRAP=1` says that unstable flags may be used: no second compiler is needed for it.
/// With a target named, cargo builds macros and build scripts without the flag; the compiler could
/// not load them with it. The folder of its own keeps the other builds from being made again.
fn sanitized(end: Instant) -> Result<Outcome, Failure> {
    if std::env::consts::ARCH != "x86_64" {
        let architecture = std::env::consts::ARCH;
        return Ok(Outcome::Skipped(format!("AddressSanitizer on {architecture} was never tried")));
    }
    let mut command = cargo(&["test", "--package", "wrote", "--no-fail-fast"]);
    command.args(["--target", "x86_64-unknown-linux-gnu"]);
    command
        .args(["--test", "it", "--"])
        .args(SANITIZED)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTFLAGS", "-Zsanitizer=address")
        .env("CARGO_TARGET_DIR", repository::target().join("asan"));
    tests(&mut command, end)
}

/// Runs tests; those that skip themselves say so in a file.
fn tests(command: &mut Command, end: Instant) -> Result<Outcome, Failure> {
    let skips = tempfile::NamedTempFile::new().tried("a temporary file")?;
    command.env("WROTE_SKIPS_FILE", skips.path()).current_dir(root());
    let finished = run(command, left(end), Show::Live)?;
    let skipped = std::fs::read_to_string(skips.path()).tried(skips.path().display())?;
    Ok(Outcome::Tests(Counts::read(&finished, &skipped), finished.trouble))
}
