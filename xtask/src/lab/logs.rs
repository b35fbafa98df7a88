//! The labs of the log: processes that are killed, and simulated disks.

use crate::failure::Failure;
use crate::programs::cargo_tests;
use crate::report::Report;
use crate::repository::{cargo, release_lab};
use crate::run::{HANG, Show, run};
use std::process::Command;

/// Options of the lab that kills.
#[derive(Clone, Copy, clap::Args)]
pub struct Kill {
    /// How many processes are killed.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub times: u32,
    /// Draw the moments from this seed; drawn and printed where none is given.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// Options of the lab of simulated disks.
#[derive(Clone, Copy, clap::Args)]
pub struct Sim {
    /// How many seeds.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub seeds: u64,
    /// The first seed; drawn and printed where none is given.
    #[arg(long, value_name = "N")]
    pub from_seed: Option<u64>,
}

/// Runs the test that kills processes at random moments while they append to a log, more often than
/// `cargo test` does.
pub fn kill(report: &mut Report, Kill { times, seed }: Kill) -> Result<(), Failure> {
    report.step(&format!("lab kill: {times} times"), || {
        // In release: a faster log does more in each moment.
        let words = ["test", "--release", "-p", "wrote", "--test", "log_kill", "--", "--nocapture"];
        let mut command = cargo(&words);
        command.env("WROTE_KILLS", times.to_string());
        command.envs(seed.map(|seed| ("WROTE_SEED", seed.to_string())));
        cargo_tests(&mut command)
    })
}

/// Runs one program a seed, with random faults and power cuts.
pub fn sim(report: &mut Report, Sim { seeds, from_seed }: Sim) -> Result<(), Failure> {
    let from_seed = from_seed.unwrap_or_else(super::draw_seed);
    report.step(&format!("lab sim: {seeds} seeds from {from_seed}"), || {
        let mut command = Command::new(release_lab("log-sim")?);
        command.args(["--seeds", &seeds.to_string(), "--from-seed", &from_seed.to_string()]);
        run(&mut command, HANG, Show::Live)?.success("log-sim").map(drop)
    })
}
