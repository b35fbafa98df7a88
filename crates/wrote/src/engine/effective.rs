//! The settings in effect beside those requested: no fallback is silent (W6).

use super::Ioengine;

/// A fallback from a requested setting, with the kernel's reason.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Fallback {
    /// The requested setting: `io_uring`, `registered buffers`, `O_DIRECT`.
    pub wanted: &'static str,
    /// The setting in effect: `threads`, `unregistered buffers`, `page cache`.
    pub got: &'static str,
    /// The call that failed, and the kernel's error.
    pub because: String,
}

impl Fallback {
    /// Returns the fallback from `wanted` to `got`.
    pub fn new(wanted: &'static str, got: &'static str, because: impl Into<String>) -> Fallback {
        Fallback { wanted, got, because: because.into() }
    }
}

/// An engine's settings in effect.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Effective {
    /// How operations reach the kernel.
    pub ioengine: Ioengine,
    /// The most operations in flight at once.
    pub iodepth: u32,
    /// The most operations that were queued and not yet reaped.
    pub iodepth_reached: u32,
    /// The ring's set-up flags accepted by the kernel, named as in `io_uring_setup(2)` without the
    /// prefix `IORING_SETUP_`.
    pub ring_flags: Vec<&'static str>,
    /// Whether the pool is registered with the ring.
    pub registered_buffers: bool,
    /// Whether open files are registered with the ring.
    pub registered_files: bool,
    /// Whether a kernel thread polls the ring for submissions.
    pub sqpoll: bool,
    /// Whether any file's transfers complete by polling the device.
    pub iopoll: bool,
    /// Whether the pool lies in reserved huge pages (`MAP_HUGETLB`, `mmap(2)`).
    pub huge_pages: bool,
    /// Each fallback, in order.
    pub fallbacks: Vec<Fallback>,
}

impl Effective {
    /// Records a fallback, once.
    pub(crate) fn fell_back(&mut self, wanted: &'static str, got: &'static str, because: String) {
        let fallback = Fallback { wanted, got, because };
        if !self.fallbacks.contains(&fallback) {
            self.fallbacks.push(fallback);
        }
    }
}
