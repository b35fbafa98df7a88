//! Kills processes at random moments while they append to a log.

use crate::failure::Failure;
use crate::programs::cargo_tests;
use crate::report::Report;
use crate::repository::cargo;

/// Options of the lab.
#[derive(Clone, Copy, clap::Args)]
pub struct Arguments {
    /// How many processes are killed.
    #[arg(long, value_name = "N", default_value_t = TIMES)]
    pub times: u32,
    /// Draw the moments from this seed; drawn and printed where none is given.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

const TIMES: u32 = 200;

/// Runs the test that kills, more often than `cargo test` does.
pub fn lab(report: &mut Report, Arguments { times, seed }: Arguments) -> Result<(), Failure> {
    report.step(&format!("lab kill: {times} times"), || {
        // In release: a faster log does more in each moment.
        let words = ["test", "--release", "-p", "wrote", "--test", "log_kill", "--", "--nocapture"];
        let mut command = cargo(&words);
        command.env("WROTE_KILLS", times.to_string());
        command.envs(seed.map(|seed| ("WROTE_SEED", seed.to_string())));
        cargo_tests(&mut command)
    })
}
