//! `cargo xtask lab`: machines that refuse or fail things, and wrote on them.

mod bench;
mod confine;
mod mount;
mod strange_fs;
mod sysctl;

use crate::failure::Failure;
use crate::packages::{self, LABS};
use crate::report::{Outcome, Report};

/// See wrote cope on machines that refuse or fail things.
#[derive(clap::Args)]
pub struct Arguments {
    /// Which machines.
    #[arg(value_enum)]
    which: Which,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Which {
    /// A container that forbids io_uring, an old kernel, little memory that may be locked.
    Confine,
    /// A file system that refuses direct I/O, takes short writes, fails a flush.
    StrangeFs,
    /// All of them.
    All,
}

/// Runs the labs asked for.
pub fn lab(arguments: &Arguments) -> Result<(), Failure> {
    let mut report = Report::default();
    report.step("Debian packages", || packages::install(LABS).map(|()| Outcome::Passed))?;
    match arguments.which {
        Which::Confine => confine::lab(&mut report)?,
        Which::StrangeFs => strange_fs::lab(&mut report)?,
        Which::All => all(&mut report)?,
    }
    report.finish()
}

/// Runs every lab, for a report that may hold more.
pub fn all(report: &mut Report) -> Result<(), Failure> {
    confine::lab(report)?;
    strange_fs::lab(report)
}
