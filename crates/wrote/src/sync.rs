//! Levels of safety of an acknowledged write, and when a write is synced.

use std::fmt;
use std::time::Duration;

/// The worst event that the bytes of an acknowledged write survive.
///
/// Ordered from the weakest to the strongest, so `a >= b` reads "survives at least b".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Survives {
    /// The bytes are in the program's own memory: a buffer that was not flushed.
    Nothing,
    /// The bytes are in the kernel's page cache, or only the kernel's memory has the map to them.
    /// They outlive the process, not the kernel.
    ProcessCrash,
    /// The bytes are in the device, perhaps in its volatile cache. They outlive the kernel, not the
    /// power.
    OsCrash,
    /// The bytes, and everything needed to find them, are on stable storage.
    PowerLoss,
}

impl Survives {
    /// The word in results and on the screen: `nothing`, `process-crash`, `os-crash`, `power-loss`.
    pub fn as_str(self) -> &'static str {
        match self {
            Survives::Nothing => "nothing",
            Survives::ProcessCrash => "process-crash",
            Survives::OsCrash => "os-crash",
            Survives::PowerLoss => "power-loss",
        }
    }
}

impl fmt::Display for Survives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// When writes are made durable without a call for each, in Redis's words (`appendfsync`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum SyncPolicy {
    /// With every write, which survives a power loss once its call returned.
    Always,
    /// About once a second.
    EverySec,
    /// About once in this time.
    Interval(Duration),
    /// Only by an explicit call, or when the kernel decides.
    #[default]
    No,
}

/// The facts about an acknowledgement from which [`Acknowledged::survives`] follows, as a builder.
///
/// ```
/// use wrote::{Acknowledged, Survives};
///
/// let cached = Acknowledged::new();
/// assert_eq!(cached.survives(), Survives::ProcessCrash);
/// assert_eq!(cached.flushed(true).survives(), Survives::PowerLoss);
/// let direct = Acknowledged::new().direct(true).settled_blocks(true);
/// assert_eq!(direct.survives(), Survives::OsCrash);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    flushed: bool,
    flush_reaches_device: bool,
    direct: bool,
    settled_blocks: bool,
    in_memory: bool,
}

impl Default for Acknowledged {
    /// As [`Acknowledged::new`].
    fn default() -> Acknowledged {
        Acknowledged::new()
    }
}

impl Acknowledged {
    /// Returns the facts of a write through the page cache, to a device that flushes reach.
    pub const fn new() -> Acknowledged {
        Acknowledged {
            flushed: false,
            flush_reaches_device: true,
            direct: false,
            settled_blocks: false,
            in_memory: false,
        }
    }

    /// Sets whether a flush that covers the write returned success: `fdatasync(2)`, `fsync(2)`, or
    /// `O_DSYNC`/`RWF_DSYNC` of the write itself.
    pub const fn flushed(self, flushed: bool) -> Acknowledged {
        Acknowledged { flushed, ..self }
    }

    /// Sets whether the file system passes a flush on to the device's cache: not with `nobarrier`
    /// or `barrier=0`.
    pub const fn flush_reaches_device(self, flush_reaches_device: bool) -> Acknowledged {
        Acknowledged { flush_reaches_device, ..self }
    }

    /// Sets whether the write really bypassed the page cache (`O_DIRECT` accepted at open *and* at
    /// transfer).
    pub const fn direct(self, direct: bool) -> Acknowledged {
        Acknowledged { direct, ..self }
    }

    /// Sets whether the write replaced, in place, blocks that were written and flushed before, and
    /// left the file's length alone. Then only data had to reach the device. Never true of a file
    /// system that copies on write.
    pub const fn settled_blocks(self, settled_blocks: bool) -> Acknowledged {
        Acknowledged { settled_blocks, ..self }
    }

    /// Sets whether the file lies in memory (tmpfs, ramfs), where a flush adds nothing.
    pub const fn in_memory(self, in_memory: bool) -> Acknowledged {
        Acknowledged { in_memory, ..self }
    }

    /// Returns the worst event that the write survives.
    ///
    /// A direct write into new or only allocated blocks is `process-crash`. The bytes reach the
    /// device, but the record of their place (the extent, the length, the "unwritten" mark) is
    /// still in the kernel's memory. After a crash the file reads as zeros or is short. See
    /// `docs/durability.md`.
    pub fn survives(self) -> Survives {
        if self.in_memory {
            Survives::ProcessCrash
        } else if self.flushed && self.flush_reaches_device {
            Survives::PowerLoss
        } else if self.flushed || self.direct && self.settled_blocks {
            Survives::OsCrash
        } else {
            Survives::ProcessCrash
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Acknowledged = Acknowledged::new();

    #[test]
    fn the_levels_are_ordered_from_weak_to_strong() {
        assert!(Survives::Nothing < Survives::ProcessCrash);
        assert!(Survives::ProcessCrash < Survives::OsCrash);
        assert!(Survives::OsCrash < Survives::PowerLoss);
    }

    #[test]
    fn only_a_flush_survives_a_power_loss() {
        // W1
        for direct in [false, true] {
            for settled_blocks in [false, true] {
                let unflushed = PLAIN.direct(direct).settled_blocks(settled_blocks);
                assert!(unflushed.survives() < Survives::PowerLoss);
                let flushed = unflushed.flushed(true);
                assert_eq!(flushed.survives(), Survives::PowerLoss);
            }
        }
    }

    #[test]
    fn a_flush_that_the_device_never_sees_survives_no_power_loss() {
        let flushed = PLAIN.flushed(true).flush_reaches_device(false);
        assert_eq!(flushed.survives(), Survives::OsCrash);
    }

    #[test]
    fn a_direct_write_into_new_blocks_survives_no_more_than_a_cached_one() {
        assert_eq!(PLAIN.direct(true).survives(), PLAIN.survives());
        let settled = PLAIN.direct(true).settled_blocks(true);
        assert_eq!(settled.survives(), Survives::OsCrash);
    }

    #[test]
    fn no_flush_makes_memory_more_than_memory() {
        let flushed = PLAIN.flushed(true).in_memory(true);
        assert_eq!(flushed.survives(), Survives::ProcessCrash);
    }
}
