//! The border between Python and Rust: errors as exceptions, each an `OSError` with errno, text and
//! file name; bytes through the buffer protocol, without a copy; paths and policies.

#![allow(missing_docs, reason = "the macro of an exception takes its documentation as an argument")]

use pyo3::buffer::PyUntypedBuffer;
use pyo3::create_exception;
use pyo3::exceptions::{
    PyBufferError, PyInterruptedError, PyOSError, PyPermissionError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyString};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;
use wrote::{Error, SyncPolicy};
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
create_exception!(
    wrote,
    TooLong,
    PyOSError,
    "A record, a line or a request does not fit into a buffer."
);
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

/// Python's names of the options that Rust's errors mention.
const OPTIONS: [&str; 2] = ["buffer_bytes of open_log()", "buffer_bytes of lines()"];

/// Returns an error as an exception. Its attribute `offset` is the file offset, or `None`.
pub fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let (errno, path) = (error.errno(), error.path().map(|path| path.as_os_str().to_owned()));
    let arguments = (errno, text(error, OPTIONS), path);
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

/// Does work that may wait, and lets other Python threads run in the meantime.
pub fn waiting<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    py.detach(work).map_err(|error| raise(py, &error))
}

/// Calls `act` with the bytes of an object. Another thread may change the bytes of a bytearray or
/// an array in the meantime, as with Python's own files; either the old or the new bytes are then
/// used.
pub fn with_bytes<T>(
    data: &Bound<'_, PyAny>,
    act: impl FnOnce(&[u8]) -> PyResult<T>,
) -> PyResult<T> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return act(bytes.as_bytes());
    }
    let buffer = PyUntypedBuffer::get(data)?;
    act(bytes_of(&buffer)?)
}

/// Calls `act` with the bytes of an object, or with a text in UTF-8.
pub fn with_text<T>(
    data: &Bound<'_, PyAny>,
    act: impl FnOnce(&[u8]) -> PyResult<T>,
) -> PyResult<T> {
    match data.cast::<PyString>() {
        Ok(text) => act(text.to_str()?.as_bytes()),
        Err(_) => with_bytes(data, act),
    }
}

/// Returns the bytes of a buffer, whose elements may be of any type. Fails if they are not
/// contiguous.
fn bytes_of(buffer: &PyUntypedBuffer) -> PyResult<&[u8]> {
    if !buffer.is_c_contiguous() {
        return Err(PyBufferError::new_err("the bytes do not lie in a row: copy them first"));
    }
    if buffer.len_bytes() == 0 {
        return Ok(&[]);
    }
    // SAFETY: the buffer is exported while `buffer` lives, and its bytes are contiguous.
    Ok(unsafe { std::slice::from_raw_parts(buffer.buf_ptr().cast(), buffer.len_bytes()) })
}

/// Calls `act` with the bytes of several objects or texts.
pub fn with_all_bytes<T>(
    items: &Bound<'_, PyAny>,
    act: impl FnOnce(&[&[u8]]) -> PyResult<T>,
) -> PyResult<T> {
    let buffers = items.try_iter()?.map(|item| match item?.cast_into::<PyString>() {
        Ok(text) => PyUntypedBuffer::get(text.encode_utf8()?.as_any()),
        Err(other) => PyUntypedBuffer::get(&other.into_inner()),
    });
    let buffers = buffers.collect::<PyResult<Vec<_>>>()?;
    act(&buffers.iter().map(bytes_of).collect::<PyResult<Vec<_>>>()?)
}

/// Calls `act` with the memory of a writable buffer.
pub fn with_room<T>(
    data: &Bound<'_, PyAny>,
    act: impl FnOnce(&mut [u8]) -> PyResult<T>,
) -> PyResult<T> {
    let buffer = PyUntypedBuffer::get(data)?;
    if buffer.readonly() || !buffer.is_c_contiguous() {
        return Err(PyBufferError::new_err("a buffer that may be written, in a row, is needed"));
    }
    if buffer.len_bytes() == 0 {
        return act(&mut []);
    }
    // SAFETY: the buffer is exported while `buffer` lives, and its bytes are contiguous.
    let room = unsafe {
        std::slice::from_raw_parts_mut(buffer.buf_ptr().cast::<u8>(), buffer.len_bytes())
    };
    act(room)
}

/// A path given as `str`, `bytes` or `os.PathLike`.
pub struct FsPath(pub PathBuf);

impl FromPyObject<'_, '_> for FsPath {
    type Error = PyErr;

    fn extract(path: Borrowed<'_, '_, PyAny>) -> PyResult<FsPath> {
        let encoded = path.py().import("os")?.call_method1("fsencode", (path,))?;
        let bytes: Vec<u8> = encoded.extract()?;
        if bytes.contains(&0) {
            return Err(PyValueError::new_err("embedded null byte"));
        }
        Ok(FsPath(PathBuf::from(OsString::from_vec(bytes))))
    }
}

/// Returns the time that a call may take, given in seconds; `None` if it is too long to represent.
pub fn timeout(seconds: Option<f64>) -> Option<Duration> {
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.)).ok())
}

/// Returns the policy that an argument gives.
pub fn policy(sync: &Bound<'_, PyAny>) -> PyResult<SyncPolicy> {
    let policy = match sync.extract::<f64>() {
        Ok(seconds) => wrote_bindings::interval("sync", seconds).map(SyncPolicy::Interval),
        Err(_) => wrote_bindings::sync(sync.extract()?),
    };
    policy.map_err(PyValueError::new_err)
}
