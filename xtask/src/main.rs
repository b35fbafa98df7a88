//! `cargo xtask <verb>`: the tools of those who work on wrote.

mod book;
mod check;
mod dist;
mod fuzz;
mod growth;
mod miri;
mod model;
mod nightly;
mod peers;
mod picture;
mod release;
mod sections;
mod semver;
mod steady;
mod test;
mod times;
mod toolchains;
mod tools;
mod zram;

use clap::{Parser, Subcommand};
use lab::runs;
use lab::tools::failure::Failure;
use lab::tools::run;
use std::process::ExitCode;

/// The tools of those who work on wrote.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Check(check::Arguments),
    Test(test::Arguments),
    Nightly(nightly::Arguments),
    Times(times::Arguments),
    /// Check comments, documents and printed texts against the rules of prose.
    Prose(check::prose::Arguments),
    /// Install the compilers and interpreters that `wrote langs` runs, where they are missing.
    Toolchains(toolchains::Arguments),
    Fuzz(fuzz::Arguments),
    /// Try every order in which the threads that share a log's buffers can interleave.
    Model(model::Arguments),
    /// Interpret small runs of the library by Miri, which finds undefined behaviour.
    Miri,
    Lab(runs::Arguments),
    /// Measure wrote and its peers in turn, on one folder.
    Peers(peers::Arguments),
    Growth(growth::Arguments),
    /// Measure, and draw the pictures of the documents.
    Picture {
        /// Make these alone
        #[arg(value_enum)]
        only: Vec<picture::Picture>,
    },
    Dist(dist::Arguments),
    Book(book::Arguments),
    /// Run one benchmark several times, and compare the results.
    Steady(steady::Arguments),
}

fn main() -> ExitCode {
    let verb = Arguments::parse().verb;
    let done = run::heed_signals().and_then(|()| match verb {
        Verb::Check(arguments) => check::check(&arguments),
        Verb::Test(arguments) => test::test(&arguments),
        Verb::Nightly(arguments) => nightly::nightly(&arguments),
        Verb::Times(arguments) => times::times(&arguments),
        Verb::Prose(arguments) => check::prose::prose(&arguments),
        Verb::Toolchains(arguments) => toolchains::toolchains(&arguments),
        Verb::Fuzz(arguments) => fuzz::fuzz(&arguments),
        Verb::Model(arguments) => model::model(&arguments),
        Verb::Miri => miri::miri(),
        Verb::Lab(arguments) => runs::lab(&arguments),
        Verb::Peers(arguments) => peers::peers(&arguments),
        Verb::Growth(arguments) => growth::growth(&arguments),
        Verb::Picture { only } => picture::picture(&only),
        Verb::Dist(arguments) => dist::dist(&arguments),
        Verb::Book(arguments) => book::book(&arguments),
        Verb::Steady(arguments) => steady::steady(&arguments),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            // The report's last line stays the last.
            if !matches!(failure, Failure::Reported) {
                eprintln!("xtask: {failure}");
            }
            // As in a shell, 130 after a signal.
            ExitCode::from(if matches!(failure, Failure::Interrupted) { 130 } else { 1 })
        }
    }
}
