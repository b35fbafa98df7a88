//! What is in effect, beside what was asked: no step down is silent (W6).

use super::Ioengine;

/// A step from what was asked to what worked, with the kernel's own reason.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fallback {
    /// What was asked: `io_uring`, `registered buffers`, `O_DIRECT`.
    pub wanted: &'static str,
    /// What is used instead: `threads`, `unregistered buffers`, `page cache`.
    pub got: &'static str,
    /// What was tried, and what the kernel said to it.
    pub because: String,
}

/// What an engine really does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// How operations reach the kernel.
    pub ioengine: Ioengine,
    /// The most operations that may be in flight at once.
    pub iodepth: u32,
    /// The most operations that were in flight at once, as far as the engine knows: queued and not
    /// yet reaped.
    pub iodepth_reached: u32,
    /// The ring's set-up flags that the kernel took, by their names in `io_uring_setup(2)` without
    /// the prefix `IORING_SETUP_`.
    pub ring_flags: Vec<&'static str>,
    /// Whether the pool is registered with the ring.
    pub registered_buffers: bool,
    /// Whether open files are registered with the ring.
    pub registered_files: bool,
    /// Whether a thread of the kernel's takes operations from the ring.
    pub sqpoll: bool,
    /// Whether transfers of some file's complete by polling the device.
    pub iopoll: bool,
    /// Whether the pool lies in huge pages that were set aside for it (`MAP_HUGETLB`, `mmap(2)`).
    pub huge_pages: bool,
    /// Each step down, in the order in which they were taken.
    pub fallbacks: Vec<Fallback>,
}

impl Effective {
    pub(super) fn new(ioengine: Ioengine, iodepth: u32) -> Effective {
        Effective {
            ioengine,
            iodepth,
            iodepth_reached: 0,
            ring_flags: Vec::new(),
            registered_buffers: false,
            registered_files: false,
            sqpoll: false,
            iopoll: false,
            huge_pages: false,
            fallbacks: Vec::new(),
        }
    }

    /// Notes a step down; a step that was noted before is not noted again.
    pub(super) fn fell_back(&mut self, wanted: &'static str, got: &'static str, because: String) {
        let fallback = Fallback { wanted, got, because };
        if !self.fallbacks.contains(&fallback) {
            self.fallbacks.push(fallback);
        }
    }
}
