//! `cargo xtask <verb>`: tools for work on wrote.

mod bindings;
mod book;
mod check;
mod dist;
mod fuzz;
mod languages;
mod miri;
mod model;
mod nightly;
mod peers;
mod release;
mod semver;
mod test;
mod times;
mod toolchains;
mod tools;

use clap::{Parser, Subcommand};
use lab::runs;
use lab::tools::failure::exit_code;
use lab::tools::run;
use std::process::ExitCode;

/// Tools for work on wrote.
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
    /// Count lines of code by crate, beside the figures in docs/architecture.md.
    Lines,
    /// Find circles of imports, and compare them with xtask/src/check/circles.txt.
    Circles,
    /// Install the compilers and interpreters that `wrote langs` runs, where they are missing.
    Toolchains(toolchains::Arguments),
    Fuzz(fuzz::Arguments),
    /// Try every order in which the threads that share a log's buffers can interleave.
    Model(model::Arguments),
    /// Interpret small runs of the library by Miri, which finds undefined behaviour.
    Miri,
    Lab(runs::Arguments),
    /// Measure wrote and its peers in turn, in one folder.
    #[command(disable_help_flag = true)]
    Peers(peers::Words),
    /// Measure, and draw the pictures of the documents.
    #[command(disable_help_flag = true)]
    Picture(peers::Words),
    /// Run one benchmark several times, and compare the results.
    #[command(disable_help_flag = true)]
    Steady(peers::Words),
    Dist(dist::Arguments),
    Book(book::Arguments),
}

fn main() -> ExitCode {
    let verb = Arguments::parse().verb;
    let done = run::heed_signals().and_then(|()| match verb {
        Verb::Check(arguments) => check::check(&arguments),
        Verb::Test(arguments) => test::test(&arguments),
        Verb::Nightly(arguments) => nightly::nightly(&arguments),
        Verb::Times(arguments) => times::times(&arguments),
        Verb::Prose(arguments) => check::prose::prose(&arguments),
        Verb::Lines => check::lines::check(),
        Verb::Circles => check::circles::check(),
        Verb::Toolchains(arguments) => toolchains::toolchains(&arguments),
        Verb::Fuzz(arguments) => fuzz::fuzz(&arguments),
        Verb::Model(arguments) => model::model(&arguments),
        Verb::Miri => miri::miri(),
        Verb::Lab(arguments) => runs::lab(&arguments),
        Verb::Peers(arguments) => peers::run("peers", &arguments),
        Verb::Picture(arguments) => peers::run("picture", &arguments),
        Verb::Dist(arguments) => dist::dist(&arguments),
        Verb::Book(arguments) => book::book(&arguments),
        Verb::Steady(arguments) => peers::run("steady", &arguments),
    });
    exit_code(done)
}
