//! `Waits`: the tickets for which the tasks of one event loop wait.

use crate::error::raise;
use crate::log::Ticket;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use std::collections::VecDeque;
use std::future::Future;
use std::os::fd::{AsFd, AsRawFd};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use wrote::Error;
use wrote_bindings::Wakeup;

/// Tickets of one log, behind a descriptor that is readable when they are worth polling.
///
/// A log makes its records safe in their order, so only the first ticket is polled, and then those
/// behind it that are ready too: one wake-up of the event loop serves all tasks of a flush.
#[pyclass(frozen, module = "wrote._wrote")]
pub struct Waits {
    wakeup: Arc<Wakeup>,
    /// Waiters for the log's promise, and waiters for more.
    queues: Mutex<[VecDeque<Entry>; 2]>,
}

struct Entry {
    sequence: u64,
    ticket: wrote::Ticket<'static>,
    future: Py<PyAny>,
}

/// A future whose ticket was answered: the sequence, and the error where there is one.
type Answer = (Py<PyAny>, u64, Result<(), Error>);

impl Waits {
    /// Takes those from the front of a queue that are ready. The first that is not wakes the loop.
    fn ready(&self, queue: &mut VecDeque<Entry>, answers: &mut Vec<Answer>) {
        let waker = self.wakeup.waker();
        let context = &mut Context::from_waker(&waker);
        while let Some(entry) = queue.front_mut() {
            let Poll::Ready(result) = Pin::new(&mut entry.ticket).poll(context) else { return };
            let Some(entry) = queue.pop_front() else { return };
            answers.push((entry.future, entry.sequence, result));
        }
    }
}

#[pymethods]
impl Waits {
    #[new]
    fn new(py: Python<'_>) -> PyResult<Waits> {
        let wakeup = Wakeup::new().map_err(|error| raise(py, &error))?;
        Ok(Waits { wakeup, queues: Mutex::default() })
    }

    fn fileno(&self) -> i32 {
        self.wakeup.as_fd().as_raw_fd()
    }

    /// Adds a ticket, whose future `poll` returns once it is ready.
    fn add(&self, py: Python<'_>, ticket: &Bound<'_, Ticket>, future: Py<PyAny>) {
        let ticket = ticket.get();
        let (sequence, which) = (ticket.sequence, usize::from(ticket.durable));
        let entry = Entry { sequence, ticket: ticket.ticket().into_owned(), future };
        let mut queues = self.queues.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let queue = &mut queues[which];
        let place = queue.iter().rposition(|other| other.sequence <= sequence);
        let place = place.map_or(0, |place| place + 1);
        queue.insert(place, entry);
        if place == 0 {
            // The first one is polled by the loop's next turn, when other tasks have appended.
            self.wakeup.waker().wake();
        }
    }

    /// Returns the futures that are ready, each with its sequence, or with an error.
    fn poll(&self, py: Python<'_>) -> Vec<(Py<PyAny>, u64, Option<PyErr>)> {
        self.wakeup.clear();
        let mut queues = self.queues.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let queues = &mut *queues;
        let answers = py.detach(|| {
            let mut answers = Vec::new();
            queues.iter_mut().for_each(|queue| self.ready(queue, &mut answers));
            answers
        });
        let raised = |(future, sequence, result): Answer| {
            (future, sequence, result.err().map(|error| raise(py, &error)))
        };
        answers.into_iter().map(raised).collect()
    }
}
