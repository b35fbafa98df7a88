//! The guest's test programs, and their tests by name. They are static: the guest has no libraries.

use crate::failure::Failure;
use crate::programs;
use crate::repository::cargo;
use crate::run::{HANG, Show, run};
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Strips debug information: half of a program, which the guest would keep in memory.
const RUSTFLAGS: &str = "-C target-feature=+crt-static -C strip=debuginfo";
/// The library's test program, and its modules that test real devices.
const PROGRAM: &str = "it";
const MODULES: [&str; 2] = ["engine::", "polled::"];

/// A test program.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    /// The name of its target.
    pub name: String,
    /// The program.
    pub file: PathBuf,
    /// Names of its tests.
    pub tests: Vec<String>,
}

/// Builds the programs and lists their tests.
pub fn build() -> Result<Vec<Program>, Failure> {
    let mut command = cargo(&["test", "-p", "wrote", "--no-run"]);
    // With a target named, the flags do not apply to macros, which run on this machine.
    command.args(["--target", TARGET]).env("RUSTFLAGS", RUSTFLAGS);
    // The emulated processor is slow.
    command.env("CARGO_PROFILE_TEST_OPT_LEVEL", "1").env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    command.args(["--test", PROGRAM]);
    let of = |program: programs::Program| {
        let mut tests = list(&program.file)?;
        tests.retain(|test| MODULES.iter().any(|module| test.starts_with(module)));
        Ok(Program { name: program.target, file: program.file, tests })
    };
    programs::built(&mut command)?.into_iter().map(of).collect()
}

fn list(program: &Path) -> Result<Vec<String>, Failure> {
    let mut command = Command::new(program);
    let finished = run(command.args(["--list", "--format", "terse"]), HANG, Show::Quiet)?;
    Ok(names(&finished.success(&program.display().to_string())?.stdout))
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
