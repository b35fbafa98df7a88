//! Failures of a verb.
//!
//! The room is short: every tool uses it, and it uses no other room.

use std::fmt::Display;
use std::process::ExitCode;

/// The reason why a verb failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// One line: what failed.
    #[error("{0}")]
    Failed(String),
    /// The action cannot run here, for this reason.
    #[error("{0}")]
    Skipped(String),
    /// The report has printed every failure.
    #[error("see above")]
    Reported,
    /// The time of the whole run is over. Started processes have ended.
    #[error("no time was left")]
    OutOfTime,
    /// SIGINT or SIGTERM came. Started processes have ended; temporary files are removed.
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// Replaces the line.
    pub fn in_words(self, words: impl FnOnce(String) -> String) -> Failure {
        match self {
            Failure::Failed(because) => Failure::Failed(words(because)),
            other => other,
        }
    }
}

/// Prints why a program failed, and returns its exit code.
pub fn exit_code(done: Result<(), Failure>) -> ExitCode {
    let Err(failure) = done else { return ExitCode::SUCCESS };
    // The report's last line stays last.
    if !matches!(failure, Failure::Reported) {
        eprintln!("xtask: {failure}");
    }
    // As in a shell, 130 after a signal.
    ExitCode::from(if matches!(failure, Failure::Interrupted) { 130 } else { 1 })
}

/// Adds the attempted action to an error.
pub trait Tried<T> {
    /// Turns an error into the failure "`what`: error".
    fn tried(self, what: impl Display) -> Result<T, Failure>;
}

impl<T, E: Display> Tried<T> for Result<T, E> {
    fn tried(self, what: impl Display) -> Result<T, Failure> {
        self.map_err(|error| Failure::Failed(format!("{what}: {error}")))
    }
}
