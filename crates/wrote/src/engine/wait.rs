//! Waits for the kernel that do not need the engine, so that other threads can use the engine in
//! the meantime.

#[cfg(feature = "io-uring")]
use crate::error::errno_of;
use std::io;
#[cfg(feature = "io-uring")]
use std::os::fd::RawFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// `IORING_ENTER_GETEVENTS` (`io_uring_enter(2)`).
#[cfg(feature = "io-uring")]
const GETEVENTS: u32 = 1;

/// A wait until a reply may be available. It ends early on a signal, and when the engine is
/// interrupted.
pub(crate) enum Wait {
    /// No wait is needed: replies are available, or will arrive during the next call of the engine.
    None,
    /// Replies are found only by repeated polling, because a ring polls its device.
    Poll,
    /// Submits the entries in the ring, and waits in the kernel.
    #[cfg(feature = "io-uring")]
    Ring { ring: RawFd, to_submit: u32 },
    /// Waits until the bell has rung more than `seen` times.
    Bell { bell: Arc<Bell>, seen: u64 },
}

impl Wait {
    /// Waits. The engine must not be dropped in the meantime.
    pub(crate) fn wait(self) -> io::Result<()> {
        match self {
            Wait::None => Ok(()),
            Wait::Poll => {
                std::thread::yield_now();
                Ok(())
            }
            #[cfg(feature = "io-uring")]
            Wait::Ring { ring, to_submit } => enter(ring, to_submit),
            Wait::Bell { bell, seen } => {
                bell.wait(seen);
                Ok(())
            }
        }
    }
}

/// Submits up to `to_submit` entries, and waits for a completion. Returns at once if one is already
/// available.
///
/// Another thread may submit some of the entries first. The kernel then submits fewer and returns
/// without waiting, and the next call waits.
#[cfg(feature = "io-uring")]
fn enter(ring: RawFd, to_submit: u32) -> io::Result<()> {
    // SAFETY: the call reads only the ring's memory, which is mapped while the engine lives.
    let entered = unsafe {
        let no_mask: *const libc::sigset_t = std::ptr::null();
        libc::syscall(libc::SYS_io_uring_enter, ring, to_submit, 1_u32, GETEVENTS, no_mask, 0_usize)
    };
    if entered >= 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    let passes = matches!(errno_of(&error), libc::EINTR | libc::EAGAIN | libc::EBUSY);
    if passes { Ok(()) } else { Err(error) }
}

/// A count of the replies of threads, which wakes the thread that waits for one.
#[derive(Default)]
pub(crate) struct Bell {
    rung: Mutex<u64>,
    rings: Condvar,
}

impl Bell {
    pub(super) fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.rings.notify_all();
    }

    /// Returns the number of rings so far, for a later [`Bell::wait`]. Must be called before
    /// collecting replies.
    pub(super) fn look(&self) -> u64 {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait(&self, seen: u64) {
        let mut rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        while *rung == seen {
            rung = self.rings.wait(rung).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
