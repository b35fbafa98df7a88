//! `cargo xtask lab`: runs wrote on machines that refuse or fail things.

mod bench;
pub mod confine;
pub mod devices;
mod guest;
pub mod kill;
pub mod log_writes;
pub mod power_cut;
pub mod seeds;
pub mod trace;

pub use bench::{result_rows, rows};

use crate::tools::failure::Failure;
use crate::tools::packages::{self, DEVICE_MAPPER, LABS, NVME};
use crate::tools::report::Report;
use confine::Share;
use rand::rngs::SysRng;
use rand::{Rng, RngExt, TryRng};
use std::time::Duration;

/// Run wrote on machines that refuse or fail things.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    lab: Lab,
}

#[derive(Clone, clap::Subcommand)]
enum Lab {
    /// A container that forbids io_uring, an old kernel, little memory that may be locked.
    Confine,
    /// A guest whose disks can be polled.
    Nvme,
    /// A guest whose disks fail reads, writes and flushes.
    FaultyDisk,
    /// File systems that lose their power while they are written to (as root).
    PowerCut(Moments),
    /// Every write recorded in a guest, and the power cut at each flush and between (as root).
    LogWrites(log_writes::Arguments),
    /// Simulated disks that fail and lose their power, by many seeds.
    Sim(seeds::SimArguments),
    /// Processes killed while they write.
    Kill(Moments),
    /// Drawn programs: the verdicts of `wrote trace` beside the states of its `crash`.
    Programs(seeds::Arguments),
    /// The verdicts of `wrote trace` beside power cuts (as root).
    Trace(Moments),
}

/// Options of a lab with random moments.
#[derive(Clone, Copy, clap::Args)]
pub struct Moments {
    /// How many, on each file system if the lab has several.
    #[arg(long, value_name = "N", visible_alias = "times", default_value_t = 200)]
    moments: u32,
    /// Draw them from this seed; drawn and printed where none is given.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl Moments {
    /// Returns options with this number of moments and a drawn seed.
    pub fn of(moments: u32) -> Moments {
        Moments { moments, seed: None }
    }

    fn seed(self) -> u64 {
        self.seed.unwrap_or_else(draw_seed)
    }
}

/// Runs a lab, and prints its report.
pub fn lab(arguments: &Arguments) -> Result<(), Failure> {
    let mut report = Report::default();
    let needed = match arguments.lab {
        Lab::Nvme => NVME,
        Lab::FaultyDisk | Lab::LogWrites(_) => DEVICE_MAPPER,
        Lab::Sim(_) | Lab::Kill(_) | Lab::Programs(_) => &[],
        _ => LABS,
    };
    report.step("Debian packages", || packages::provide(needed, true))?;
    match arguments.lab.clone() {
        Lab::Confine => {
            confine::lab(&mut report, Share::Engine)?;
            confine::lab(&mut report, Share::Rest)?;
        }
        Lab::Nvme => devices::nvme(&mut report, true)?,
        Lab::FaultyDisk => devices::faulty_disk(&mut report, true)?,
        Lab::PowerCut(arguments) => power_cut::lab(&mut report, arguments)?,
        Lab::LogWrites(arguments) => log_writes::lab(&mut report, &arguments, true)?,
        Lab::Sim(arguments) => seeds::sim(&mut report, arguments)?,
        Lab::Kill(arguments) => kill::lab(&mut report, arguments)?,
        Lab::Programs(arguments) => seeds::programs(&mut report, arguments)?,
        Lab::Trace(arguments) => trace::lab(&mut report, arguments)?,
    }
    report.finish()
}

/// Draws a seed that is short enough to be typed.
fn draw_seed() -> u64 {
    SysRng.try_next_u32().map_or(1, u64::from)
}

/// Draws a delay of 1 to `most_ms` milliseconds. Each doubling of the delay is equally likely.
fn draw_delay(random: &mut impl Rng, most_ms: f64) -> Duration {
    Duration::from_secs_f64(most_ms.powf(random.random_range(0.0..1.0)) / 1e3)
}

/// Parses a duration such as `40m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let duration: jiff::SignedDuration = text.parse().map_err(|_| "not a time such as 40m")?;
    Duration::try_from(duration).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit() {
        assert_eq!(duration("40m"), Ok(Duration::from_secs(40 * 60)));
        assert!(duration("40").is_err());
        assert!(duration("-1m").is_err());
    }
}
