//! `cargo xtask test`: runs every check and test in turn; a failed step does not end the run.

pub mod campaigns;
mod languages;
pub mod links;
pub mod prose;
mod stores;

use crate::failure::{Failure, Tried};
use crate::lab::confine::Share;
use crate::lab::{confine, logs, power_cut, strange_fs};
use crate::packages::{self, LABS, MPI, TESTS};
use crate::programs::{self, Program, cargo_tests, run_all};
use crate::report::{Outcome, Report};
use crate::repository::{cargo, release_lab, target};
use crate::run::{HANG, Show, end_at, output, run};
use crate::{clients, fuzz, repository};
use campaigns::{CAMPAIGNS, Campaign, RAFT, RIVALS};
use languages::Missing;
use std::process::Command;
use std::time::{Duration, Instant};

const STRICT: [&str; 3] = ["--", "-D", "warnings"];
/// Seeds of the simulation, and moments of the power cut on each file system, in a default run.
/// Every run draws its own, so that short runs add up.
const SEEDS: u64 = 5_000;
const MOMENTS: u32 = 25;

/// Crates that a program takes on with the library and its default features.
const DEPENDENCIES_MAX: usize = 15;

/// The time that a campaign may run on when that of `--within` is over.
const OVERTIME: Duration = Duration::from_secs(10 * 60);

/// Check and test wrote, with missing Debian packages installed first.
///
/// A default run leaves the campaigns to --all and lists them. Its last line counts what passed,
/// failed and was skipped.
#[derive(clap::Args)]
pub struct Arguments {
    /// Install nothing; steps that need a missing program are skipped
    #[arg(long)]
    no_install: bool,
    /// Run the campaigns too, first those that protect data
    #[arg(long)]
    all: bool,
    /// Start no campaign when this time is over, such as 40m, end one that still runs ten minutes
    /// later, and list the rest. A default run that passed on this commit is not repeated
    #[arg(long, value_name = "TIME", requires = "all", value_parser = duration)]
    within: Option<Duration>,
}

/// Runs the steps that `arguments` ask for.
pub fn test(arguments: &Arguments) -> Result<(), Failure> {
    let begin = Instant::now();
    let mut report = Report::default();
    let commit = clean_commit()?;
    let passed = target().join("xtask-test-passed");
    let has_passed = commit.is_some() && std::fs::read_to_string(&passed).ok() == commit;
    if arguments.within.is_some() && has_passed {
        eprintln!("xtask: the default steps passed on this commit before; only campaigns follow");
    } else {
        let _ = std::fs::remove_file(&passed);
        default(&mut report, !arguments.no_install)?;
        if let Some(commit) = commit.filter(|_| report.is_green()) {
            std::fs::write(&passed, commit).tried(passed.display())?;
        }
    }
    if let Some(within) = arguments.within {
        end_at(begin + within + OVERTIME);
    }
    for Campaign { what, round, .. } in CAMPAIGNS {
        if !arguments.all {
            report.leave(what, "left to --all");
        } else if arguments.within.is_some_and(|within| begin.elapsed() > within) {
            report.leave(what, "no time was left");
        } else {
            round(&mut report, !arguments.no_install)?;
        }
    }
    report.finish()
}

