//! A log in use for a long time on a small disk.

use super::power_cut::{EXT4, disk::Disk, lacking};
use crate::failure::Failure;
use crate::report::Report;
use crate::repository::{release_lab, target};
use crate::run::{HANG, Show, run};
use std::process::Command;
use std::time::Duration;

/// Options of the lab.
#[derive(Clone, Copy, clap::Args)]
pub struct Arguments {
    /// How long.
    #[arg(long, value_name = "TIME", value_parser = crate::test::duration, default_value = "10m")]
    pub time: Duration,
}

/// Appends to a log on an ext4 of 320 MiB, and reads it.
pub fn lab(report: &mut Report, Arguments { time }: Arguments) -> Result<(), Failure> {
    if let Some(because) = lacking() {
        return report.skip("lab soak", because);
    }
    report.step(&format!("lab soak: {} s", time.as_secs()), || {
        let disk = Disk::new(&target(), EXT4)?;
        let mut command = Command::new(release_lab("soak")?);
        command.arg(disk.point()).args(["--seconds", &time.as_secs().to_string()]);
        run(&mut command, time + HANG, Show::Live)?.success("soak").map(drop)
    })
}
