//! The documents that `wrote` writes and reads, and everything that is computed from them:
//! statistics, units and comparisons. Also the errors of measurements, and the flag that stops a
//! run early.

pub mod compare;
pub mod doctor;
pub mod document;
pub mod finding;
pub mod recipes;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
pub mod saves;
pub mod stats;
pub mod trace;
pub mod units;
mod words;
pub mod yardstick;

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request for a run to stop early. The run stops within one batch of writes, and removes its
/// files.
///
/// Clones share one flag, so that a signal handler can stop the run.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Returns a flag that is not raised.
    pub fn new() -> Stop {
        Stop::default()
    }

    /// Asks the run to stop.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns the flag itself, for code that does not know this type.
    pub fn flag(&self) -> &Arc<AtomicBool> {
        &self.0
    }

    /// Returns whether the run was asked to stop.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns [`Error::Interrupted`] as an error if the run was asked to stop.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_requested() { Err(Error::Interrupted) } else { Ok(()) }
    }
}

/// The error of a measurement. Its text is one line that can be shown as it is.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request is invalid. The exit code is 2.
    #[error("{0}")]
    Usage(String),
    /// The request could not be fulfilled. The exit code is 1.
    #[error("{0}")]
    Failed(String),
    /// A verdict or a refusal with a specific exit code: 3 for a fault that loses nothing.
    #[error("{1}")]
    Coded(u8, String),
    /// A program that was run for the user exited with this code, which `wrote` exits with, too.
    #[error("exit code {0}")]
    Ended(u8),
    /// The run was stopped (see [`Stop`]), and its files have been removed.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// Returns a function that converts the failure of a call at a path:
    /// `/data/a: open: Permission denied`.
    pub fn at<E: Display>(path: &Path, call: &str) -> impl Fn(E) -> Error + Copy {
        move |error| Error::Failed(format!("{}: {call}: {error}", path.display()))
    }
}

impl From<wrote::Error> for Error {
    fn from(error: wrote::Error) -> Error {
        Error::Failed(error.to_string())
    }
}

/// Returns the JSON Schema of a document.
pub fn schema<T: schemars::JsonSchema>() -> serde_json::Value {
    schemars::schema_for!(T).into()
}

/// Returns a command line quoted for a shell.
pub fn quoted(command: &[impl AsRef<str>]) -> String {
    let words = || command.iter().map(AsRef::as_ref);
    shlex::try_join(words()).unwrap_or_else(|_| words().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted_into_a_shell() {
        let command = ["wrote", "bench", "/mnt/my disk", "--size", "$1"];
        assert_eq!(quoted(&command), "wrote bench '/mnt/my disk' --size '$1'");
    }
}
