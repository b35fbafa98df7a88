//! One run of a compiler, and what it said where it failed.

use crate::langs::child::{How, Limits, Outcome, ending, supervise};
use crate::langs::said::shown;
use crate::langs::toolchain::neutral;
use crate::{Error, Stop};
use std::path::Path;
use std::time::Duration;

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
    let status = match outcome.status {
        How::Exited(status) if status.success() => return Ok(Ok(())),
        How::Exited(status) => status,
        How::TimedOut => {
            let seconds = timeout.as_secs_f64();
            return Ok(Err(format!(
                "{program} took longer than {seconds} s to build and was ended"
            )));
        }
    };
    let words = meaningful_line(&outcome).map(|words| format!(": {words}")).unwrap_or_default();
    Ok(Err(format!("{program} {}{words}", ending(status))))
}

/// Its first line that speaks of an error (those after it often follow from it), else its last one.
fn meaningful_line(outcome: &Outcome) -> Option<String> {
    let texts = [&outcome.stderr, &outcome.stdout].map(|output| String::from_utf8_lossy(output));
    let says = |line: &&str| !line.trim().is_empty();
    let speaks = |line: &&str| line.to_ascii_lowercase().contains("error");
    let mut lines = texts.iter().flat_map(|text| text.lines());
    let last = || texts.iter().find_map(|text| text.lines().rfind(says));
    lines.find(speaks).or_else(last).map(|line| shown(line, WORDS_CHARS))
}
