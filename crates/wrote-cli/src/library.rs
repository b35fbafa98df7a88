//! Errors of the library as errors of the command.

use wrote_result::Error;

/// The exit code of an error of the library.
pub(crate) fn of_library(error: &wrote::Error) -> Error {
    match error {
        wrote::Error::Interrupted => Error::Interrupted,
        wrote::Error::Refused { .. } => Error::Usage(error.to_string()),
        _ => Error::Failed(error.to_string()),
    }
}
