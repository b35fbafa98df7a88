//! `Log` and `Ticket`: records from many threads and tasks, each acknowledged once it is safe.
//! `Waits` contains the tickets for which the tasks of one event loop wait.

use crate::border::{FsPath, policy, raise, timeout, waiting, with_all_bytes, with_text};
use crate::log_reader::LogReader;
use pyo3::exceptions::{PyStopIteration, PyTimeoutError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::{MutexExt, PyOnceLock};
use pyo3::types::PyDict;
use std::future::Future;
use std::os::fd::{AsFd, AsRawFd};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use wrote::{LogOptions, Survives};
use wrote_bindings::{Answer, EventFd, Options, Wakeup, interval};

/// An append-only log in a folder, for any number of threads and tasks.
#[pyclass(frozen, subclass, module = "wrote._wrote")]
pub struct Log {
    log: wrote::Log,
    /// Whether `close` has closed the log. The readers that follow the log share this flag.
    is_closed: Arc<AtomicBool>,
    /// The `Waits` of each event loop.
    waits: Py<PyDict>,
}

#[pymethods]
impl Log {
    #[new]
    #[pyo3(signature = (
        path, *, sync=None, segment_bytes=None, retain_bytes=None,
        retain_age=None, buffers=None, buffer_bytes=None, permissions=None,
    ))]
    #[expect(clippy::too_many_arguments, reason = "they are named ones in Python")]
    fn new(
        py: Python<'_>,
        path: FsPath,
        sync: Option<&Bound<'_, PyAny>>,
        segment_bytes: Option<u64>,
        retain_bytes: Option<u64>,
        retain_age: Option<f64>,
        buffers: Option<u32>,
        buffer_bytes: Option<usize>,
        permissions: Option<u32>,
    ) -> PyResult<Log> {
        let retain_age = retain_age.map(|seconds| interval("retain_age", seconds)).transpose();
        let options = wrote::Log::options()
            .set(LogOptions::sync, sync.map(policy).transpose()?)
            .set(LogOptions::segment_bytes, segment_bytes)
            .set(LogOptions::retain_bytes, retain_bytes)
            .set(LogOptions::retain_age, retain_age.map_err(PyValueError::new_err)?)
            .set(LogOptions::buffers, buffers)
            .set(LogOptions::buffer_bytes, buffer_bytes)
            .set(LogOptions::mode, permissions);
        let log = waiting(py, || options.open(path.0))?;
        Ok(Log { log, is_closed: Arc::default(), waits: PyDict::new(py).unbind() })
    }

    /// Appends a record, bytes or text as UTF-8, and returns its ticket, for `ticket.wait()` or
    /// `await ticket`. Until such a wait has returned, the record may exist only in memory.
    /// Appending waits only while all buffers are in flight.
    fn append(&self, py: Python<'_>, record: &Bound<'_, PyAny>) -> PyResult<Ticket> {
        let sequence = with_text(record, |bytes| self.sequence_of(py, bytes))?;
        Ok(self.ticket_of(py, sequence, sequence))
    }

    /// Appends a record, and waits until it is as safe as the log promises. Returns its sequence.
    fn append_wait(&self, py: Python<'_>, record: &Bound<'_, PyAny>) -> PyResult<u64> {
        with_text(record, |bytes| {
            waiting(py, || {
                let ticket = self.log.append(bytes)?;
                let sequence = ticket.sequence();
                ticket.wait().map(|()| sequence)
            })
        })
    }

    /// Appends consecutive records, which together must fit into one buffer, and returns one ticket
    /// for all of them. After a crash, either all of them exist or none does.
    fn append_all(&self, py: Python<'_>, records: &Bound<'_, PyAny>) -> PyResult<Ticket> {
        with_all_bytes(records, |records| {
            let sequences = waiting(py, || self.log.append_all(records).map(|(all, _)| all))?;
            Ok(self.ticket_of(py, sequences.start, sequences.end - 1))
        })
    }

    /// Returns the ticket of a record that any thread or task has appended.
    fn ticket(&self, py: Python<'_>, sequence: u64) -> Ticket {
        self.ticket_of(py, sequence, sequence)
    }

    /// Makes every record appended so far durable.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        waiting(py, || self.log.sync())
    }

    /// Durably removes the segments whose records are all before `sequence`. Returns the sequence
    /// of the first remaining record.
    fn trim_before(&self, py: Python<'_>, sequence: u64) -> PyResult<u64> {
        waiting(py, || self.log.trim_before(sequence))
    }

    /// Durably removes record `sequence` and all later ones. The next record gets that sequence.
    fn truncate_from(&self, py: Python<'_>, sequence: u64) -> PyResult<()> {
        waiting(py, || self.log.truncate_from(sequence))
    }

    /// Returns the worst event that a record currently survives: "nothing", "process-crash",
    /// "os-crash" or "power-loss".
    fn survives(&self, sequence: u64) -> &'static str {
        self.log.survives(sequence).as_str()
    }

    /// Returns the sequence that the next record will have, unless another thread appends first.
    #[getter]
    fn next_sequence(&self) -> u64 {
        self.log.next_sequence()
    }

    /// Returns the sequence before which every record survives a crash of the process.
    #[getter]
    fn written_sequence(&self) -> u64 {
        self.log.written_sequence()
    }

    /// Returns the sequence before which every record survives a power loss.
    #[getter]
    fn durable_sequence(&self) -> u64 {
        self.log.durable_sequence()
    }

    /// Returns the log's figures.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (stats, figures) = (self.log.stats(), PyDict::new(py));
        for (key, value) in [
            ("found_records", stats.found_records),
            ("torn_bytes", stats.torn_bytes),
            ("first_sequence", stats.first_sequence),
            ("next_sequence", stats.next_sequence),
            ("written_sequence", stats.written_sequence),
            ("durable_sequence", stats.durable_sequence),
            ("batches", stats.batches),
            ("flushes", stats.flushes),
            ("written_bytes", stats.written_bytes),
            ("flushed_bytes", stats.flushed_bytes),
            ("segments", stats.segments),
            ("removed", stats.removed),
        ] {
            figures.set_item(key, value)?;
        }
        figures.set_item("flush_time", stats.flush_time.as_secs_f64())?;
        figures.set_item("found_closed", stats.found_closed)?;
        Ok(figures)
    }

    /// Reads the records from `start` on, or from the first one written at `since` or later: a
    /// datetime, or seconds since 1970. With `follow`, waits for further records until the log is
    /// closed.
    #[pyo3(signature = (start=0, *, since=None, follow=false))]
    fn reader(
        &self,
        py: Python<'_>,
        start: u64,
        since: Option<&Bound<'_, PyAny>>,
        follow: bool,
    ) -> PyResult<LogReader> {
        let end = follow.then(|| Arc::clone(&self.is_closed));
        LogReader::since(py, since, follow, end, || {
            let reader = self.log.reader(start)?;
            if follow { reader.following() } else { Ok(reader) }
        })
    }

    /// Closes the log: makes all records durable, and marks the log as closed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        waiting(py, || self.log.close())?;
        self.is_closed.store(true, Ordering::SeqCst);
        Ok(())
    }

    #[getter]
    fn _waits(&self, py: Python<'_>) -> Py<PyDict> {
        self.waits.clone_ref(py)
    }
}

