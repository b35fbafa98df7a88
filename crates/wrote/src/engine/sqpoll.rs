//! A thread of the kernel's that takes operations from rings, shared by all that ask for the same.

use std::sync::Arc;

/// Asks for a kernel thread that takes operations from the ring (`IORING_SETUP_SQPOLL`,
/// `io_uring_setup(2)`; for ordinary users since Linux 5.13).
///
/// Engines opened with clones of one `Sqpoll` share one thread (`IORING_SETUP_ATTACH_WQ`, Linux
/// 5.6).
#[derive(Clone, Debug)]
pub struct Sqpoll(Arc<Settings>);

#[derive(Debug)]
struct Settings {
    idle_ms: u32,
    cpu: Option<u32>,
}

impl Sqpoll {
    /// The thread goes to sleep after `idle_ms` without work, and is bound to `cpu` where one is
    /// given.
    pub fn new(idle_ms: u32, cpu: Option<u32>) -> Sqpoll {
        Sqpoll(Arc::new(Settings { idle_ms, cpu }))
    }

    /// After how many milliseconds without work the thread goes to sleep.
    pub fn idle_ms(&self) -> u32 {
        self.0.idle_ms
    }

    /// The CPU that the thread is bound to.
    pub fn cpu(&self) -> Option<u32> {
        self.0.cpu
    }
}
