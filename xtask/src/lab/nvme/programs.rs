//! The test programs that run in the guest: static, as nothing else is there, and each test by name.

use crate::failure::Failure;
use crate::programs;
use crate::repository::cargo;
use crate::run::{HANG, Show, run};
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "x86_64-unknown-linux-gnu";
/// Without the half of the programs that only a debugger reads, which the guest would keep in memory.
const RUSTFLAGS: &str = "-C target-feature=+crt-static -C strip=debuginfo";
/// The program with the library's tests, and its modules that are about real devices.
const PROGRAM: &str = "it";
const MODULES: [&str; 2] = ["engine::", "polled::"];

/// A test program.
#[derive(Debug, PartialEq, Eq)]
pub struct Program {
    /// The name of its source file.
    pub name: String,
    /// The program.
    pub file: PathBuf,
    /// Names of its tests.
    pub tests: Vec<String>,
}

/// Builds the programs and asks each for its tests.
pub fn build() -> Result<Vec<Program>, Failure> {
    let mut command = cargo(&["test", "-p", "wrote", "--no-run"]);
    // With a target named, the flags are for it alone: macros are built for here, and not static.
    command.args(["--target", TARGET]).env("RUSTFLAGS", RUSTFLAGS);
    // An emulated processor is slow enough.
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

/// The tests in what the harness lists.
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
