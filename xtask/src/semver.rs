//! The library's public API, compared with the last release.

use crate::tools::{self, CARGO_SEMVER_CHECKS};
use lab::tools::failure::Failure;
use lab::tools::report::Report;
use lab::tools::repository::{root, target};
use lab::tools::run::{HANG, Show, output, run};
use std::process::Command;

/// The tags of releases.
const RELEASES: &str = "v[0-9]*";
/// The oldest Rust 1.x that the tool reads: the compiler's JSON changes its format.
const RUST_MINOR_MIN: u32 = 93;

/// Runs the campaign: a change that breaks users of the last release needs a breaking version.
pub fn check(report: &mut Report, install: bool) -> Result<(), Failure> {
    report.step("API against the last release", || compare(install))
}

fn compare(install: bool) -> Result<(), Failure> {
    let Some(release) = last_release()? else {
        let because = "no release to compare with: this commit has no tag v* before it";
        return Err(Failure::Skipped(because.to_owned()));
    };
    let rust = output(Command::new("rustc").arg("--version"), "rustc --version")?;
    if minor(&rust).is_none_or(|minor| minor < RUST_MINOR_MIN) {
        let because = format!("{} is older than 1.{RUST_MINOR_MIN}", rust.trim());
        return Err(Failure::Skipped(because));
    }
    let program = tools::provide(&CARGO_SEMVER_CHECKS, install)?;
    let mut command = Command::new(program);
    command.current_dir(root()).args(["semver-checks", "--package", "wrote", "--all-features"]);
    command.args(["--baseline-rev", &release]).env("CARGO_TARGET_DIR", target().join("semver"));
    run(&mut command, HANG, Show::Live)?.success("cargo semver-checks").map(drop)
}

/// Returns the latest tag of a release before this commit, if there is one.
fn last_release() -> Result<Option<String>, Failure> {
    let mut git = Command::new("git");
    // A candidate comes before its release.
    git.current_dir(root()).args(["-c", "versionsort.suffix=-", "tag", "--list", RELEASES]);
    git.args(["--merged", "HEAD", "--no-contains", "HEAD", "--sort=-version:refname"]);
    Ok(output(&mut git, "git tag")?.lines().next().map(str::to_owned))
}

/// Returns the second number of a compiler's version: 95 of `rustc 1.95.0 (59807616e 2026-04-14)`.
fn minor(rust: &str) -> Option<u32> {
    rust.strip_prefix("rustc 1.")?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compilers_version_is_read() {
        assert_eq!(minor("rustc 1.95.0 (59807616e 2026-04-14)\n"), Some(95));
        assert_eq!(minor("rustc 1.97.0-nightly (abc 2026-05-01)"), Some(97));
        assert_eq!(minor("rustc 2.0.0"), None);
    }
}
