//! Errors as exceptions: each an `OSError` with errno, text and file name.

#![allow(missing_docs, reason = "the macro of an exception takes its documentation as an argument")]

use pyo3::create_exception;
use pyo3::exceptions::{PyInterruptedError, PyOSError, PyPermissionError};
use pyo3::prelude::*;
use wrote::Error;
use wrote_bindings::text;

create_exception!(
    wrote,
    NotYet,
    PyOSError,
    "The disk is full: the log keeps the record and tries again. Wait for it again, and do not \
     append it again."
);
create_exception!(
    wrote,
    Poisoned,
    PyOSError,
    "An earlier flush failed. What was written since the one before is in doubt, and nothing more \
     is written."
);
create_exception!(wrote, Alignment, PyOSError, "No direct operation is possible at this offset.");
create_exception!(wrote, TooLong, PyOSError, "The request needs more than all buffers.");
create_exception!(wrote, Refused, PyOSError, "The request is invalid. Nothing was changed.");
create_exception!(
    wrote,
    Interfered,
    PyOSError,
    "Another program changed the length of a file that this one appends to."
);
create_exception!(
    wrote,
    Truncated,
    PyOSError,
    "The log was cut before a record that this reader has read. Seek, and read on."
);
create_exception!(wrote, Differs, PyOSError, "A copy differs from its source.");
create_exception!(wrote, Damaged, PyOSError, "Bytes that were written can't be read any more.");
create_exception!(
    wrote,
    Foreign,
    PyOSError,
    "A segment of another log is among those of this one."
);
create_exception!(wrote, Interrupted, PyInterruptedError, "The work was interrupted.");
create_exception!(
    wrote,
    Forked,
    PyPermissionError,
    "It was opened before os.fork(), by the parent. Open it again in the child."
);
create_exception!(wrote, Engine, PyOSError, "A thread, ring or descriptor could not be made.");

/// Returns the exception of an error. Its attribute `offset` is the byte of the file, or `None`.
pub fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let (errno, path) = (error.errno(), error.path().map(|path| path.as_os_str().to_owned()));
    let arguments = (errno, text(error), path);
    let raised = match error {
        Error::File { .. } => PyOSError::new_err(arguments),
        Error::NotYet { .. } => NotYet::new_err(arguments),
        Error::Poisoned { .. } => Poisoned::new_err(arguments),
        Error::Alignment { .. } => Alignment::new_err(arguments),
        Error::TooLong { .. } => TooLong::new_err(arguments),
        Error::Refused { .. } => Refused::new_err(arguments),
        Error::Interfered { .. } => Interfered::new_err(arguments),
        Error::Truncated { .. } => Truncated::new_err(arguments),
        Error::Differs { .. } => Differs::new_err(arguments),
        Error::Damaged { .. } => Damaged::new_err(arguments),
        Error::Foreign { .. } => Foreign::new_err(arguments),
        Error::Interrupted => Interrupted::new_err(arguments),
        Error::Forked => Forked::new_err(arguments),
        Error::Engine { .. } => Engine::new_err(arguments),
        _ => PyOSError::new_err(arguments),
    };
    match raised.value(py).setattr("offset", wrote_bindings::offset(error)) {
        Ok(()) => raised,
        Err(other) => other,
    }
}

/// Does work that may wait, while other threads of Python run.
pub fn waiting<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    py.detach(work).map_err(|error| raise(py, &error))
}
