//! A kernel thread that polls rings for operations. Engines share the thread if their options are
//! clones of each other. It is a separate file because options refer to it even if io_uring is not
//! built in.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, Weak};

/// A requested kernel thread. All clones refer to the same thread.
#[derive(Clone, Debug)]
pub(crate) struct Sqpoll(Arc<KernelThread>);

#[derive(Debug)]
struct KernelThread {
    idle_ms: u32,
    cpu: Option<u32>,
    /// The rings that the thread serves. New rings attach to one of them.
    rings: Mutex<Vec<Weak<OwnedFd>>>,
}

impl Sqpoll {
    pub(super) fn new(idle_ms: u32, cpu: Option<u32>) -> Sqpoll {
        Sqpoll(Arc::new(KernelThread { idle_ms, cpu, rings: Mutex::new(Vec::new()) }))
    }
}

#[cfg(feature = "io-uring")]
pub(super) use attach::Member;

#[cfg(feature = "io-uring")]
mod attach {
    use super::Sqpoll;
    use io_uring::{Builder, IoUring};
    use std::io;
    use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
    use std::sync::{Arc, PoisonError, Weak};

    /// A copy of a ring's descriptor, kept while the ring exists so that others can attach to it.
    pub(in crate::engine) type Member = Arc<OwnedFd>;

    impl Sqpoll {
        /// Creates a ring served by the thread. `set_up` receives a function that configures the
        /// ring's builder. The lock is held while `set_up` runs, so that if two engines are created
        /// concurrently, one attaches to the other's ring.
        pub(in crate::engine) fn ring<T>(
            &self,
            set_up: impl FnOnce(&dyn Fn(&mut Builder)) -> io::Result<(IoUring, T)>,
        ) -> io::Result<(IoUring, T, Member)> {
            let mut rings = self.0.rings.lock().unwrap_or_else(PoisonError::into_inner);
            rings.retain(|ring| ring.strong_count() > 0);
            let other = rings.iter().find_map(Weak::upgrade);
            let (ring, told) = set_up(&|builder| {
                builder.setup_sqpoll(self.0.idle_ms);
                if let Some(cpu) = self.0.cpu {
                    builder.setup_sqpoll_cpu(cpu);
                }
                if let Some(other) = &other {
                    builder.setup_attach_wq(other.as_raw_fd());
                }
            })?;
            // SAFETY: the ring is open until it is dropped, after this.
            let own =
                Arc::new(unsafe { BorrowedFd::borrow_raw(ring.as_raw_fd()) }.try_clone_to_owned()?);
            rings.push(Arc::downgrade(&own));
            Ok((ring, told, own))
        }
    }
}
