//! What an acknowledged write survives, the ways by which it is acknowledged, and when it is synced.

use std::fmt;
use std::time::Duration;

/// The worst event after which the bytes of an acknowledged write are still there.
///
/// Ordered from the weakest to the strongest, so `a >= b` reads "survives at least b".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Survives {
    /// The bytes are in the program's own memory: a buffer that was not flushed.
    Nothing,
    /// The bytes are in the kernel's page cache, or the map to them is only in the kernel's memory:
    /// they outlive the process, not the kernel.
    ProcessCrash,
    /// The bytes are in the device, perhaps in its volatile cache: they outlive the kernel, not the
    /// power.
    OsCrash,
    /// The bytes, and everything needed to find them, are on stable storage.
    PowerLoss,
}

impl Survives {
    /// The word used in results and on the screen: `nothing`, `process-crash`, `os-crash`,
    /// `power-loss`.
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

/// When what was written is made durable without being asked for each time, in Redis's words
/// (`appendfsync`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Sync {
    /// With every write: it survives a power loss once its call returned.
    Always,
    /// About once a second.
    EverySec,
    /// About as often as this.
    Interval(Duration),
    /// Never by itself: only a call that says so makes anything durable.
    #[default]
    No,
}

/// How a write was acknowledged: the facts from which [`Acknowledged::survives`] follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// A flush that covers the write returned success: `fdatasync(2)`, `fsync(2)`, or the write
    /// itself was `O_DSYNC`/`RWF_DSYNC`.
    pub flushed: bool,
    /// The file system passes a flush on to the device's cache. Mounted with `nobarrier` or
    /// `barrier=0` it does not.
    pub flush_reaches_device: bool,
    /// The write really bypassed the page cache (`O_DIRECT` accepted at open *and* at transfer).
    pub direct: bool,
    /// The write replaced, in place, blocks that were written and flushed before, in a file whose
    /// length did not change: nothing but data had to reach the device. A file system that copies
    /// on write never does that.
    pub settled_blocks: bool,
    /// The file lies in memory (tmpfs, ramfs): no flush makes it more than that.
    pub in_memory: bool,
}

impl Acknowledged {
    /// What the write survives.
    ///
    /// A direct write into new or merely allocated blocks is only `process-crash`: the bytes reach
    /// the device, but the file system's record of where they are (the extent, the length, the
    /// "unwritten" mark) is still in the kernel's memory, and after a crash the file reads as
    /// zeros or is short. See `docs/durability.md`.
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

    const PLAIN: Acknowledged = Acknowledged {
        flushed: false,
        flush_reaches_device: true,
        direct: false,
        settled_blocks: false,
        in_memory: false,
    };

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
                let unflushed = Acknowledged { direct, settled_blocks, ..PLAIN };
                assert!(unflushed.survives() < Survives::PowerLoss);
                let flushed = Acknowledged { flushed: true, ..unflushed };
                assert_eq!(flushed.survives(), Survives::PowerLoss);
            }
        }
    }

    #[test]
    fn a_flush_that_the_device_never_sees_survives_no_power_loss() {
        let flushed = Acknowledged { flushed: true, flush_reaches_device: false, ..PLAIN };
        assert_eq!(flushed.survives(), Survives::OsCrash);
    }

    #[test]
    fn a_direct_write_into_new_blocks_survives_no_more_than_a_cached_one() {
        assert_eq!(Acknowledged { direct: true, ..PLAIN }.survives(), PLAIN.survives());
        let settled = Acknowledged { direct: true, settled_blocks: true, ..PLAIN };
        assert_eq!(settled.survives(), Survives::OsCrash);
    }

    #[test]
    fn no_flush_makes_memory_more_than_memory() {
        let flushed = Acknowledged { flushed: true, in_memory: true, ..PLAIN };
        assert_eq!(flushed.survives(), Survives::ProcessCrash);
    }
}
