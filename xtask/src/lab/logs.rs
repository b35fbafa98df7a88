//! Logs on simulated disks that fail and lose their power.

use crate::failure::Failure;
use crate::report::Report;
use crate::repository::release_lab;
use crate::run::{HANG, Show, run};
use std::process::Command;

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

/// Runs one program a seed, with random faults and power cuts.
pub fn sim(report: &mut Report, Sim { seeds, from_seed }: Sim) -> Result<(), Failure> {
    let from_seed = from_seed.unwrap_or_else(super::draw_seed);
    report.step(&format!("lab sim: {seeds} seeds from {from_seed}"), || {
        let mut command = Command::new(release_lab("log-sim")?);
        command.args(["--seeds", &seeds.to_string(), "--from-seed", &from_seed.to_string()]);
        run(&mut command, HANG, Show::Live)?.success("log-sim").map(drop)
    })
}
