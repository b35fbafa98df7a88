//! Random command lines for the built command, with damaged files, closed descriptors and limits.

use crate::tools::failure::{Failure, Tried};
use crate::tools::programs::debug;
use crate::tools::report::Report;
use crate::tools::repository::target;
use crate::tools::run::{HANG, Show, run};
use std::process::Command;

/// Options of the lab.
#[derive(Clone, Copy, clap::Args)]
pub struct Arguments {
    /// How many command lines.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub calls: u64,
    /// The seed of the first; drawn and printed where none is given.
    #[arg(long, value_name = "N")]
    pub from_seed: Option<u64>,
}

impl Arguments {
    /// This number of command lines, from a drawn seed.
    pub fn of(calls: u64) -> Arguments {
        Arguments { calls, from_seed: None }
    }
}

/// Runs the command lines of some seeds.
pub fn lab(report: &mut Report, Arguments { calls, from_seed }: Arguments) -> Result<(), Failure> {
    let from_seed = from_seed.unwrap_or_else(super::draw_seed);
    report.step(&format!("lab commands: {calls} calls from seed {from_seed}"), || {
        let program = debug("wrote")?;
        // On a disk, where the command writes directly.
        let folder = tempfile::tempdir_in(target()).tried("the target folder")?;
        let mut command = Command::new(debug("lab")?);
        command.arg("commands");
        command.arg("--program").arg(program).arg("--folder").arg(folder.path());
        command.args(["--calls", &calls.to_string(), "--from-seed", &from_seed.to_string()]);
        run(&mut command, 4 * HANG, Show::Live)?.success("lab commands").map(drop)
    })
}