fn default(report: &mut Report, install: bool) -> Result<(), Failure> {
    report.step("Debian packages", || packages::provide(&[LABS, TESTS].concat(), install))?;
    clients::provide(report, install)?;
    step(report, "fmt", &["fmt", "--all", "--check"])?;
    let others = [("rivals", RIVALS), ("raft-log", RAFT), ("the fuzzer", fuzz::MANIFEST)];
    for (name, manifest) in others {
        let words = ["fmt", "--check", "--manifest-path", manifest];
        step(report, &format!("fmt of {name}"), &words)?;
    }
    let clippy = ["clippy", "--workspace", "--all-targets", programs::FEATURES];
    step(report, "clippy", &[&clippy[..], &STRICT].concat())?;
    let mut doc = cargo(&["doc", "--workspace", "--no-deps"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    report.step("doc", || run(&mut doc, HANG, Show::Live)?.success("cargo doc").map(drop))?;
    report.step("no dependency twice", no_duplicates)?;
    report.step("few dependencies of the library", few_dependencies)?;
    report.step("links between documents", links::check)?;
    report.step("prose", || prose::check(&[]))?;
    report.step("build of the release", || release_lab("wrote").map(drop))?;
    report.step("build of the tests", || programs::build().map(drop))?;
    tests(report, "tests", &[])?;
    mpi(report, install)?;
    report.step("examples in documentation", || {
        cargo_tests(&mut cargo(&["test", "--workspace", "--doc", "--no-fail-fast"]))
    })?;
    confine::lab(report, Share::Default)?;
    strange_fs::lab(report)?;
    logs::sim(report, logs::Sim::of(SEEDS))?;
    power_cut::lab(report, power_cut::Arguments { seed: None, moments: MOMENTS })?;
    report.step("languages", || languages::check(Missing::Left))?;
    stores::check(report)
}

/// Builds the command with its ranks, and runs the tests that start several. It is built like the
/// tests of the workspace, so that all it depends on is built already.
fn mpi(report: &mut Report, install: bool) -> Result<(), Failure> {
    report.step("ranks under mpirun", || {
        packages::provide(MPI, install)?;
        let words = ["test", "-p", "wrote-cli", "--features", "mpi", "--test", "mpi"];
        cargo_tests(cargo(&words).arg("--no-fail-fast"))
    })
}

fn step(report: &mut Report, name: &str, words: &[&str]) -> Result<(), Failure> {
    report.step(name, || run(&mut cargo(words), HANG, Show::Live)?.success(name).map(drop))
}

/// Runs every test program with `arguments` as one step, and adds the time of each.
fn tests(report: &mut Report, name: &str, arguments: &[&str]) -> Result<(), Failure> {
    let mut ran = Vec::new();
    report.step(name, || {
        let job = |program: &Program| program.job(Command::new(&program.file), arguments);
        ran = run_all(programs::build()?.iter().map(job).collect())?;
        Ok(Outcome::Tests(programs::sum(&ran)))
    })?;
    for ran in ran {
        report.time(&format!("{name}: {}", ran.name), ran.elapsed);
    }
    Ok(())
}

/// Fails where `wrote` depends on two versions of a crate: it would be built twice, and its types
/// would not fit.
fn no_duplicates() -> Result<(), Failure> {
    let words = ["tree", "-d", "-e", "normal", "-p", "wrote-cli"];
    let finished = run(&mut cargo(&words), HANG, Show::Live)?.success("cargo tree")?;
    match two_versions(&finished.stdout).as_slice() {
        [] => Ok(()),
        names => Err(Failure::Failed(format!("two versions of {}", names.join(", ")))),
    }
}

/// Fails where the library, with its default features, depends on more crates than it may.
fn few_dependencies() -> Result<(), Failure> {
    let words = ["tree", "-e", "normal", "-p", "wrote", "--prefix", "none"];
    let finished = run(&mut cargo(&words), HANG, Show::Live)?.success("cargo tree")?;
    let crates = dependencies(&finished.stdout);
    if crates.len() <= DEPENDENCIES_MAX {
        return Ok(());
    }
    let (count, names) = (crates.len(), crates.join(", "));
    Err(Failure::Failed(format!("{count} dependencies, at most {DEPENDENCIES_MAX}: {names}")))
}

/// Returns the crates below the first in the output of `cargo tree --prefix none`, each once.
fn dependencies(tree: &str) -> Vec<&str> {
    let mut names: Vec<&str> =
        tree.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the crates with two versions in the output of `cargo tree -d`. A crate that a macro and
/// the program use with other features is listed twice with one version.
fn two_versions(tree: &str) -> Vec<&str> {
    let begins = tree.lines().filter_map(|line| line.split_once(" v"));
    let mut crates: Vec<(&str, &str)> = begins
        .filter(|(name, _)| !name.contains(' '))
        .map(|(name, rest)| (name, rest.split(' ').next().unwrap_or_default()))
        .collect();
    crates.sort_unstable();
    crates.dedup();
    crates.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[0].0).collect()
}

/// Returns the commit that is checked out; `None` where a file differs from it.
fn clean_commit() -> Result<Option<String>, Failure> {
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command.current_dir(repository::root()).args(words);
        output(&mut command, "git")
    };
    let is_clean = git(&["status", "--porcelain"])?.is_empty();
    Ok(Some(git(&["rev-parse", "HEAD"])?).filter(|_| is_clean))
}

/// Reads a duration such as `40m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let duration: jiff::SignedDuration = text.parse().map_err(|_| "not a time such as 40m")?;
    Duration::try_from(duration).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_with_two_versions_is_told_from_one_with_two_sets_of_features() {
        let twice = "winnow v1.0.5\n├── toml v1.2.1\n\nwinnow v1.0.5\n└── askama_parser v0.16.1\n";
        assert!(two_versions(twice).is_empty());
        let two = "syn v2.0.1\n└── a v1.0.0\n\nsyn v3.0.9\n└── b v1.0.0 (*)\n";
        assert_eq!(two_versions(two), ["syn"]);
    }

    #[test]
    fn a_dependency_counts_once_and_the_library_itself_not() {
        let tree = "wrote v0.1.0 (/here)\nlog v0.4.1\nrustix v1.1.6\nlog v0.4.1 (*)\n";
        assert_eq!(dependencies(tree), ["log", "rustix"]);
    }

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(duration("40m"), Ok(Duration::from_secs(40 * 60)));
        assert!(duration("40").is_err());
        assert!(duration("-1m").is_err());
    }
}
