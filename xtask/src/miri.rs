//! The campaigns `miri` and `threads`. The first interprets small runs of the library to find
//! undefined behaviour. The second runs threads that share data without a lock in every possible
//! order of their steps.
//!
//! The file is short because rustup, Miri and loom do the work.

use lab::tools::failure::Failure;
use lab::tools::programs::cargo_tests;
use lab::tools::report::Report;
use lab::tools::repository::{cargo, root, target};
use lab::tools::run::{HANG, Show, run};
use std::process::Command;

/// The models of references that are tested, and Miri's flag for each.
const MODELS: [(&str, &str); 2] =
    [("Stacked Borrows", ""), ("Tree Borrows", "-Zmiri-tree-borrows")];
/// Miri's flags. They allow the log to pass buffers to producers as numbers with exposed
/// provenance, and to use real clocks.
const FLAGS: &str = "-Zmiri-disable-isolation -Zmiri-permissive-provenance";

/// Interprets the tests that are meant for Miri, with each model. Miri is part of the nightly
/// compiler, which rustup installs.
pub fn steps(report: &mut Report) -> Result<(), Failure> {
    let mut rustup = Command::new("rustup");
    let words = ["toolchain", "install", "nightly", "--no-self-update", "--profile", "minimal"];
    rustup.args(words).args(["--component", "miri", "--component", "rust-src"]);
    let missing = if is_there() { None } else { run(&mut rustup, HANG, Show::Live)?.trouble };
    for (model, flag) in MODELS {
        report.step(&format!("Miri: {model}"), || {
            if let Some(trouble) = &missing {
                return Err(Failure::Skipped(format!("rustup could not install it: {trouble}")));
            }
            let mut command = miri_command();
            command
                .args(["test", "--package", "wrote", "--test", "it", "interpreted::"])
                .current_dir(root())
                .env("MIRIFLAGS", format!("{FLAGS} {flag}"))
                .env("CARGO_TARGET_DIR", target().join("miri"));
            cargo_tests(&mut command)
        })?;
    }
    Ok(())
}

fn is_there() -> bool {
    let answer = miri_command().arg("--version").output();
    answer.is_ok_and(|answer| answer.status.success())
}

fn miri_command() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo", "miri"]);
    command
}

/// The maximum number of preemptions in each order. Most bugs need one or two; with three, the run
/// takes many minutes.
const PREEMPTIONS: &str = "2";

/// Tries every order. Everything is rebuilt for this in a separate folder.
pub fn model(report: &mut Report) -> Result<(), Failure> {
    let mut command = cargo(&["test", "--release", "--package", "wrote", "--lib", "log::model"]);
    command
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", target().join("model"))
        .env("LOOM_MAX_PREEMPTIONS", PREEMPTIONS);
    report.step("every order of threads", || cargo_tests(&mut command))
}
