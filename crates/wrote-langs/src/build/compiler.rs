//! One run of a compiler, and the message of its failure.

use crate::child::{Limits, Outcome, supervise};
use crate::message::shown;
use crate::toolchain::neutral;
use std::path::Path;
use std::time::Duration;
use wrote_result::{Error, Stop};

/// The time limit: a program of a hundred lines on the slowest machine.
const TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// The most output that is kept. The first error may be far from the end.
const OUTPUT_BYTES: usize = 1 << 20;
const WORDS_CHARS: usize = 200;

/// Runs a compiler in `folder`. `Ok(Err(..))` is its failure, one line.
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

/// Returns the first line that names an error (later ones often follow from it), else the last.
fn meaningful_line(outcome: &Outcome) -> Option<String> {
    let texts = [&outcome.stderr, &outcome.stdout].map(|output| String::from_utf8_lossy(output));
    let cut = |text| str::lines(text).map(|line| shown(line, WORDS_CHARS));
    let lines = || texts.iter().map(|text| cut(text).filter(|line| !line.is_empty()));
    let names_error = |line: &String| line.to_ascii_lowercase().contains("error");
    let last = || lines().find_map(Iterator::last);
    lines().flatten().find(names_error).or_else(last)
}
