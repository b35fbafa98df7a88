//! `cargo xtask peers` and `picture`: measure the command and other programs.
//!
//! This program runs the `wrote` command and reads its results, but does not use its crates. Only
//! `trial` uses the library, to do one piece of work as a program would.

mod contests;
mod pictures;

use clap::Parser;
use lab::tools::failure::{Failure, exit_code};
use lab::tools::run;
use std::process::ExitCode;

/// Measures wrote against programs that do the same work.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Verb {
    /// Measure wrote and its peers in turn, in one folder.
    Peers(contests::Arguments),
    /// Measure, and take the pictures of the documents.
    Picture,
}

fn main() -> ExitCode {
    let verb = Verb::parse();
    exit_code(run::heed_signals().and_then(|()| carry_out(verb)))
}

fn carry_out(verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Peers(arguments) => contests::peers(&arguments),
        Verb::Picture => pictures::make(),
    }
}
