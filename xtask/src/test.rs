//! `cargo xtask test`: runs the product's tests. After a failed step, the run continues.
//!
//! The file is short because the tests are programs that cargo builds.

use crate::{bindings, nightly};
use lab::tools::clients;
use lab::tools::failure::Failure;
use lab::tools::packages::{LABS, MPI, TESTS, provide};
use lab::tools::programs::{self, Program, cargo_tests, run_all};
use lab::tools::report::{Outcome, Report};
use lab::tools::repository::cargo;
use std::process::Command;

/// Test the product, after installing missing Debian packages.
///
/// The lints are in `cargo xtask check`, and the long runs in `cargo xtask nightly`. The last line
/// gives the numbers of passed, failed and skipped tests and steps.
#[derive(clap::Args)]
pub struct Arguments {
    /// Install nothing; tests that need a missing program are skipped
    #[arg(long)]
    no_install: bool,
}

/// Runs the tests.
pub fn test(arguments: &Arguments) -> Result<(), Failure> {
    let install = !arguments.no_install;
    let mut report = Report::default();
    report.step("Debian packages", || provide(&[LABS, TESTS, MPI].concat(), install))?;
    report.step("modules for pages", || clients::pages(install))?;
    report.step("build of the tests", || programs::build().map(drop))?;
    tests(&mut report, "tests", &[])?;
    report.step("examples in documentation", || {
        let mut command = cargo(&["test", "--workspace", "--doc", "--no-fail-fast"]);
        cargo_tests(command.arg(programs::features()))
    })?;
    bindings::smoke(&mut report)?;
    nightly::list(&mut report);
    report.finish()
}

/// Runs every test program with `arguments` as one step, and adds each program's time to the
/// report.
pub fn tests(report: &mut Report, name: &str, arguments: &[&str]) -> Result<(), Failure> {
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
