//! Errors of the library as errors of the command.

use rustix::io::Errno;
use wrote::error::Action;
use wrote_result::Error;

/// The exit code of an error of the library.
pub(crate) fn of_library(error: &wrote::Error) -> Error {
    match error {
        wrote::Error::Interrupted => Error::Interrupted,
        wrote::Error::Refused { .. } => Error::Usage(error.to_string()),
        wrote::Error::File { path, action: Action::Examine, errno, .. }
            if *errno == Errno::NOENT.raw_os_error() =>
        {
            Error::Failed(format!("{}: no such folder", path.display()))
        }
        _ => Error::Failed(error.to_string()),
    }
}
