//! `Lines`: a plain line file, to which any number of threads append.

use crate::border::{FsPath, policy, waiting, with_text};
use pyo3::prelude::*;
use wrote::LinesOptions;
use wrote_bindings::Options;

/// A plain line file, for any number of threads.
#[pyclass(frozen, subclass, module = "wrote._wrote")]
pub struct Lines(wrote::Lines);

#[pymethods]
impl Lines {
    #[new]
    #[pyo3(signature = (path, *, sync=None, buffer_bytes=None, permissions=None, waits=false))]
    fn new(
        py: Python<'_>,
        path: FsPath,
        sync: Option<&Bound<'_, PyAny>>,
        buffer_bytes: Option<usize>,
        permissions: Option<u32>,
        waits: bool,
    ) -> PyResult<Lines> {
        let options = wrote::Lines::options()
            .waits(waits)
            .set(LinesOptions::sync, sync.map(policy).transpose()?)
            .set(LinesOptions::buffer_bytes, buffer_bytes)
            .set(LinesOptions::mode, permissions);
        waiting(py, || options.open(path.0)).map(Lines)
    }

    /// Appends a line, as text or bytes without a line feed, and does not wait for it: the line is
    /// written within about 10 ms.
    fn append(&self, py: Python<'_>, line: &Bound<'_, PyAny>) -> PyResult<()> {
        with_text(line, |bytes| waiting(py, || self.0.append(bytes).map(drop)))
    }

    /// Appends a line, and waits until it is as safe as `sync` promises.
    fn append_wait(&self, py: Python<'_>, line: &Bound<'_, PyAny>) -> PyResult<()> {
        with_text(line, |bytes| waiting(py, || self.0.append(bytes)?.wait()))
    }

    /// Makes every line appended so far durable.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        waiting(py, || self.0.flush())
    }

    /// Reopens the path, after another program has renamed the file.
    fn reopen(&self, py: Python<'_>) -> PyResult<()> {
        waiting(py, || self.0.reopen())
    }

    /// Makes all lines durable, and closes the file.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        waiting(py, || self.0.close())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        self.close(py)
    }
}
