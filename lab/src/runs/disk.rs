//! The labs `disk` and `soak`: a command of the caller, or a log in use for a long time, on a disk
//! of its own.
//!
//! The room is short: the disks are made in other rooms.

use super::power_cut::{self, EXT4, lacking};
use crate::tools::disks::{Disk, DiskKind};
use crate::tools::failure::{Failure, Tried};
use crate::tools::report::Report;
use crate::tools::repository::{release, target};
use crate::tools::run::{HANG, Show, run, start, until};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(24 * 3600);
const PAUSE: Duration = Duration::from_millis(20);

/// Run a command in a folder of a slow disk, which is removed afterwards.
#[derive(Clone, clap::Args)]
pub struct Arguments {
    kind: DiskKind,
    /// The command with its arguments.
    #[arg(last = true, required = true)]
    command: Vec<std::ffi::OsString>,
}

/// Makes the disk and runs the command there; fails as the command does.
pub fn disk(arguments: &Arguments) -> Result<(), Failure> {
    let disk = Disk::make(arguments.kind)?;
    let Some((program, words)) = arguments.command.split_first() else { unreachable!("required") };
    let mut command = Command::new(program);
    command.args(words);
    if let Some(disk) = &disk {
        command.current_dir(disk.path());
    }
    let mut process = start(&mut command)?;
    let ended = || process.child().try_wait().tried(program.display());
    match until(LIMIT, PAUSE, ended)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => Err(Failure::Failed(format!("{}: {status}", program.display()))),
        None => Err(Failure::OutOfTime),
    }
}

/// Options of the lab `soak`.
#[derive(Clone, Copy, clap::Args)]
pub struct SoakArguments {
    /// How long.
    #[arg(long, value_name = "TIME", value_parser = super::duration, default_value = "10m")]
    pub time: Duration,
}

/// Appends to a log on an ext4 of 320 MiB, and reads it.
pub fn soak(report: &mut Report, SoakArguments { time }: SoakArguments) -> Result<(), Failure> {
    if let Some(because) = lacking() {
        return report.skip("lab soak", because);
    }
    report.step(&format!("lab soak: {} s", time.as_secs()), || {
        let disk = power_cut::disk::Disk::new(&target(), EXT4)?;
        let mut command = Command::new(release("lab")?);
        command.arg("soak");
        command.arg(disk.point()).args(["--seconds", &time.as_secs().to_string()]);
        run(&mut command, time + HANG, Show::Live)?.success("lab soak").map(drop)
    })
}
