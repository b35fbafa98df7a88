//! Parts that the bindings for all languages share: wake-ups through an `eventfd(2)`, and the parts
//! of an error.

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::time::{SystemTime, UNIX_EPOCH};
use wrote::Error;

/// An `eventfd(2)` for a log to wake an event loop. One serves any number of tickets.
pub struct Wakeup {
    fd: OwnedFd,
    /// Whether the descriptor is readable, so that many tickets cost one write.
    is_set: AtomicBool,
}

impl Wakeup {
    /// Creates a descriptor that is not readable.
    pub fn new() -> Result<Arc<Wakeup>, Error> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let fd = eventfd(0, flags).map_err(|errno| Error::Engine {
            what: "creating an eventfd",
            errno: errno.raw_os_error(),
        })?;
        Ok(Arc::new(Wakeup { fd, is_set: AtomicBool::new(false) }))
    }

    /// Makes the descriptor unreadable again. To be called before tickets are polled, so that a
    /// wake-up during the polls is not lost.
    pub fn clear(&self) {
        let mut count = [0; 8];
        while rustix::io::read(&self.fd, &mut count) == Err(Errno::INTR) {}
        self.is_set.store(false, Ordering::SeqCst);
    }

    /// Returns the waker of a poll.
    pub fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::clone(self))
    }
}

impl AsFd for Wakeup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Wake for Wakeup {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_set.swap(true, Ordering::SeqCst) {
            // Fails only where the counter is full, and then the descriptor is readable.
            while rustix::io::write(&self.fd, &1u64.to_ne_bytes()) == Err(Errno::INTR) {}
        }
    }
}

/// Returns a time in nanoseconds since 1970.
pub fn unix_ns(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the byte of the file at which an operation failed, where the error has one.
pub fn offset(error: &Error) -> Option<u64> {
    match error {
        Error::File { offset, .. } | Error::NotYet { offset, .. } => *offset,
        Error::Alignment { offset, .. }
        | Error::TooLong { offset, .. }
        | Error::Damaged { offset, .. } => Some(*offset),
        _ => None,
    }
}

/// Returns the library's error inside an I/O error.
pub fn from_io(error: io::Error) -> Error {
    error.downcast::<Error>().unwrap_or_else(|error| {
        let errno = Error::errno_in(&error).unwrap_or(Errno::INVAL.raw_os_error());
        Error::Engine { what: "the call's arguments", errno }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, poll};

    fn is_readable(wakeup: &Wakeup) -> bool {
        let mut fds = [PollFd::new(wakeup, PollFlags::IN)];
        poll(&mut fds, Some(&Default::default())).unwrap() == 1
    }

    #[test]
    fn a_wakeup_is_readable_from_a_wake_until_it_is_cleared() {
        let wakeup = Wakeup::new().unwrap();
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
