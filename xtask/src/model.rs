//! `cargo xtask model`: what several threads share without a lock, in every order of their steps.

use crate::failure::Failure;
use crate::report::{Counts, Outcome, Report};
use crate::repository::{CARGO_LIMIT, cargo, target};
use crate::run::{Show, run};
use std::process::Command;

/// How often a thread may be interrupted in favour of another, at most, in each order that is tried. Most
/// mistakes need one or two; with three it takes many minutes.
pub const PREEMPTIONS: u32 = 2;

/// Try every order in which the threads that claim places in a log might come to each other.
#[derive(clap::Args)]
pub struct Arguments {
    /// How often a thread is interrupted at most where it need not wait.
    #[arg(long, value_name = "N", default_value_t = PREEMPTIONS)]
    preemptions: u32,
}

/// Tries them, and says what came of each model.
pub fn model(arguments: &Arguments) -> Result<(), Failure> {
    let mut report = Report::default();
    report.step("every order of threads", || {
        let finished = run(&mut command(arguments.preemptions), CARGO_LIMIT, Show::Live)?;
        Ok(Outcome::Tests(Counts::read(&finished, ""), finished.trouble))
    })?;
    report.finish()
}

/// The command that tries them. Everything is built again for it, in a folder of its own.
pub fn command(preemptions: u32) -> Command {
    let mut command = cargo(&["test", "--release", "--package", "wrote", "--lib", "log::model"]);
    command
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", target().join("model"))
        .env("LOOM_MAX_PREEMPTIONS", preemptions.to_string());
    command
}
