//! `cargo xtask check`: checks the format, lints, documents, prose and dependency trees. It does
//! not run the product's tests.

pub mod circles;
pub mod lines;
pub mod links;
pub mod prose;
mod sources;

use crate::{PEERS, bindings, fuzz};
use lab::tools::failure::Failure;
use lab::tools::packages::{self, MPI};
use lab::tools::programs::{self, cargo_tests};
use lab::tools::report::Report;
use lab::tools::repository::cargo;
use lab::tools::run::{HANG, Show, run};

/// The arguments that make clippy's warnings errors.
pub const STRICT: [&str; 3] = ["--", "-D", "warnings"];

/// The maximum number of crates that the library with default features may add to a program.
const DEPENDENCIES_MAX: usize = 15;

/// Check format, lints, documents, links, prose and dependencies, and test the tools.
///
/// `cargo xtask test` tests the product.
#[derive(clap::Args)]
pub struct Arguments {
    /// Install nothing; what needs a missing program is left out
    #[arg(long)]
    no_install: bool,
}

/// Runs every check, even after one has failed.
pub fn check(arguments: &Arguments) -> Result<(), Failure> {
    let mut report = Report::default();
    formats(&mut report)?;
    report.step("prose", || prose::check(&[]))?;
    report.step("links between documents", links::check)?;
    report.step("files that a package reaches", circles::check_reached)?;
    report.step("circles of imports", circles::check)?;
    report.step("paths in the architecture", links::check_paths)?;
    report.step("lines of code", lines::check)?;
    report.step("no dependency twice", no_duplicates)?;
    report.step("few dependencies of the library", few_dependencies)?;
    report.step("Debian packages", || packages::provide(MPI, !arguments.no_install))?;
    let clippy = ["clippy", "--workspace", "--all-targets", programs::features()];
    step(&mut report, "clippy", &[&clippy[..], &STRICT].concat())?;
    // The README's first command builds without features.
    step(&mut report, "clippy without features", &[&["clippy"][..], &STRICT].concat())?;
    let mut doc = cargo(&["doc", "--workspace", "--no-deps"]);
    doc.arg(programs::features()).env("RUSTDOCFLAGS", "-D warnings");
    report.step("doc", || run(&mut doc, HANG, Show::Live)?.success("cargo doc").map(drop))?;
    report.step("tests of the tools", || {
        cargo_tests(&mut cargo(&["test", "-p", "xtask", "--no-fail-fast"]))
    })?;
    report.finish()
}

fn formats(report: &mut Report) -> Result<(), Failure> {
    step(report, "fmt", &["fmt", "--all", "--check"])?;
    let others =
        [("peers", PEERS), ("bindings", bindings::MANIFEST), ("the fuzzer", fuzz::MANIFEST)];
    for (name, manifest) in others {
        let words = ["fmt", "--all", "--check", "--manifest-path", manifest];
        step(report, &format!("fmt of {name}"), &words)?;
    }
    Ok(())
}

/// Runs cargo with `words` as one step.
pub fn step(report: &mut Report, name: &str, words: &[&str]) -> Result<(), Failure> {
    report.step(name, || run(&mut cargo(words), HANG, Show::Live)?.success(name).map(drop))
}

/// Fails if `wrote` depends on two versions of a crate, which would then be built twice, with
/// incompatible types.
fn no_duplicates() -> Result<(), Failure> {
    let words = ["tree", "-d", "-e", "normal", "-p", "wrote-cli"];
    let finished = run(&mut cargo(&words), HANG, Show::Live)?.success("cargo tree")?;
    match two_versions(&finished.stdout).as_slice() {
        [] => Ok(()),
        names => Err(Failure::Failed(format!("two versions of {}", names.join(", ")))),
    }
}

/// Fails if the library with default features depends on too many crates.
fn few_dependencies() -> Result<(), Failure> {
    let words = ["tree", "-e", "normal", "-p", "wrote", "--prefix", "none"];
    let finished = run(&mut cargo(&words), HANG, Show::Live)?.success("cargo tree")?;
    match dependencies(&finished.stdout) {
        crates if crates.len() <= DEPENDENCIES_MAX => Ok(()),
        crates => Err(Failure::Failed(format!("over {DEPENDENCIES_MAX}: {}", crates.join(", ")))),
    }
}

/// Returns the names of all crates except the first in the output of `cargo tree --prefix none`,
/// without duplicates.
fn dependencies(tree: &str) -> Vec<&str> {
    let mut names: Vec<&str> =
        tree.lines().skip(1).filter_map(|line| line.split(' ').next()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the crates with two versions in the output of `cargo tree -d`. That output also lists a
/// crate twice with a single version, if a macro and the program use it with different features.
fn two_versions(tree: &str) -> Vec<&str> {
    let begins = tree.lines().filter_map(|line| line.split_once(" v"));
    let mut crates: Vec<(&str, &str)> = begins
        .filter(|(name, _)| !name.contains(' '))
        .map(|(name, rest)| (name, rest.split(' ').next().unwrap_or_default()))
        .collect();
    crates.sort_unstable();
    crates.dedup();
    crates.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[0].0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_with_two_versions_is_told_from_one_with_two_sets_of_features() {
        let twice = "winnow v1.0.5\n├── toml v1.2.1\n\nwinnow v1.0.5\n└── askama_parser v0.16.1\n";
        assert!(two_versions(twice).is_empty());
        let two = "syn v2.0.1\n└── a v1.0.0\n\nsyn v3.0.9\n└── b v1.0.0 (*)\n";
        assert_eq!(two_versions(two), ["syn"]);
    }

    #[test]
    fn a_dependency_counts_once_and_the_library_itself_not() {
        let tree = "wrote v0.1.0 (/here)\nlog v0.4.1\nrustix v1.1.6\nlog v0.4.1 (*)\n";
        assert_eq!(dependencies(tree), ["log", "rustix"]);
    }
}
