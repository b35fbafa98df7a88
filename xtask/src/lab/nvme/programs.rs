//! The test programs that run in the guest: static, as nothing else is there, and each test by name.

use crate::failure::Failure;
use crate::repository::{CARGO_LIMIT, cargo};
use crate::run::{Show, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(60);
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
    let mut command = cargo(&["test", "-p", "wrote", "--no-run", "--message-format", "json"]);
    // With a target named, the flags are for it alone: macros are built for here, and not static.
    command.args(["--target", TARGET]).env("RUSTFLAGS", RUSTFLAGS);
    // An emulated processor is slow enough.
    command.env("CARGO_PROFILE_TEST_OPT_LEVEL", "1").env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    command.args(["--test", PROGRAM]);
    let finished = run(command.env("CARGO_TERM_COLOR", "never"), CARGO_LIMIT, Show::Quiet)?;
    let finished = finished.success("cargo test -p wrote --no-run, static")?;
    let mut programs = Vec::new();
    for (name, file) in executables(&finished.stdout) {
        let mut tests = list(&file)?;
        tests.retain(|test| MODULES.iter().any(|module| test.starts_with(module)));
        programs.push(Program { name, file, tests });
    }
    Ok(programs)
}

/// Name and file of each program in cargo's messages.
fn executables(messages: &str) -> Vec<(String, PathBuf)> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = |message: Value| {
        let name = message["target"]["name"].as_str()?.to_owned();
        Some((name, PathBuf::from(message["executable"].as_str()?)))
    };
    messages.filter(|message| message["profile"]["test"] == true).filter_map(program).collect()
}

fn list(program: &Path) -> Result<Vec<String>, Failure> {
    let mut command = Command::new(program);
    let finished = run(command.args(["--list", "--format", "terse"]), LIMIT, Show::Quiet)?;
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
    fn programs_are_taken_by_name_from_cargos_messages() {
        let messages = r#"{"target":{"name":"wrote"},"profile":{"test":false},"executable":null}
{"target":{"name":"engine"},"profile":{"test":true},"executable":"/t/deps/engine-1"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(executables(messages), [("engine".into(), PathBuf::from("/t/deps/engine-1"))]);
    }

    #[test]
    fn only_tests_are_taken_from_the_list() {
        assert_eq!(names("a_test: test\na_bench: benchmark\n\nb::c: test\n"), ["a_test", "b::c"]);
    }
}
