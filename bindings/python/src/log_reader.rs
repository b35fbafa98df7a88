//! `LogReader`: the records of a log in order, while any process writes to it.

use crate::border::{FsPath, raise, timeout, waiting};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::{MutexExt, PyOnceLock};
use pyo3::types::PyBytes;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wrote::Error;
use wrote_bindings::unix_ns;

/// The interval at which a wait checks for Python's signals, such as SIGINT from Ctrl-C.
const SIGNALS: Duration = Duration::from_millis(100);
/// The maximum number of bytes, and of records, that are read at once while other Python threads
/// run.
const AHEAD_BYTES: usize = 64 << 10;
const AHEAD_RECORDS: usize = 1024;

/// A record of a log.
#[pyclass(frozen, get_all, module = "wrote")]
pub struct Record {
    /// The record's sequence: 0 for the first record ever.
    sequence: u64,
    /// The bytes of the record.
    data: Py<PyBytes>,
    /// When the log submitted the record to the disk, in nanoseconds since 1970, by the writer's
    /// clock. None if unknown, as after a repair.
    written_at_ns: Option<u64>,
}

#[pymethods]
impl Record {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let data = self.data.bind(py).repr()?;
        Ok(format!("Record(sequence={}, data={data})", self.sequence))
    }
}

/// A reader of the records of a log, in order. It takes no lock, and sees the records of every
/// process. It is an iterator of `Record`s, and an asynchronous iterator for tasks. A reader that
/// follows waits for further records.
#[pyclass(frozen, module = "wrote")]
pub struct LogReader(Mutex<State>);

struct State {
    reader: wrote::LogReader,
    follows: bool,
    /// Whether the followed log has been closed; `None` if other processes may write to the log.
    end: Option<Arc<AtomicBool>>,
    /// The records that were read ahead, and the error that follows them.
    ahead: VecDeque<wrote::Record>,
    failed: Option<Error>,
    /// Whether the last attempt found no more records, and there will be no more.
    is_over: bool,
}

impl LogReader {
    pub(crate) fn new(
        reader: wrote::LogReader,
        follows: bool,
        end: Option<Arc<AtomicBool>>,
    ) -> LogReader {
        let (ahead, failed, is_over) = (VecDeque::new(), None, false);
        LogReader(Mutex::new(State { reader, follows, end, ahead, failed, is_over }))
    }

    /// Opens a reader, which begins with the first record written at `since` or later.
    pub(crate) fn since(
        py: Python<'_>,
        since: Option<&Bound<'_, PyAny>>,
        follows: bool,
        end: Option<Arc<AtomicBool>>,
        open: impl FnOnce() -> Result<wrote::LogReader, Error> + Send,
    ) -> PyResult<LogReader> {
        let since = since.map(time).transpose()?;
        let reader = waiting(py, || {
            let mut reader = open()?;
            since.map_or(Ok(()), |since| reader.seek_time(since))?;
            Ok(reader)
        })?;
        Ok(LogReader::new(reader, follows, end))
    }

