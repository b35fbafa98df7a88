//! The labs that try many seeds, `sim` and `programs`. Each runs the verb of the same name.

use crate::fixtures::Seeds;
use crate::tools::failure::{Failure, Tried};
use crate::tools::programs::debug;
use crate::tools::report::Report;
use crate::tools::repository::{release, target};
use crate::tools::run::{HANG, Show, run};
use std::process::Command;

/// The default number of seeds.
const SEEDS: u64 = 10_000;

/// Options of the labs.
#[derive(Clone, Copy, Default, clap::Args)]
#[group(id = "range")]
pub struct Arguments {
    /// How many seeds: simulated logs, or programs.
    #[arg(long, value_name = "N", default_value_t = SEEDS)]
    seeds: u64,
    /// The first seed; drawn and printed where none is given.
    #[arg(long, value_name = "N")]
    from_seed: Option<u64>,
}

impl Arguments {
    /// Returns options with this number of seeds, beginning with a drawn one.
    pub fn of(seeds: u32) -> Arguments {
        Arguments { seeds: seeds.into(), from_seed: None }
    }

    /// Returns the seeds, beginning with a drawn one unless the first was given.
    pub fn seeds(self) -> Seeds {
        Seeds { from: self.from_seed.unwrap_or_else(super::draw_seed), count: self.seeds }
    }
}

/// Options of the lab `sim`.
#[derive(Clone, Copy, clap::Args)]
pub struct SimArguments {
    /// The seeds.
    #[command(flatten)]
    pub seeds: Arguments,
    /// Let every disk hide faults: flushes that lie, bits that rot, misdirected reads.
    #[arg(long)]
    pub hidden_faults: bool,
}

impl SimArguments {
    /// Returns options with this number of seeds, beginning with a drawn one.
    pub fn of(seeds: u32, hidden_faults: bool) -> SimArguments {
        SimArguments { seeds: Arguments::of(seeds), hidden_faults }
    }
}

/// Runs one program per seed on a simulated disk, with random faults and power losses.
pub fn sim(report: &mut Report, arguments: SimArguments) -> Result<(), Failure> {
    let SimArguments { seeds, hidden_faults } = arguments;
    let Seeds { from, count } = seeds.seeds();
    let hidden = if hidden_faults { " --hidden-faults" } else { "" };
    report.step(&format!("lab sim{hidden}: {count} seeds from {from}"), || {
        let mut command = Command::new(release("lab")?);
        command.arg("sim").args(hidden_faults.then_some("--hidden-faults"));
        tried(&mut command, count, from)
    })
}

/// Traces the programs that some seeds yield.
pub fn programs(report: &mut Report, arguments: Arguments) -> Result<(), Failure> {
    let Seeds { from, count } = arguments.seeds();
    report.step(&format!("lab programs: {count} programs from seed {from}"), || {
        // The folder is on a disk, because the programs use direct writes.
        let folder = tempfile::tempdir_in(target()).tried("the target folder")?;
        let mut command = Command::new(debug("lab")?);
        command.arg("programs").arg("--program").arg(debug("wrote")?);
        command.arg("--folder").arg(folder.path());
        tried(&mut command, count, from)
    })
}

fn tried(command: &mut Command, count: u64, from: u64) -> Result<(), Failure> {
    command.args(["--seeds", &count.to_string(), "--from-seed", &from.to_string()]);
    run(command, 4 * HANG, Show::Live)?.success("the lab").map(drop)
}
