//! `cargo xtask lab`: machines that refuse or fail things, and wrote on them.

mod bench;
mod confine;
mod kill;
mod mount;
mod nvme;
mod power_cut;
mod sim;
mod strange_fs;
mod sysctl;

pub use mount::Mount;
pub use strange_fs::build as build_strange_fs;

use crate::failure::Failure;
use crate::packages::{self, GUEST, LABS};
use crate::report::{Outcome, Report};

/// See wrote cope on machines that refuse or fail things.
#[derive(clap::Args)]
pub struct Arguments {
    #[command(subcommand)]
    which: Which,
}

#[derive(Clone, Copy, clap::Subcommand)]
enum Which {
    /// A container that forbids io_uring, an old kernel, little memory that may be locked.
    Confine,
    /// A file system that refuses direct I/O, takes short writes, fails a flush.
    StrangeFs,
    /// A guest whose disks can be polled.
    Nvme,
    /// File systems that lose their power while they are written to (as root).
    PowerCut(power_cut::Arguments),
    /// Simulated disks that fail and lose their power, by many seeds.
    Sim(sim::Arguments),
    /// Processes that are killed while they append to a log.
    Kill(kill::Arguments),
    /// All of them.
    All,
}

/// Runs the labs asked for.
pub fn lab(arguments: &Arguments) -> Result<(), Failure> {
    let mut report = Report::default();
    // A simulation needs none, and is to be repeated quickly.
    if !matches!(arguments.which, Which::Sim(_)) {
        let needed = [LABS, GUEST].concat();
        report.step("Debian packages", || packages::install(&needed).map(|()| Outcome::Passed))?;
    }
    match arguments.which {
        Which::Confine => confine::lab(&mut report)?,
        Which::StrangeFs => strange_fs::lab(&mut report)?,
        Which::Nvme => nvme::lab(&mut report, true)?,
        Which::PowerCut(arguments) => power_cut::lab(&mut report, arguments)?,
        Which::Sim(arguments) => sim::lab(&mut report, arguments)?,
        Which::Kill(arguments) => kill::lab(&mut report, arguments)?,
        Which::All => {
            all(&mut report, true)?;
            // Not among all: `cargo xtask test` has killed some already.
            kill::lab(&mut report, kill::Arguments::default())?;
        }
    }
    report.finish()
}

/// Runs every lab, for a report that may hold more. What a lab lacks is a failure where it may be
/// installed (`install`), else the lab is skipped.
pub fn all(report: &mut Report, install: bool) -> Result<(), Failure> {
    confine::lab(report)?;
    strange_fs::lab(report)?;
    sim::lab(report, sim::Arguments::default())?;
    power_cut::lab(report, power_cut::Arguments::default())?;
    nvme::lab(report, install)
}
