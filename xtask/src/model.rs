//! `cargo xtask model`: tries every order of the steps of threads that share data without a lock.

use lab::tools::failure::Failure;
use lab::tools::programs::cargo_tests;
use lab::tools::report::Report;
use lab::tools::repository::{cargo, target};

/// The most preemptions in each order. Most mistakes need one or two; with three the run takes many
/// minutes.
pub const PREEMPTIONS: u32 = 2;

/// Try every order in which the threads that claim places in a log can interleave.
#[derive(clap::Args)]
pub struct Arguments {
    /// The most preemptions of a thread that need not wait.
    #[arg(long, value_name = "N", default_value_t = PREEMPTIONS)]
    preemptions: u32,
}

/// Tries every order, and reports each model's result.
pub fn model(arguments: &Arguments) -> Result<(), Failure> {
    let mut report = Report::default();
    step(&mut report, arguments.preemptions)?;
    report.finish()
}

/// Adds this step to a `report`. Everything is built again for it, in a separate folder.
pub fn step(report: &mut Report, preemptions: u32) -> Result<(), Failure> {
    let mut command = cargo(&["test", "--release", "--package", "wrote", "--lib", "log::model"]);
    command
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", target().join("model"))
        .env("LOOM_MAX_PREEMPTIONS", preemptions.to_string());
    report.step("every order of threads", || cargo_tests(&mut command))
}
