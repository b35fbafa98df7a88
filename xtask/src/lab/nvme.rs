//! Runs the engine's tests in a guest with poll queues: two NVMe disks and `null_blk`.

mod cache;
mod guest;
mod initramfs;
mod results;

use crate::failure::{Failure, Tried};
use crate::packages::{self, GUEST};
use crate::programs::{self, Program};
use crate::report::{Outcome, Report};
use crate::repository::{cargo, target};
use crate::run::output;
use results::Results;
use std::path::Path;
use std::process::Command;

const NAME: &str = "lab nvme: the engine's tests";
const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Strips debug information: half of a program, which the guest would keep in memory.
const RUSTFLAGS: &str = "-C target-feature=+crt-static -C strip=debuginfo";
/// The library's test program, and its modules that test real devices.
const PROGRAM: &str = "it";
const MODULES: [&str; 2] = ["engine::", "polled::"];

/// Builds the tests, boots the guest, and reports each test's end.
///
/// A missing part of the guest is a failure; without `install` the lab is skipped.
pub fn lab(report: &mut Report, install: bool) -> Result<(), Failure> {
    if let Err(failure) = check_possible(install) {
        return report.step("lab nvme", || Err::<(), _>(failure));
    }
    let fetch = || packages::require(GUEST, Failure::Failed).and_then(|()| cache::fetch());
    let cached = report.make("lab nvme: kernel and shell of the guest", fetch)?;
    let built = report.make("lab nvme: build", build)?;
    match (cached, built) {
        (Some(cached), Some(programs)) => report.step(NAME, || run(&cached, &programs)),
        // The report has the reason.
        _ => Ok(()),
    }
}

/// Fails with the reason to skip the lab.
fn check_possible(install: bool) -> Result<(), Failure> {
    if !cfg!(target_arch = "x86_64") {
        return Err(Failure::Skipped("the guest's programs are built for x86_64".into()));
    }
    if install {
        return Ok(());
    }
    packages::require(GUEST, Failure::Skipped)?;
    match cache::find() {
        Ok(None) => Err(Failure::Skipped("the guest's kernel was not downloaded yet".to_owned())),
        // A defect of the cache is reported when it is used.
        _ => Ok(()),
    }
}

fn run(cached: &cache::Cached, programs: &[GuestProgram]) -> Result<Outcome, Failure> {
    let logs = std::path::absolute(target().join("lab-nvme")).tried("the target folder")?;
    std::fs::create_dir_all(&logs).tried(logs.display())?;
    let folder = tempfile::tempdir_in(&logs).tried(logs.display())?;
    let kernel = initramfs::Kernel::unpack(&cached.kernel, folder.path())?;
    let initramfs = initramfs::make(folder.path(), cached, &kernel, programs)?;
    let mut shown = 0;
    let said = |results: &Results| shown = show(results, shown);
    let results = guest::run(&kernel.image, &initramfs, folder.path(), &logs, said)?;
    let planned = programs.iter().map(|(_, tests)| tests.len()).sum();
    Ok(Outcome::Tests(results.counts(planned)))
}

/// Prints the tests that have ended after the first `shown`, with their facts, or their output
/// where they failed; returns the number of printed tests.
fn show(results: &Results, shown: usize) -> usize {
    let ended = results.ended();
    for test in &ended[shown..] {
        eprintln!("{} ... {}", test.name, test.word());
        if test.passed() {
            test.facts().for_each(|fact| eprintln!("  {fact}"));
        } else {
            eprint!("{}", test.said);
        }
    }
    ended.len()
}

/// A test program, and the names of its tests.
type GuestProgram = (Program, Vec<String>);

/// Builds the programs and lists their tests. They are static: the guest has no libraries.
fn build() -> Result<Vec<GuestProgram>, Failure> {
    let mut command = cargo(&["test", "-p", "wrote", "--no-run"]);
    // With a target named, the flags do not apply to macros, which run on this machine.
    command.args(["--target", TARGET]).env("RUSTFLAGS", RUSTFLAGS);
    // The emulated processor is slow.
    command.env("CARGO_PROFILE_TEST_OPT_LEVEL", "1").env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    command.args(["--test", PROGRAM]);
    let of = |program: Program| {
        let mut tests = list(&program.file)?;
        tests.retain(|test| MODULES.iter().any(|module| test.starts_with(module)));
        Ok((program, tests))
    };
    programs::built(&mut command)?.into_iter().map(of).collect()
}

fn list(program: &Path) -> Result<Vec<String>, Failure> {
    let mut command = Command::new(program);
    let list = command.args(["--list", "--format", "terse"]);
    Ok(names(&output(list, &program.display().to_string())?))
}

/// Returns the tests in the harness's list.
fn names(list: &str) -> Vec<String> {
    list.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tests_are_taken_from_the_list() {
        assert_eq!(names("a_test: test\na_bench: benchmark\n\nb::c: test\n"), ["a_test", "b::c"]);
    }
}
