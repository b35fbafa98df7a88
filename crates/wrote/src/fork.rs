//! The process in which a handle was opened: a child of `fork(2)` must not use it.

use crate::Error;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

/// The forks that lie between this process and the one that was started.
static FORKS: AtomicU32 = AtomicU32::new(0);
static COUNTING: Once = Once::new();

/// The process in which a handle was opened.
///
/// A child has copies of the handles, and none of what they stand for: no threads, no mapping of a
/// ring, and locks that no thread will release. A ring's descriptor and a file lock it has in
/// common with its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process(u32);

impl Process {
    pub(crate) fn this() -> Process {
        COUNTING.call_once(count_forks);
        Process(FORKS.load(Ordering::Relaxed))
    }

    /// Tells whether it is this process. It costs one load.
    #[inline]
    pub(crate) fn is_this(self) -> bool {
        FORKS.load(Ordering::Relaxed) == self.0
    }

    /// Fails in a child of the process.
    #[inline]
    pub(crate) fn check(self) -> Result<(), Error> {
        if self.is_this() { Ok(()) } else { Err(Error::Forked) }
    }
}

fn count_forks() {
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    // Miri knows neither this call nor fork.
    if !cfg!(miri) {
        // SAFETY: the handler only changes an atomic, which a child may do (`fork(2)`). It fails
        // without memory alone; then a child is not recognized.
        let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
}