impl Log {
    fn sequence_of(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<u64> {
        // An append does not wait if it finds room.
        let appended = self.log.try_append(&[bytes]).map(|ticket| ticket.map(|it| it.sequence()));
        match appended.map_err(|error| raise(py, &error))? {
            Some(sequence) => Ok(sequence),
            None => waiting(py, || self.log.append(bytes).map(|ticket| ticket.sequence())),
        }
    }

    fn ticket_of(&self, py: Python<'_>, first: u64, sequence: u64) -> Ticket {
        let (log, waits) = (self.log.clone(), self.waits.clone_ref(py));
        Ticket { log, waits, first, sequence, waits_for_durable: false }
    }
}

/// The promise for one record, or for a group of records. Use `wait()`, or `await` it, which
/// returns the sequence. Both can be repeated.
#[pyclass(frozen, module = "wrote")]
pub struct Ticket {
    log: wrote::Log,
    waits: Py<PyDict>,
    /// The sequence of the first record.
    #[pyo3(get)]
    first: u64,
    /// The sequence of the record, or of the last record of a group.
    #[pyo3(get)]
    pub sequence: u64,
    /// Whether the ticket waits until the record survives a power loss, even if the log promises
    /// less.
    waits_for_durable: bool,
}

/// The waker of a thread that waits for a ticket with a time limit.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl Ticket {
    /// Returns the library's ticket.
    pub fn ticket(&self) -> wrote::Ticket<'_> {
        let ticket = self.log.ticket(self.sequence);
        if self.waits_for_durable { ticket.until_durable() } else { ticket }
    }

    /// Waits for at most `longest`; returns `None` if the record is not safe by then.
    fn wait_for(&self, longest: Duration) -> Result<Option<()>, wrote::Error> {
        let (mut ticket, end) = (self.ticket(), Instant::now().checked_add(longest));
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        loop {
            let polled = Pin::new(&mut ticket).poll(&mut Context::from_waker(&waker));
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            match (polled, left) {
                (Poll::Ready(result), _) => return result.map(Some),
                (Poll::Pending, Some(Duration::ZERO)) => return Ok(None),
                (Poll::Pending, left) => thread::park_timeout(left.unwrap_or(Duration::MAX)),
            }
        }
    }
}

