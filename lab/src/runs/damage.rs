//! Logs with whole files damaged: swapped, lost, duplicated, emptied or outdated.

use crate::tools::failure::{Failure, Tried};
use crate::tools::report::Report;
use crate::tools::repository::{release, target};
use crate::tools::run::{HANG, Show, run};
use std::path::Path;
use std::process::Command;

/// A file system in memory (`tmpfs(5)`).
const MEMORY: &str = "/dev/shm";
/// One in this number of logs lies on the disk of the build, if the others are in memory.
const ON_DISK: u64 = 10;

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

impl Arguments {
    /// This number of logs, from a drawn seed.
    pub fn of(logs: u64) -> Arguments {
        Arguments { logs, from_seed: None }
    }
}

/// Damages the logs of some seeds, reads them, and repairs them.
///
/// Each log takes about twenty flushes and a hundred requests to the disk, so on a busy disk a
/// round takes hours. The tests here do not depend on the disk, so most logs lie in memory.
pub fn lab(report: &mut Report, Arguments { logs, from_seed }: Arguments) -> Result<(), Failure> {
    let from_seed = from_seed.unwrap_or_else(super::draw_seed);
    let mut on_disk = logs;
    if Path::new(MEMORY).is_dir() {
        damage(report, logs, from_seed, ("in memory", Path::new(MEMORY)))?;
        on_disk = logs.div_ceil(ON_DISK);
    }
    damage(report, on_disk, from_seed, ("on the disk", &target()))
}

fn damage(
    report: &mut Report,
    logs: u64,
    from_seed: u64,
    (place, parent): (&str, &Path),
) -> Result<(), Failure> {
    report.step(&format!("lab damage: {logs} logs {place} from seed {from_seed}"), || {
        let folder = tempfile::tempdir_in(parent).tried(parent.display())?;
        let mut command = Command::new(release("lab")?);
        command.arg("damage");
        command.arg("--folder").arg(folder.path());
        command.args(["--logs", &logs.to_string(), "--from-seed", &from_seed.to_string()]);
        run(&mut command, 4 * HANG, Show::Live)?.success("lab damage").map(drop)
    })
}
