//! The program `lab`, with a verb for each task on a machine that refuses or fails things.

use crate::runs::seeds::SimArguments;
use crate::runs::trace::steps::Opened;
use clap::Parser;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

mod confine;
mod power_cut;
mod programs;
pub mod sim;
mod strange_fs;

/// The reason why a verb failed, to be shown to a person.
pub type Trouble = Box<dyn std::error::Error + Send + Sync>;

/// Work on machines that refuse or fail. `cargo xtask lab` runs it.
#[derive(Parser)]
#[command(name = "lab")]
enum Verb {
    /// Run a command with less allowed
    Confine(confine::Arguments),
    /// Write until the power is cut, or check the files that are left
    #[command(subcommand)]
    PowerCut(power_cut::Verb),
    /// Trace drawn programs, and compare the verdicts with the states of a power cut
    Programs(programs::Arguments),
    /// Try the log on simulated disks
    Sim(SimArguments),
    /// Change files step by step
    Steps {
        /// Separated by `, `
        steps: String,
        /// A folder that has been prepared for them
        folder: PathBuf,
        /// Pass over steps that fail
        #[arg(long)]
        any: bool,
    },
    /// Mount a file system in memory that misbehaves on demand
    StrangeFs(strange_fs::Arguments),
}

/// Runs the verb given on the command line.
pub fn main() -> ExitCode {
    let done = match Verb::parse() {
        Verb::Confine(arguments) => confine::run(&arguments),
        Verb::PowerCut(verb) => power_cut::run(verb),
        Verb::Programs(arguments) => programs::run(&arguments),
        Verb::Sim(arguments) => sim::run(arguments),
        Verb::Steps { steps, folder, any } => take(&steps, &folder, any),
        Verb::StrangeFs(arguments) => strange_fs::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            eprintln!("lab: {trouble}");
            ExitCode::FAILURE
        }
    }
}

/// Fails if rules were broken; the failures have already been printed.
fn none_broken(broken: usize) -> Result<(), Trouble> {
    if broken == 0 { Ok(()) } else { Err(format!("{broken} broken").into()) }
}

/// Returns a minimal form of the `broken` value: repeatedly replaces it with the first of its
/// `smaller` forms that is also broken.
pub fn least<T, E>(
    mut broken: T,
    smaller: impl Fn(&T) -> Vec<T>,
    mut is_broken: impl FnMut(&T) -> Result<bool, E>,
) -> Result<T, E> {
    'smaller: loop {
        for one in smaller(&broken) {
            if is_broken(&one)? {
                broken = one;
                continue 'smaller;
            }
        }
        return Ok(broken);
    }
}

/// Returns copies of a list, each of which leaves out one element.
pub fn without_each<T: Clone>(all: &[T]) -> impl Iterator<Item = Vec<T>> {
    (0..all.len()).map(|at| [&all[..at], &all[at + 1..]].concat())
}

/// Performs all steps. If `any` is set, steps may fail.
fn take(steps: &str, folder: &Path, any: bool) -> Result<(), Trouble> {
    let mut opened = Opened::default();
    for step in steps.split(", ") {
        let taken = opened.take(step, folder);
        if !any {
            taken.map_err(|error| format!("{step}: {error}"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Verb::command().debug_assert();
        let line = "lab strange-fs /mnt --fast-bytes 2GB --fast-rate 400MB/s --slow-rate 40MB/s \
                    --idle-restores 2s --forget --stall-after 1GB --stall 1s";
        assert!(Verb::try_parse_from(line.split_whitespace()).is_ok());
        let line = "lab confine --io-uring eperm -- wrote bench --only small";
        assert!(Verb::try_parse_from(line.split_whitespace()).is_ok());
    }
}
