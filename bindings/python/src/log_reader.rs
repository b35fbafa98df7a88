//! `LogReader`: the records of a log in order, while any process writes it.

use crate::border::{FsPath, raise, waiting};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyBytes;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};
use wrote::Error;
use wrote_bindings::unix_ns;

/// How long a wait may take before it checks Python's signals, such as Ctrl-C.
const SIGNALS: Duration = Duration::from_millis(100);
/// How many bytes of records are read at once, while other threads of Python run.
const AHEAD_BYTES: usize = 64 << 10;
const AHEAD_RECORDS: usize = 1024;

/// One record of a log.
#[pyclass(frozen, get_all, module = "wrote")]
pub struct Record {
    /// Its sequence: 0 for the first record ever.
    sequence: u64,
    /// Its bytes.
    data: Py<PyBytes>,
    /// When the log handed it to the disk, in nanoseconds since 1970, by the writer's clock. None
    /// where that is not known: after a repair.
    written_at_ns: Option<u64>,
}

#[pymethods]
impl Record {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let data = self.data.bind(py).repr()?;
        Ok(format!("Record(sequence={}, data={data})", self.sequence))
    }
}

/// Reads the records of a log in order. It takes no lock, and sees the records of every process. It
/// is an iterator of `Record`; one that follows waits for further ones.
#[pyclass(frozen, module = "wrote")]
pub struct LogReader(Mutex<State>);

struct State {
    reader: wrote::LogReader,
    follows: bool,
    /// Set when the log that it follows is closed; `None` where other processes may write it.
    end: Option<Arc<AtomicBool>>,
    /// Records that were read ahead, and the error behind them.
    ahead: VecDeque<wrote::Record>,
    failed: Option<Error>,
}

impl LogReader {
    pub(crate) fn new(
        reader: wrote::LogReader,
        follows: bool,
        end: Option<Arc<AtomicBool>>,
    ) -> LogReader {
        let state = State { reader, follows, end, ahead: VecDeque::new(), failed: None };
        LogReader(Mutex::new(state))
    }

    fn state(&self, py: Python<'_>) -> MutexGuard<'_, State> {
        self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the reader, whose records ahead are no longer the next ones.
    fn moved(
        &self,
        py: Python<'_>,
        to: impl FnOnce(&mut wrote::LogReader) -> Result<(), Error> + Send,
    ) -> PyResult<()> {
        let mut state = self.state(py);
        let state = &mut *state;
        waiting(py, || {
            state.ahead.clear();
            state.failed = None;
            to(&mut state.reader)
        })
    }

    fn find(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<Option<Record>> {
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let mut state = self.state(py);
            let state = &mut *state;
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            // Asked before the reading: a closed log gets no further record.
            let is_closed = state.end.as_ref().is_some_and(|end| end.load(Ordering::SeqCst));
            if state.ahead.is_empty() {
                let wait = left.map_or(SIGNALS, |left| left.min(SIGNALS));
                py.detach(|| state.read_ahead(wait));
            }
            if let Some(record) = state.ahead.pop_front() {
                return Ok(Some(given(py, record)));
            }
            if let Some(error) = state.failed.take() {
                return Err(raise(py, &error));
            }
            if !state.follows || is_closed || left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            py.check_signals()?;
        }
    }
}

impl State {
    /// Reads the next record, within `wait` where the reader follows, and those behind it.
    fn read_ahead(&mut self, wait: Duration) {
        let (mut wait, mut bytes) = (wait, 0);
        while bytes < AHEAD_BYTES && self.ahead.len() < AHEAD_RECORDS {
            match self.reader.next_within(wait) {
                Ok(Some(record)) => {
                    bytes += record.bytes.len();
                    self.ahead.push_back(record);
                }
                Ok(None) => return,
                Err(error) => {
                    self.failed = Some(error);
                    return;
                }
            }
            wait = Duration::ZERO;
        }
    }
}

fn given(py: Python<'_>, record: wrote::Record) -> Record {
    let data = PyBytes::new(py, &record.bytes).unbind();
    Record { sequence: record.sequence, data, written_at_ns: record.written_at.map(unix_ns) }
}

#[pymethods]
impl LogReader {
    /// Reads the log in the folder `path` from record `start` to its end, or from the first one
    /// that is left. With `follow` it waits at the end for further records, and for a log that is
    /// not there yet.
    #[new]
    #[pyo3(signature = (path, start=0, *, follow=false))]
    fn open(py: Python<'_>, path: FsPath, start: u64, follow: bool) -> PyResult<LogReader> {
        waiting(py, || wrote_bindings::log_reader(&path.0, start, follow))
            .map(|reader| LogReader::new(reader, follow, None))
    }

    /// Returns the next record, or None where there is none within `timeout` seconds. A reader that
    /// does not follow does not wait.
    #[pyo3(signature = (timeout=None))]
    fn next(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Record>> {
        // A time that no clock reaches is none.
        let timeout = timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.)).ok());
        self.find(py, timeout)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Record>> {
        self.find(py, None)
    }

    /// Continues with record `sequence`, or with the first later one that is there.
    fn seek(&self, py: Python<'_>, sequence: u64) -> PyResult<()> {
        self.moved(py, |reader| reader.seek(sequence))
    }

    /// Continues with the first record that was written at this time or later, in nanoseconds since
    /// 1970, as `time.time_ns()` returns it.
    fn seek_time_ns(&self, py: Python<'_>, time_ns: u64) -> PyResult<()> {
        let time = UNIX_EPOCH + Duration::from_nanos(time_ns);
        self.moved(py, |reader| reader.seek_time(time))
    }

    /// How many records the reader has passed over, because retention, a trim or a repair had
    /// removed them.
    #[getter]
    fn passed_over(&self, py: Python<'_>) -> u64 {
        self.state(py).reader.passed_over()
    }
}