#[pymethods]
impl Ticket {
    /// Waits until the record is as safe as the log promises, and returns its sequence. With
    /// sync="always", it and every record before it then survive a power loss; otherwise, they
    /// survive a crash of the process. After `timeout` seconds, raises a TimeoutError; the record
    /// may still become safe, and it is possible to wait for it again.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<u64> {
        let waited = waiting(py, || match self::timeout(timeout) {
            Some(longest) => self.wait_for(longest),
            None => self.ticket().wait().map(Some),
        })?;
        let late = || PyTimeoutError::new_err(format!("record {} is not safe yet", self.sequence));
        waited.map(|()| self.sequence).ok_or_else(late)
    }

    /// Returns a ticket that waits until the record survives a power loss, whatever the log
    /// promises.
    fn until_durable(&self, py: Python<'_>) -> Ticket {
        let &Ticket { ref log, ref waits, first, sequence, .. } = self;
        let (log, waits) = (log.clone(), waits.clone_ref(py));
        Ticket { log, waits, first, sequence, waits_for_durable: true }
    }

    /// Returns the worst event that the record currently survives.
    #[getter]
    fn survives(&self) -> &'static str {
        self.log.survives(self.sequence).as_str()
    }

    /// Returns whether the record already survives a power loss.
    #[getter]
    fn durable(&self) -> bool {
        self.log.survives(self.sequence) == Survives::PowerLoss
    }

    /// Makes the ticket a coroutine, as `asyncio.create_task()` requires. The coroutine yields a
    /// future for each wait.
    fn send<'py>(
        slf: &Bound<'py, Self>,
        _value: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let ticket = slf.get();
        match ticket.wait_for(Duration::ZERO) {
            Ok(Some(())) => Err(PyStopIteration::new_err(ticket.sequence)),
            Ok(None) => Ticket::__await__(slf)?.call_method0(intern!(slf.py(), "__next__")),
            Err(error) => Err(raise(slf.py(), &error)),
        }
    }

    /// Raises the exception that the future of `send` raised.
    #[pyo3(signature = (kind, value=None, traceback=None))]
    fn throw(
        &self,
        kind: Bound<'_, PyAny>,
        value: Option<&Bound<'_, PyAny>>,
        traceback: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let _ = (value, traceback);
        Err(PyErr::from_value(kind))
    }

    /// Closes the coroutine. The record is still written.
    fn close(&self) {}

    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        static WAITS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let py = slf.py();
        let event_loop = RUNNING.import(py, "asyncio", "get_running_loop")?.call0()?;
        let all = slf.get().waits.bind(py);
        let waits = match all.get_item(&event_loop)? {
            Some(waits) => waits,
            None => WAITS.import(py, "wrote._tasks", "waits_of")?.call1((&event_loop, all))?,
        };
        let future = event_loop.call_method0(intern!(py, "create_future"))?;
        waits.cast::<Waits>()?.get().add(py, slf.get(), future.clone().unbind());
        future.call_method0(intern!(py, "__await__"))
    }

    fn __repr__(&self) -> String {
        format!("<wrote.Ticket of record {}: survives {}>", self.sequence, self.survives())
    }
}

/// The tickets of one log, with a descriptor that is readable when it is worth polling them.
#[pyclass(frozen, module = "wrote._wrote")]
pub struct Waits {
    wakeup: Arc<Wakeup<EventFd>>,
    waits: Mutex<wrote_bindings::Waits<Py<PyAny>>>,
}

#[pymethods]
impl Waits {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Waits> {
        let signal = EventFd::new().map_err(|error| raise(py, &error))?;
        Ok(Waits { wakeup: Wakeup::of(signal), waits: Mutex::default() })
    }

    fn fileno(&self) -> i32 {
        self.wakeup.signal().as_fd().as_raw_fd()
    }

    /// Sets the result of the futures whose tickets are ready: their sequence, or an error.
    fn poll(&self, py: Python<'_>) -> PyResult<()> {
        self.wakeup.clear();
        let mut waits = self.waits.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let waits = &mut *waits;
        let answers = py.detach(|| waits.answers(&self.wakeup.waker()));
        answers.into_iter().try_for_each(|Answer { waiter, sequence, result }| {
            let future = waiter.bind(py);
            // A cancelled task no longer waits.
            if future.call_method0(intern!(py, "done"))?.is_truthy()? {
                return Ok(());
            }
            match result {
                Ok(()) => future.call_method1(intern!(py, "set_result"), (sequence,)),
                Err(error) => {
                    future.call_method1(intern!(py, "set_exception"), (raise(py, &error),))
                }
            }
            .map(drop)
        })
    }
}

impl Waits {
    /// Adds a ticket. `poll` sets the result of its future once the ticket is ready.
    pub fn add(&self, py: Python<'_>, ticket: &Ticket, future: Py<PyAny>) {
        let mut waits = self.waits.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let (own, waker) = (ticket.ticket().into_owned(), self.wakeup.waker());
        waits.add(own, ticket.waits_for_durable, future, waker);
    }
}
