//! One run of a compiler, and what it said where it failed.

use crate::child::{Limits, Outcome, supervise};
use crate::toolchain::{neutral, shown};
use std::path::Path;
use std::time::Duration;
use wrote_result::{Error, Stop};

/// How long a program of a hundred lines may take to be built, on the slowest machine.
const TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// How much of a compiler's output is looked at. The first error may be far from the end.
const OUTPUT_BYTES: usize = 1 << 20;
/// How much of its words is shown, in characters.
const WORDS_CHARS: usize = 200;

/// Runs it in `folder`. `Ok(Err(..))` is why it could not build, one line.
pub(super) fn run(
    command: &[String],
    folder: &Path,
    stop: &Stop,
) -> Result<Result<(), String>, Error> {
    run_within(command, folder, TIMEOUT, stop)
}

pub(super) fn run_within(
    command: &[String],
    folder: &Path,
    timeout: Duration,
    stop: &Stop,
) -> Result<Result<(), String>, Error> {
    let limits = Limits { timeout, stdout_bytes_max: OUTPUT_BYTES, stderr_bytes_max: OUTPUT_BYTES };
    let outcome = match supervise(neutral(command).current_dir(folder), limits, stop, &mut |_| ()) {
        Ok(outcome) => outcome,
        Err(Error::Interrupted) => return Err(Error::Interrupted),
        Err(error) => return Ok(Err(error.to_string())),
    };
    let program = Path::new(&command[0]).file_name().unwrap_or_default().to_string_lossy();
    if outcome.timed_out() {
        let seconds = timeout.as_secs_f64();
        return Ok(Err(format!("{program} took longer than {seconds} s to build and was ended")));
    }
    let Some(failure) = outcome.status.failure() else {
        return Ok(Ok(()));
    };
    let words = meaningful_line(&outcome).map(|words| format!(": {words}")).unwrap_or_default();
    Ok(Err(format!("{program} {failure}{words}")))
}

/// Its first line that speaks of an error (those after it often follow from it), else its last one.
fn meaningful_line(outcome: &Outcome) -> Option<String> {
    let texts = [&outcome.stderr, &outcome.stdout].map(|output| String::from_utf8_lossy(output));
    let lines = || texts.iter().flat_map(|text| text.lines());
    let speaks = |line: &&str| line.to_ascii_lowercase().contains("error");
    let said = |line: &str| shown(line, WORDS_CHARS);
    let last = || texts.iter().find_map(|text| text.lines().rev().find_map(said));
    lines().filter(speaks).find_map(said).or_else(last)
}