    fn state(&self, py: Python<'_>) -> MutexGuard<'_, State> {
        self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the reader, and discards the records read ahead, because they are no longer the next
    /// ones.
    fn moved(
        &self,
        py: Python<'_>,
        to: impl FnOnce(&mut wrote::LogReader) -> Result<(), Error> + Send,
    ) -> PyResult<()> {
        let mut state = self.state(py);
        let state = &mut *state;
        waiting(py, || {
            state.ahead.clear();
            (state.failed, state.is_over) = (None, false);
            to(&mut state.reader)
        })
    }

    fn find(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<Option<Record>> {
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let mut state = self.state(py);
            let state = &mut *state;
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            py.detach(|| state.look(left.map_or(SIGNALS, |left| left.min(SIGNALS))));
            match state.take(py) {
                Ok(None) if state.is_over || left.is_some_and(|left| left.is_zero()) => {
                    return Ok(None);
                }
                Ok(None) => py.check_signals()?,
                found => return found,
            }
        }
    }
}

/// Returns the time given by a `datetime`, or by seconds since 1970.
fn time(since: &Bound<'_, PyAny>) -> PyResult<SystemTime> {
    let seconds = match since.extract::<f64>() {
        Ok(seconds) => seconds,
        Err(_) => since.call_method0(intern!(since.py(), "timestamp"))?.extract()?,
    };
    // This is a microsecond earlier than the given time, because the float may have been rounded up
    // from the record's own time by less than that.
    let micros = Duration::try_from_secs_f64(seconds).ok().map(|since| since.as_micros());
    let before = micros.and_then(|micros| u64::try_from(micros.saturating_sub(1)).ok());
    let time = before.and_then(|micros| UNIX_EPOCH.checked_add(Duration::from_micros(micros)));
    time.ok_or_else(|| PyValueError::new_err(format!("since={seconds}: not a time since 1970")))
}

impl State {
    /// If no record has been read ahead, reads ahead, waiting up to `wait`. Also records whether
    /// there will be no more.
    fn look(&mut self, wait: Duration) {
        // This is checked before reading, because a closed log gets no further records.
        let is_closed = self.end.as_ref().is_some_and(|end| end.load(Ordering::SeqCst));
        if self.ahead.is_empty() && self.failed.is_none() {
            self.read_ahead(wait);
        }
        let is_empty = self.ahead.is_empty() && self.failed.is_none();
        self.is_over = is_empty && (!self.follows || is_closed);
    }

    /// Takes the next record that was read ahead, or the error that follows the last one.
    fn take(&mut self, py: Python<'_>) -> PyResult<Option<Record>> {
        match (self.ahead.pop_front(), self.failed.is_some()) {
            (Some(record), _) => Ok(Some(given(py, record))),
            (None, true) => self.failed.take().map_or(Ok(None), |error| Err(raise(py, &error))),
            (None, false) => Ok(None),
        }
    }

    /// Reads the next record, for which it waits up to `wait` if the reader follows, and then the
    /// records that are already available after it.
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
    /// Opens the log in the folder `path` for reading, up to its end. Begins with record `start`,
    /// or the first later one that exists, or with the first one written at `since` or later. With
    /// `follow`, waits at the end for further records, and for the log to be created if it does not
    /// exist yet.
    #[new]
    #[pyo3(signature = (path, start=0, *, since=None, follow=false))]
    fn open(
        py: Python<'_>,
        path: FsPath,
        start: u64,
        since: Option<&Bound<'_, PyAny>>,
        follow: bool,
    ) -> PyResult<LogReader> {
        let open = || wrote_bindings::log_reader(&path.0, start, follow);
        LogReader::since(py, since, follow, None, open)
    }

    /// Returns the next record, or None if there is none within `timeout` seconds. A reader that
    /// does not follow does not wait.
    #[pyo3(signature = (timeout=None))]
    fn next(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Record>> {
        self.find(py, self::timeout(timeout))
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Record>> {
        self.find(py, None)
    }

    fn __aiter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        static RECORDS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        RECORDS.import(slf.py(), "wrote._tasks", "records")?.call1((slf,))
    }

    /// Reads ahead, for at most a tenth of a second.
    fn _look(&self, py: Python<'_>) {
        let mut state = self.state(py);
        let state = &mut *state;
        py.detach(|| state.look(SIGNALS));
    }

    /// Returns a record that was read ahead, None if there is none yet, or False if there will be
    /// no more.
    fn _take<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let mut state = self.state(py);
        match state.take(py)? {
            Some(record) => Ok(Bound::new(py, record)?.into_any()),
            None if std::mem::take(&mut state.is_over) => Ok(false.into_bound_py_any(py)?),
            None => Ok(py.None().into_bound(py)),
        }
    }

    /// Continues with record `sequence`, or with the first later one that exists.
    fn seek(&self, py: Python<'_>, sequence: u64) -> PyResult<()> {
        self.moved(py, |reader| reader.seek(sequence))
    }

    /// Continues with the first record written at this time or later, in nanoseconds since 1970, as
    /// `time.time_ns()` returns it.
    fn seek_time_ns(&self, py: Python<'_>, time_ns: u64) -> PyResult<()> {
        let time = UNIX_EPOCH + Duration::from_nanos(time_ns);
        self.moved(py, |reader| reader.seek_time(time))
    }

    /// Returns the number of records that the reader has skipped, because retention, a trim or a
    /// repair had removed them.
    #[getter]
    fn passed_over(&self, py: Python<'_>) -> u64 {
        self.state(py).reader.passed_over()
    }
}
