//! Detects handles that the parent of a forked process opened, which the child must not use. It is
//! a separate file because every kind of handle uses it, and it uses no other module.

use crate::Error;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

#[cfg(test)]
#[path = "../tests/it/in_child.rs"]
mod in_child;

#[cfg(test)]
pub(crate) use in_child::in_child;

/// The number of forks that separate this process from the original one.
static FORKS: AtomicU32 = AtomicU32::new(0);
static COUNTING: Once = Once::new();

/// The process in which a handle was opened.
///
/// A child has copies of the handles, but not of what the handles refer to: it has no threads and
/// no mapped ring, and its locks may never be released. It shares a ring's descriptor and file
/// locks with its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process(u32);

impl Process {
    pub(crate) fn this() -> Process {
        COUNTING.call_once(count_forks);
        Process(FORKS.load(Ordering::Relaxed))
    }

    /// Returns whether the handle was opened in this process, at the cost of one load.
    #[inline]
    pub(crate) fn is_this(self) -> bool {
        FORKS.load(Ordering::Relaxed) == self.0
    }

    /// Fails with [`Error::Forked`] in a child of the process that opened the handle.
    #[inline]
    pub(crate) fn check(self) -> Result<(), Error> {
        if self.is_this() { Ok(()) } else { Err(Error::Forked) }
    }
}

fn count_forks() {
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    // Miri supports neither this call nor `fork(2)`.
    if !cfg!(miri) {
        // SAFETY: the handler only changes an atomic, which is allowed in a child (`fork(2)`).
        // Registering it fails only for lack of memory; a child is then not detected.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
}
