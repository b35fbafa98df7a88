//! Runs fio on a file whose state is ours to choose, with a job of command-line options.

use super::file::PeerFile;
use super::fio_json;
use super::measured::Measured;
use crate::failure::Failure;
use crate::run::{Show, run as run_command};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(5 * 60);
/// What every job has. fio makes no file for itself: its state is ours to choose.
const COMMON: [&str; 5] =
    ["--name=peer", "--rw=write", "--fallocate=none", "--eta=never", "--output-format=json"];

/// Writes `file` once with fio.
pub fn run(arguments: &[&str], file: &PeerFile) -> Result<Measured, Failure> {
    let mut command = Command::new("fio");
    command.args(COMMON).args(arguments).arg(format!("--size={}", file.size_bytes()));
    command.arg(format!("--filename={}", file.path().display()));
    let finished = run_command(&mut command, LIMIT, Show::Quiet)?.success("fio")?;
    let output = fio_json::parse(&finished.stdout, "fio")?;
    Ok(Measured { bytes: output.bytes, elapsed_s: output.elapsed_s, cpu_s: output.cpu_s })
}

/// The command as one would type it.
pub fn describe(arguments: &[&str], file: &PeerFile) -> String {
    let size = file.size_bytes();
    format!("fio {} {} --size={size} --filename=FILE", COMMON.join(" "), arguments.join(" "))
}

/// `fio-3.33`.
pub fn version() -> Result<String, Failure> {
    let finished = run_command(Command::new("fio").arg("--version"), LIMIT, Show::Quiet)?;
    Ok(finished.success("fio --version")?.stdout.trim().to_owned())
}
