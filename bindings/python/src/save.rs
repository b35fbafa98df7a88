//! Whole files by one call: saved and copied.

use crate::buffer::with_bytes;
use crate::error::waiting;
use crate::path::FsPath;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// Replaces the content of the file at `path`, or creates the file. `str` is written as UTF-8.
///
/// After a crash of the process or the kernel or a power loss, at any moment, the file has either
/// its old content or the new, and other processes see one or the other. When this returns, the new
/// content survives a power loss; with `durable=False` a crash of the process alone.
///
/// The new file gets the old one's permissions, owner and attributes; symbolic links are followed
/// and kept.
#[pyfunction]
#[pyo3(signature = (path, data, *, durable=true))]
pub fn write(py: Python<'_>, path: FsPath, data: &Bound<'_, PyAny>, durable: bool) -> PyResult<()> {
    content(data, |bytes| {
        waiting(py, || match durable {
            true => wrote::write(path.0, bytes),
            false => wrote::write_unflushed(path.0, bytes),
        })
    })
}

/// Creates a new file at `path` with this content, complete and durable. An existing name is a
/// `FileExistsError`, and its file keeps its content.
#[pyfunction]
pub fn write_new(py: Python<'_>, path: FsPath, data: &Bound<'_, PyAny>) -> PyResult<()> {
    content(data, |bytes| waiting(py, || wrote::write_new(path.0, bytes)))
}

/// Copies the file `source` to `target`, which must not exist yet, and returns the number of its
/// bytes. The copy is durable when this returns, and has its name only once it is whole.
#[pyfunction]
pub fn copy(py: Python<'_>, source: FsPath, target: FsPath) -> PyResult<u64> {
    waiting(py, || wrote::copy(source.0, target.0)).map(|copied| copied.bytes)
}

fn content<T>(data: &Bound<'_, PyAny>, act: impl FnOnce(&[u8]) -> PyResult<T>) -> PyResult<T> {
    match data.cast::<PyString>() {
        Ok(text) => act(text.to_str()?.as_bytes()),
        Err(_) => with_bytes(data, act),
    }
}
