//! Why a verb did not end well.

use std::fmt::Display;

/// Why a verb did not end well.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Something did not work: one line that says what.
    #[error("{0}")]
    Failed(String),
    /// A report has told all there is to tell.
    #[error("see above")]
    Reported,
    /// SIGINT or SIGTERM came; what was started is ended and what was made is removed.
    #[error("interrupted")]
    Interrupted,
}

impl Failure {
    /// The process's exit code: 130 where interrupted, as a shell has it.
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Failed(_) | Failure::Reported => 1,
            Failure::Interrupted => 130,
        }
    }
}

/// Says what was tried when an error came.
pub trait Tried<T> {
    /// The failure "`what`: the error".
    fn tried(self, what: impl Display) -> Result<T, Failure>;
}

impl<T, E: Display> Tried<T> for Result<T, E> {
    fn tried(self, what: impl Display) -> Result<T, Failure> {
        self.map_err(|error| Failure::Failed(format!("{what}: {error}")))
    }
}
