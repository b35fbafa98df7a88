//! Settings in effect, beside those requested: no step down is silent (W6).

use super::Ioengine;

/// A step down from a requested setting, with the kernel's own reason.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Fallback {
    /// The requested setting: `io_uring`, `registered buffers`, `O_DIRECT`.
    pub wanted: &'static str,
    /// The setting in effect: `threads`, `unregistered buffers`, `page cache`.
    pub got: &'static str,
    /// The call that failed, and the kernel's words.
    pub because: String,
}

impl Fallback {
    /// Returns the step from `wanted` down to `got`.
    pub fn new(wanted: &'static str, got: &'static str, because: impl Into<String>) -> Fallback {
        Fallback { wanted, got, because: because.into() }
    }
}

/// The settings in effect of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Effective {
    /// The way by which operations reach the kernel.
    pub ioengine: Ioengine,
    /// The most operations that may be in flight at once.
    pub iodepth: u32,
    /// The most operations that were queued and not yet reaped.
    pub iodepth_reached: u32,
    /// The ring's set-up flags that the kernel took, by their names in `io_uring_setup(2)` without
    /// the prefix `IORING_SETUP_`.
    pub ring_flags: Vec<&'static str>,
    /// Whether the pool is registered with the ring.
    pub registered_buffers: bool,
    /// Whether open files are registered with the ring.
    pub registered_files: bool,
    /// Whether a kernel thread takes operations from the ring.
    pub sqpoll: bool,
    /// Whether transfers of any file complete by polling the device.
    pub iopoll: bool,
    /// Whether the pool lies in huge pages that were set aside for it (`MAP_HUGETLB`, `mmap(2)`).
    pub huge_pages: bool,
    /// Each step down, in order.
    pub fallbacks: Vec<Fallback>,
}

impl Effective {
    /// Records a step down, once.
    pub(crate) fn fell_back(&mut self, wanted: &'static str, got: &'static str, because: String) {
        let fallback = Fallback { wanted, got, because };
        if !self.fallbacks.contains(&fallback) {
            self.fallbacks.push(fallback);
        }
    }
}
