//! The log on simulated disks: programs of many seeds, each with faults and power cuts by chance.

use crate::failure::Failure;
use crate::report::{Outcome, Report};
use crate::repository::{CARGO_LIMIT, release};
use crate::run::{Show, run};
use std::process::Command;

/// What is asked of the lab.
#[derive(Clone, Copy, clap::Args)]
pub struct Arguments {
    /// How many seeds.
    #[arg(long, value_name = "N", default_value_t = SEEDS)]
    seeds: u64,
    /// The first of them.
    #[arg(long, value_name = "N", default_value_t = 0)]
    from_seed: u64,
}

const SEEDS: u64 = 100_000;

impl Default for Arguments {
    fn default() -> Arguments {
        Arguments { seeds: SEEDS, from_seed: 0 }
    }
}

/// Carries out the programs of these seeds.
pub fn lab(report: &mut Report, arguments: Arguments) -> Result<(), Failure> {
    let mut program = None;
    report.step("lab sim: build", || {
        program = Some(release("log-sim", "log-sim")?);
        Ok(Outcome::Passed)
    })?;
    let Some(program) = program else { return Ok(()) };
    let Arguments { seeds, from_seed } = arguments;
    report.step(&format!("lab sim: {seeds} seeds from {from_seed}"), || {
        let mut command = Command::new(program);
        command.args(["--seeds", &seeds.to_string(), "--from-seed", &from_seed.to_string()]);
        run(&mut command, CARGO_LIMIT, Show::Live)?.success("log-sim")?;
        Ok(Outcome::Passed)
    })
}
