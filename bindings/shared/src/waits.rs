//! `Wakeup` and `Waits`: they wake an event loop once for any number of tickets, and return the
//! results of the tickets for which its tasks wait.

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::future::Future;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use wrote::{Error, Ticket};

/// The tickets of one log, each with its waiter, the object that the language resolves when the
/// ticket is ready.
///
/// A log makes its records safe in order, so only the first ticket is polled, and then the
/// following ones that are also ready: a single wake-up of the event loop serves all tasks of a
/// flush.
pub struct Waits<T> {
    /// The waiters for what the log promises, and those for durability if the log promises less.
    queues: [VecDeque<Entry<T>>; 2],
}

struct Entry<T> {
    ticket: Ticket<'static>,
    waiter: T,
    is_polled: bool,
}

/// The waiter of a ticket that is ready, with the result.
pub struct Answer<T> {
    /// The waiter that was passed to [`Waits::add`].
    pub waiter: T,
    /// The sequence of the ticket's record.
    pub sequence: u64,
    /// Success if the record is as safe as the waiter required.
    pub result: Result<(), Error>,
}

impl<T> Entry<T> {
    fn poll(&mut self, waker: &Waker) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.ticket).poll(&mut Context::from_waker(waker))
    }
}

impl<T> Default for Waits<T> {
    fn default() -> Waits<T> {
        Waits { queues: [VecDeque::new(), VecDeque::new()] }
    }
}

impl<T> Waits<T> {
    /// Adds a ticket. `is_durable` states whether it waits for durability, even if its log promises
    /// less. Wakes the loop if the ticket is the first in its queue.
    pub fn add(&mut self, ticket: Ticket<'static>, is_durable: bool, waiter: T, waker: Waker) {
        let queue = &mut self.queues[usize::from(is_durable)];
        let sequence = ticket.sequence();
        let place = queue.iter().rposition(|other| other.ticket.sequence() <= sequence);
        let place = place.map_or(0, |place| place + 1);
        queue.insert(place, Entry { ticket, waiter, is_polled: false });
        if place == 0 {
            // The loop's next turn polls the first ticket, after other tasks have appended.
            waker.wake();
        }
    }

    /// Returns whether no task is waiting.
    pub fn is_empty(&self) -> bool {
        self.queues.iter().all(VecDeque::is_empty)
    }

    /// Takes the waiters whose tickets are ready. The first of the remaining tickets will wake the
    /// loop.
    pub fn answers(&mut self, waker: &Waker) -> Vec<Answer<T>> {
        let mut answers = Vec::new();
        for queue in &mut self.queues {
            while let Some(entry) = queue.front_mut() {
                let mut polled = Poll::Pending;
                // The first poll would only ask for another turn of the loop, so that other tasks
                // append first. They have already appended, unless this turn has just answered some
                // of them.
                if !std::mem::replace(&mut entry.is_polled, true) && answers.is_empty() {
                    polled = entry.poll(Waker::noop());
                }
                if polled.is_pending() {
                    polled = entry.poll(waker);
                }
                let Poll::Ready(result) = polled else { break };
                let Some(Entry { ticket, waiter, .. }) = queue.pop_front() else { break };
                answers.push(Answer { waiter, sequence: ticket.sequence(), result });
            }
        }
        answers
    }
}

/// The signal that wakes an event loop.
pub trait Signal: Send + Sync + 'static {
    /// Raises the signal, from any thread.
    fn give(&self);

    /// Clears the signal.
    fn take_back(&self) {}
}

/// A waker of an event loop, which uses the loop's signal. It serves any number of tickets.
pub struct Wakeup<S> {
    signal: S,
    /// Whether the signal is raised, so that many tickets raise it only once.
    is_set: AtomicBool,
}

impl<S: Signal> Wakeup<S> {
    /// Wraps a signal that is not raised.
    pub fn of(signal: S) -> Arc<Wakeup<S>> {
        Arc::new(Wakeup { signal, is_set: AtomicBool::new(false) })
    }

    /// Returns the signal.
    pub fn signal(&self) -> &S {
        &self.signal
    }

    /// Clears the signal. Must be called before the tickets are polled, so that no wake-up during
    /// the polls is lost.
    pub fn clear(&self) {
        self.signal.take_back();
        self.is_set.store(false, Ordering::SeqCst);
    }

    /// Returns the waker to poll with.
    pub fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::clone(self))
    }
}

impl<S: Signal> Wake for Wakeup<S> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_set.swap(true, Ordering::SeqCst) {
            self.signal.give();
        }
    }
}

/// An `eventfd(2)`, which is readable while its signal is raised.
pub struct EventFd(OwnedFd);

impl EventFd {
    /// Creates a descriptor that is not readable.
    pub fn new() -> Result<EventFd, Error> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        eventfd(0, flags).map(EventFd).map_err(|errno| Error::Engine {
            what: "creating an eventfd",
            errno: errno.raw_os_error(),
        })
    }
}

impl Signal for EventFd {
    fn give(&self) {
        // This fails only if the counter is full, and the descriptor is readable in that case.
        while rustix::io::write(&self.0, &1u64.to_ne_bytes()) == Err(Errno::INTR) {}
    }

    fn take_back(&self) {
        let mut count = [0; 8];
        while rustix::io::read(&self.0, &mut count) == Err(Errno::INTR) {}
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    fn is_readable(wakeup: &Wakeup<EventFd>) -> bool {
        let mut fds = [PollFd::new(wakeup.signal(), PollFlags::IN)];
        poll(&mut fds, Some(&Default::default())).unwrap() == 1
    }

    #[test]
    fn a_wakeup_is_readable_from_a_wake_until_it_is_cleared() {
        let wakeup = Wakeup::of(EventFd::new().unwrap());
        let waker = wakeup.waker();
        assert!(!is_readable(&wakeup));
        for _ in 0..2 {
            waker.wake_by_ref();
            waker.wake_by_ref();
            assert!(is_readable(&wakeup));
            wakeup.clear();
            assert!(!is_readable(&wakeup));
        }
    }
}
