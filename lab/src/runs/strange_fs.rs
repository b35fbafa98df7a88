//! Runs `wrote bench` on a file system that refuses direct I/O, takes short writes, or fails a
//! flush.

use super::bench::{lost, rows};
use crate::fixtures::Strange;
use crate::tools::failure::{Failure, Tried};
use crate::tools::programs::debug;
use crate::tools::report::Report;
use crate::tools::run::{Finished, HANG, Show, output, run};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The required end of a benchmark on a strange file system.
enum Expected {
    Result,
    /// Success without direct I/O, and a fallback with the reason.
    NotDirect,
    /// Exit code 1 and the kernel's words.
    Error(&'static str),
}

/// A way of misbehaving: its name, the arguments of `strange-fs`, and the required end.
type Mode = (&'static str, &'static [&'static str], Expected);

const MODES: &[Mode] = &[
    ("nothing strange", &[], Expected::Result),
    ("O_DIRECT refused at open", &["--refuse-direct", "open"], Expected::NotDirect),
    (
        "O_DIRECT refused at the first transfer",
        &["--refuse-direct", "transfer"],
        Expected::NotDirect,
    ),
    ("a removed file keeps a name while it is open", &["--keep-names"], Expected::Result),
    ("at most 12 KiB taken of each write", &["--short-writes", "12288"], Expected::Result),
    ("the first flush fails", &["--fail-fsync"], Expected::Error("Input/output error")),
];

/// Runs every mode.
pub fn lab(report: &mut Report) -> Result<(), Failure> {
    if let Err(error) = std::fs::File::options().read(true).write(true).open("/dev/fuse") {
        return report.skip("lab strange-fs", format!("/dev/fuse: {error}"));
    }
    let built = report.make("lab strange-fs: build", || Ok((debug("lab")?, debug("wrote")?)))?;
    let Some((daemon, wrote)) = built else { return Ok(()) };
    for mode in MODES {
        let name = format!("lab strange-fs: wrote bench: {}", mode.0);
        report.step(&name, || check(&daemon, &wrote, mode))?;
    }
    Ok(())
}

fn check(daemon: &Path, wrote: &Path, (_, arguments, expected): &Mode) -> Result<(), Failure> {
    let folder = tempfile::tempdir().tried("a temporary folder")?;
    let strange = Strange::mount(daemon, folder, arguments).map_err(|because| {
        match because.contains("Operation not permitted") {
            true => Failure::Skipped(because),
            false => Failure::Failed(because),
        }
    })?;
    let mut bench = Command::new(wrote);
    bench.arg("bench").arg(strange.path());
    bench.args(["--size", "8M", "--runs", "1", "--format", "json"]);
    judge(run(&mut bench, HANG, Show::Quiet)?, expected)?;
    // In another process, with a limit: the daemon may hang.
    match output(Command::new("ls").arg("-A").arg(strange.path()), "ls")?.trim() {
        "" => Ok(()),
        left => Err(Failure::Failed(format!("wrote bench left {left}"))),
    }
}

/// Fails unless the benchmark ended as `expected`.
fn judge(finished: Finished, expected: &Expected) -> Result<(), Failure> {
    match expected {
        Expected::Result => rows(&finished.success("wrote bench")?.stdout).map(|_| ()),
        Expected::NotDirect => {
            let rows = rows(&finished.success("wrote bench")?.stdout)?;
            lost(&rows, ("direct", &Value::from(true)), "Invalid argument")
        }
        Expected::Error(words) => {
            if finished.exit_code == Some(1) && finished.stderr.contains(words) {
                return Ok(());
            }
            let Finished { trouble, stderr, .. } = finished;
            let ended = trouble.unwrap_or_else(|| "exit code 0".into());
            let said = stderr.trim();
            Err(Failure::Failed(format!("wrote bench: {ended}, not 1 with {words:?}: {said}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(exit_code: i32, stderr: &str) -> Finished {
        Finished {
            trouble: Some(format!("exit code {exit_code}")),
            exit_code: Some(exit_code),
            stdout: String::new(),
            stderr: stderr.to_owned(),
        }
    }

    #[test]
    fn a_failed_flush_must_end_the_benchmark_with_the_kernels_words() {
        let expected = Expected::Error("Input/output error");
        assert!(judge(failed(1, "wrote: f: fdatasync: Input/output error"), &expected).is_ok());
        assert!(judge(failed(1, "wrote: something else"), &expected).is_err());
        assert!(judge(failed(101, "panicked: Input/output error"), &expected).is_err());
    }

    #[test]
    fn a_benchmark_that_should_end_well_and_does_not_is_a_failure() {
        let message = judge(failed(1, "wrote: no"), &Expected::Result).expect_err("exit code 1");
        assert_eq!(message.to_string(), "wrote bench: exit code 1: wrote: no");
    }
}
