//! `Waits`: the tickets for which the tasks of one event loop wait.

use crate::error::raise;
use crate::log::Ticket;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex, PoisonError};
use wrote_bindings::{Answer, EventFd, Wakeup};

/// Tickets of one log, behind a descriptor that is readable when they are worth polling.
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

    /// Gives the futures that are ready their sequence, or an error.
    fn poll(&self, py: Python<'_>) -> PyResult<()> {
        self.wakeup.clear();
        let mut waits = self.waits.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let waits = &mut *waits;
        let answers = py.detach(|| waits.answers(&self.wakeup.waker()));
        answers.into_iter().try_for_each(|Answer { waiter, sequence, result }| {
            let future = waiter.bind(py);
            // A task that was cancelled no longer waits.
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
    /// Adds a ticket, whose future `poll` gives its result once it is ready.
    pub fn add(&self, py: Python<'_>, ticket: &Ticket, future: Py<PyAny>) {
        let mut waits = self.waits.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        waits.add(ticket.ticket().into_owned(), ticket.durable, future, self.wakeup.waker());
    }
}
