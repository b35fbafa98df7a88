//! `RawReader`: the library's `Reader` behind a file of Python.

use crate::buffer::with_room;
use crate::error::{raise, waiting};
use crate::path::FsPath;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use std::io::{Read, Seek, SeekFrom};
use std::sync::{Mutex, PoisonError};
use wrote_bindings::from_io;

/// The library's reader. `wrote.reader()` makes a file on it.
#[pyclass(frozen, module = "wrote._wrote")]
pub struct RawReader(Mutex<wrote::Reader>);

#[pymethods]
impl RawReader {
    #[new]
    fn new(py: Python<'_>, path: FsPath) -> PyResult<RawReader> {
        waiting(py, || wrote::Reader::open(path.0)).map(|reader| RawReader(Mutex::new(reader)))
    }

    fn readinto(&self, py: Python<'_>, room: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut reader = self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let reader = &mut *reader;
        with_room(room, |room| waiting(py, || reader.read(room).map_err(from_io)))
    }

    #[pyo3(signature = (offset, whence=0))]
    fn seek(&self, py: Python<'_>, offset: i64, whence: u32) -> PyResult<u64> {
        let mut reader = self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let to = match (whence, u64::try_from(offset)) {
            (0, Ok(offset)) => SeekFrom::Start(offset),
            (1, _) => SeekFrom::Current(offset),
            (2, _) => SeekFrom::End(offset),
            _ => return Err(PyValueError::new_err("invalid place or whence")),
        };
        reader.seek(to).map_err(|error| raise(py, &from_io(error)))
    }
}
