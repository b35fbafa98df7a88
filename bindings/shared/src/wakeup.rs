//! `Wakeup`: wakes an event loop, once for any number of tickets.

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use wrote::Error;

/// The signal of an event loop.
pub trait Signal: Send + Sync + 'static {
    /// Gives the signal, from any thread.
    fn give(&self);

    /// Takes it back.
    fn take_back(&self) {}
}

/// Wakes an event loop by its signal. One serves any number of tickets.
pub struct Wakeup<S> {
    signal: S,
    /// Whether the signal is given, so that many tickets cost one.
    is_set: AtomicBool,
}

impl<S: Signal> Wakeup<S> {
    /// Wraps a signal that is not given.
    pub fn of(signal: S) -> Arc<Wakeup<S>> {
        Arc::new(Wakeup { signal, is_set: AtomicBool::new(false) })
    }

    /// Returns the signal.
    pub fn signal(&self) -> &S {
        &self.signal
    }

    /// Takes the signal back. To be called before tickets are polled, so that a wake-up during the
    /// polls is not lost.
    pub fn clear(&self) {
        self.signal.take_back();
        self.is_set.store(false, Ordering::SeqCst);
    }

    /// Returns the waker of a poll.
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

/// An `eventfd(2)`, readable while its signal is given.
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
        // Fails only where the counter is full, and then the descriptor is readable.
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
