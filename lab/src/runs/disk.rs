//! `cargo xtask lab disk`: runs the caller's command in a folder on a slow disk.

use crate::tools::disks::{Disk, DiskKind};
use crate::tools::failure::{Failure, Tried};
use crate::tools::run::{start, until};
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
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
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
