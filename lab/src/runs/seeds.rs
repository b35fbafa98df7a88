//! The labs of many seeds: `sim`, `damage`, `commands` and `programs`. Each runs the verb of the
//! same name.

use crate::fixtures::Seeds;
use crate::tools::failure::{Failure, Tried};
use crate::tools::programs::debug;
use crate::tools::report::Report;
use crate::tools::repository::{release, target};
use crate::tools::run::{HANG, Show, run};
use std::path::Path;
use std::process::Command;

/// A file system in memory (`tmpfs(5)`).
const MEMORY: &str = "/dev/shm";
/// One in this number of damaged logs lies on the disk of the build, if the others are in memory.
const ON_DISK: u64 = 10;
/// How many seeds where no number is given.
const SEEDS: u64 = 10_000;

/// Options of the labs.
#[derive(Clone, Copy, Default, clap::Args)]
#[group(id = "range")]
pub struct Arguments {
    /// How many seeds: simulated logs, damaged logs, command lines, or programs.
    #[arg(long, value_name = "N", visible_aliases = ["logs", "calls"], default_value_t = SEEDS)]
    seeds: u64,
    /// The first seed; drawn and printed where none is given.
    #[arg(long, value_name = "N")]
    from_seed: Option<u64>,
}

impl Arguments {
    /// This number of seeds, from a drawn one.
    pub fn of(seeds: u32) -> Arguments {
        Arguments { seeds: seeds.into(), from_seed: None }
    }

    /// Returns the seeds, from a drawn one where none is given.
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
    /// This number of seeds, from a drawn one.
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

/// Damages the logs of some seeds, reads them, and repairs them.
///
/// Each log takes about twenty flushes and a hundred requests to the disk, so on a busy disk a
/// round takes hours. The tests here do not depend on the disk, so most logs lie in memory.
pub fn damage(report: &mut Report, arguments: Arguments) -> Result<(), Failure> {
    let Seeds { from, count: mut on_disk } = arguments.seeds();
    let mut damage = |logs: u64, place: &str, parent: &Path| {
        report.step(&format!("lab damage: {logs} logs {place} from seed {from}"), || {
            let folder = tempfile::tempdir_in(parent).tried(parent.display())?;
            let mut command = Command::new(release("lab")?);
            command.arg("damage").arg("--folder").arg(folder.path());
            tried(&mut command, logs, from)
        })
    };
    if Path::new(MEMORY).is_dir() {
        damage(on_disk, "in memory", Path::new(MEMORY))?;
        on_disk = on_disk.div_ceil(ON_DISK);
    }
    damage(on_disk, "on the disk", &target())
}

/// Runs the command lines of some seeds.
pub fn commands(report: &mut Report, arguments: Arguments) -> Result<(), Failure> {
    of_command(report, ("commands", "calls"), arguments)
}

/// Traces the programs of some seeds.
pub fn programs(report: &mut Report, arguments: Arguments) -> Result<(), Failure> {
    of_command(report, ("programs", "programs"), arguments)
}

fn of_command(
    report: &mut Report,
    (verb, what): (&str, &str),
    arguments: Arguments,
) -> Result<(), Failure> {
    let Seeds { from, count } = arguments.seeds();
    report.step(&format!("lab {verb}: {count} {what} from seed {from}"), || {
        // On a disk, where the command writes directly.
        let folder = tempfile::tempdir_in(target()).tried("the target folder")?;
        let mut command = Command::new(debug("lab")?);
        command.arg(verb).arg("--program").arg(debug("wrote")?);
        command.arg("--folder").arg(folder.path());
        tried(&mut command, count, from)
    })
}

fn tried(command: &mut Command, count: u64, from: u64) -> Result<(), Failure> {
    command.args(["--seeds", &count.to_string(), "--from-seed", &from.to_string()]);
    run(command, 4 * HANG, Show::Live)?.success("the lab").map(drop)
}
