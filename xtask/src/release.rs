//! Checks the promises of a release: the size and features of the program that the README's first
//! command builds.

use lab::runs::rows;
use lab::tools::failure::{Failure, Tried};
use lab::tools::report::Report;
use lab::tools::repository::{release, target};
use lab::tools::run::{HANG, Show, output, run};
use std::process::Command;

/// The maximum size of the program that `cargo run --release` builds.
const BYTES_MAX: u64 = 25_000_000;

/// The command lines that require a missing feature, each with the end of the expected error
/// message.
const LACKING: [(&[&str], &str); 3] = [
    (&["serve", "events", "--listen", "tcp://127.0.0.1:0"], "--features serve"),
    (&["log", "cat", "s3://bucket/events"], "--features store"),
    (&["log", "ship", "events", "file:///store"], "--features store"),
];

/// Builds the program as a release, checks its size, and measures with it.
pub fn check(report: &mut Report) -> Result<(), Failure> {
    report.step("build of the release", || release("wrote").map(drop))?;
    report.step("size of the release", || {
        let bytes = release("wrote")?.metadata().tried("wrote")?.len();
        let too_large = format!("{bytes} bytes, at most {BYTES_MAX}");
        if bytes <= BYTES_MAX { Ok(()) } else { Err(Failure::Failed(too_large)) }
    })?;
    report.step("features that the release lacks", || {
        LACKING.iter().try_for_each(|(words, feature)| refuses(words, feature))
    })?;
    report.step("wrote bench of the release", || {
        let folder = tempfile::tempdir_in(target()).tried("a temporary folder")?;
        let mut command = Command::new(release("wrote")?);
        command.arg("bench").arg(folder.path());
        command.args(["--size", "16M", "--runs", "2", "--format", "json"]);
        let document = output(&mut command, "wrote bench")?;
        rows(&document)?;
        let is_debug = document.contains("\"debug-build\"");
        if is_debug { Err(Failure::Failed("debug-build of a release".into())) } else { Ok(()) }
    })
}

/// Fails unless the program refuses with a single line that names the feature.
fn refuses(words: &[&str], feature: &str) -> Result<(), Failure> {
    let mut command = Command::new(release("wrote")?);
    let finished = run(command.args(words), HANG, Show::Quiet)?;
    let said = finished.stderr.trim();
    if finished.exit_code == Some(2) && said.lines().count() == 1 && said.contains(feature) {
        return Ok(());
    }
    Err(Failure::Failed(format!("wrote {}: {:?}: {said}", words.join(" "), finished.exit_code)))
}
