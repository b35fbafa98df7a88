//! The lab `disk`: a command of the caller on a slow disk of its own.
//!
//! The room is short: the disks are made in another.

use crate::tools::disks::{Disk, DiskKind};
use crate::tools::failure::Failure;
use crate::tools::run::{Show, run};
use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(24 * 3600);

/// Run a command in a folder of a slow disk, which is removed afterwards.
#[derive(Clone, clap::Args)]
pub struct Arguments {
    kind: DiskKind,
    /// The program.
    program: OsString,
    /// Its arguments.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Makes the disk and runs the command there; fails as the command does.
pub fn disk(Arguments { kind, program, words }: Arguments) -> Result<(), Failure> {
    let disk = Disk::make(kind)?;
    let mut command = Command::new(&program);
    command.args(words).current_dir(disk.as_ref().map_or(".".as_ref(), Disk::path));
    run(&mut command, LIMIT, Show::Live)?.success(&program.to_string_lossy()).map(drop)
}
