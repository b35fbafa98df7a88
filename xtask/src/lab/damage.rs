//! Logs whose files are damaged as a whole: swapped, lost, doubled, emptied, older than they were.

use crate::failure::{Failure, Tried};
use crate::report::Report;
use crate::repository::{release_lab, target};
use crate::run::{HANG, Show, run};
use std::process::Command;

/// Options of the lab.
#[derive(Clone, Copy, clap::Args)]
pub struct Arguments {
    /// How many damaged logs.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub logs: u64,
    /// The seed of the first; drawn and printed where none is given.
    #[arg(long, value_name = "N")]
    pub from_seed: Option<u64>,
}

/// Damages the logs of some seeds, reads them, and repairs them.
pub fn lab(report: &mut Report, Arguments { logs, from_seed }: Arguments) -> Result<(), Failure> {
    let from_seed = from_seed.unwrap_or_else(super::draw_seed);
    report.step(&format!("lab damage: {logs} logs from seed {from_seed}"), || {
        let folder = tempfile::tempdir_in(target()).tried("the target folder")?;
        let mut command = Command::new(release_lab("damage")?);
        command.arg("--folder").arg(folder.path());
        command.args(["--logs", &logs.to_string(), "--from-seed", &from_seed.to_string()]);
        run(&mut command, 4 * HANG, Show::Live)?.success("damage").map(drop)
    })
}
