//! `cargo xtask <verb>`: tools for work on wrote.

mod bindings;
mod book;
mod check;
mod dist;
mod fuzz;
mod languages;
mod miri;
mod nightly;
mod release;
mod test;
mod toolchains;
mod tools;

use clap::{Parser, Subcommand};
use lab::runs;
use lab::tools::failure::{Failure, exit_code};
use lab::tools::repository::root;
use lab::tools::run;
use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

/// The manifest of the workspace `peers/`, which is built on demand.
const PEERS: &str = "peers/Cargo.toml";

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
    /// Check comments, documents and printed texts against the rules of prose.
    Prose(check::prose::Arguments),
    /// Count lines of code by crate, and compare them with the maximum in
    /// xtask/src/check/lines.txt.
    Lines,
    /// Find circles of imports.
    Circles,
    /// Install the compilers and interpreters that `wrote langs` runs, where they are missing.
    Toolchains(toolchains::Arguments),
    Fuzz(fuzz::Arguments),
    Lab(runs::Arguments),
    /// Measure wrote and its peers in turn, in one folder.
    #[command(disable_help_flag = true)]
    Peers(Words),
    /// Measure, and take the pictures of the documents.
    #[command(disable_help_flag = true)]
    Picture(Words),
    Dist(dist::Arguments),
    Book(book::Arguments),
}

/// The arguments of a verb of `peers/`.
#[derive(clap::Args)]
struct Words {
    /// Its arguments; `--help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    words: Vec<OsString>,
}

/// Replaces this process with the verb's program, run in the caller's folder.
fn peers(verb: &str, Words { words }: &Words) -> Result<(), Failure> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["run", "--quiet", "--manifest-path"]).arg(root().join(PEERS));
    let Err(error): Result<Infallible, _> = Err(command.arg("--").arg(verb).args(words).exec());
    Err(Failure::Failed(format!("cargo: {error}")))
}

fn main() -> ExitCode {
    let verb = Arguments::parse().verb;
    let done = run::heed_signals().and_then(|()| match verb {
        Verb::Check(arguments) => check::check(&arguments),
        Verb::Test(arguments) => test::test(&arguments),
        Verb::Nightly(arguments) => nightly::nightly(&arguments),
        Verb::Prose(arguments) => check::prose::prose(&arguments),
        Verb::Lines => check::lines::check(),
        Verb::Circles => check::circles::check(),
        Verb::Toolchains(arguments) => toolchains::toolchains(&arguments),
        Verb::Fuzz(arguments) => fuzz::fuzz(&arguments),
        Verb::Lab(arguments) => runs::lab(&arguments),
        Verb::Peers(arguments) => peers("peers", &arguments),
        Verb::Picture(arguments) => peers("picture", &arguments),
        Verb::Dist(arguments) => dist::dist(&arguments),
        Verb::Book(arguments) => book::book(&arguments),
    });
    exit_code(done)
}
