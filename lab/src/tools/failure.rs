//! Failures of a verb.
//!
//! The module is short, because all tools use it and it uses no other module.

use std::fmt::Display;
use std::process::ExitCode;

/// The reason why a verb failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A failure, described in one line.
    #[error("{0}")]
    Failed(String),
    /// The action cannot be performed here, for this reason.
    #[error("{0}")]
    Skipped(String),
    /// The report has already printed all failures.
    #[error("see above")]
    Reported,
    /// The time limit of the whole run was reached. Started processes have been terminated.
    #[error("no time was left")]
    OutOfTime,
    /// SIGINT or SIGTERM was received. Started processes have been ended, and temporary files
    /// removed.
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// Replaces the line of [`Failure::Failed`].
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
    // The report's last line should remain the last one.
    if !matches!(failure, Failure::Reported) {
        eprintln!("xtask: {failure}");
    }
    // As in a shell, the code is 130 after a signal.
    ExitCode::from(if matches!(failure, Failure::Interrupted) { 130 } else { 1 })
}

/// Adds the action that was attempted to an error.
pub trait Tried<T> {
    /// Turns an error into the failure "`what`: error".
    fn tried(self, what: impl Display) -> Result<T, Failure>;
}

impl<T, E: Display> Tried<T> for Result<T, E> {
    fn tried(self, what: impl Display) -> Result<T, Failure> {
        self.map_err(|error| Failure::Failed(format!("{what}: {error}")))
    }
}
