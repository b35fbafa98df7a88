//! Paths, as the functions of `os` take them.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// A path as `str`, `bytes` or `os.PathLike`.
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
