//! Logs on simulated disks that fail and lose their power.

use crate::tools::failure::Failure;
use crate::tools::report::Report;
use crate::tools::repository::release;
use crate::tools::run::{HANG, Show, run};
use std::process::Command;

/// Options of the lab.
#[derive(Clone, Copy, clap::Args)]
pub struct Arguments {
    /// How many seeds.
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub seeds: u64,
    /// The first seed; drawn and printed where none is given.
    #[arg(long, value_name = "N")]
    pub from_seed: Option<u64>,
    /// Let every disk hide faults: flushes that lie, bits that rot, misdirected reads.
    #[arg(long)]
    pub hidden_faults: bool,
}

impl Arguments {
    /// This number of seeds, from a drawn one, without hidden faults.
    pub fn of(seeds: u64) -> Arguments {
        Arguments { seeds, from_seed: None, hidden_faults: false }
    }

    /// The same with hidden faults.
    pub fn hidden(seeds: u64) -> Arguments {
        Arguments { hidden_faults: true, ..Arguments::of(seeds) }
    }
}

/// Runs one program per seed, with random faults and power cuts.
pub fn lab(report: &mut Report, arguments: Arguments) -> Result<(), Failure> {
    let Arguments { seeds, from_seed, hidden_faults } = arguments;
    let from_seed = from_seed.unwrap_or_else(super::draw_seed);
    let hidden = if hidden_faults { " --hidden-faults" } else { "" };
    report.step(&format!("lab sim{hidden}: {seeds} seeds from {from_seed}"), || {
        let mut command = Command::new(release("lab")?);
        command.arg("sim");
        command.args(["--seeds", &seeds.to_string(), "--from-seed", &from_seed.to_string()]);
        command.args(hidden_faults.then_some("--hidden-faults"));
        run(&mut command, HANG, Show::Live)?.success("lab sim").map(drop)
    })
}
