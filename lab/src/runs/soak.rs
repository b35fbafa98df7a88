//! The lab `soak`: a log in use for a long time on a small disk.
//!
//! The room is short: the verb `soak` does the work.

use super::power_cut::disk::Disk;
use super::power_cut::{EXT4, lacking};
use crate::tools::failure::Failure;
use crate::tools::report::Report;
use crate::tools::repository::{release, target};
use crate::tools::run::{HANG, Show, run};
use std::process::Command;
use std::time::Duration;

/// Options of the lab.
#[derive(Clone, Copy, clap::Args)]
pub struct Arguments {
    /// How long.
    #[arg(long, value_name = "TIME", value_parser = super::duration, default_value = "10m")]
    pub time: Duration,
}

/// Appends to a log on an ext4 of 320 MiB, and reads it.
pub fn lab(report: &mut Report, Arguments { time }: Arguments) -> Result<(), Failure> {
    if let Some(because) = lacking() {
        return report.skip("lab soak", because);
    }
    report.step(&format!("lab soak: {} s", time.as_secs()), || {
        let disk = Disk::new(&target(), EXT4)?;
        let mut command = Command::new(release("lab")?);
        command.arg("soak");
        command.arg(disk.point()).args(["--seconds", &time.as_secs().to_string()]);
        run(&mut command, time + HANG, Show::Live)?.success("lab soak").map(drop)
    })
}
