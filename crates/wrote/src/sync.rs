//! The levels that an acknowledged write can survive, and the policies for syncing writes. All
//! other modules state their promises in these terms.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The worst event that the bytes of an acknowledged write survive.
///
/// Ordered from the weakest to the strongest, so `a >= b` reads "survives at least b".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Survives {
    /// The bytes are only in the program's memory, in a buffer that has not been written out.
    Nothing,
    /// The bytes are in the kernel's page cache, or they are on the device and the metadata that
    /// locates them is still only in the kernel's memory. They survive a process crash, but not a
    /// kernel crash.
    ProcessCrash,
    /// The bytes are on the device, perhaps in its volatile cache. They survive a kernel crash, but
    /// not a power loss.
    OsCrash,
    /// The bytes, and everything needed to find them, are on stable storage.
    PowerLoss,
}

impl Survives {
    /// Returns what a write survives on a disk whose flushes work. For other disks, see
    /// [`Target::survives`](crate::device::Target::survives).
    ///
    /// A write is `flushed` if a flush that covers it has returned success: `fdatasync(2)`,
    /// `fsync(2)`, or `O_DSYNC`/`RWF_DSYNC` of the write itself.
    ///
    /// A write is `in_place` if it bypassed the page cache (`O_DIRECT` accepted at open *and* at
    /// transfer), replaced blocks that had been written and flushed before, and did not change the
    /// file's length. In that case, only data had to reach the device. On a copy-on-write file
    /// system, no write is in place.
    ///
    /// A direct write into new or merely allocated blocks survives only a process crash. The bytes
    /// reach the device, but the metadata that locates them (the extent, the length, the
    /// "unwritten" mark) is still in the kernel's memory. After a crash, the file reads as zeros or
    /// is short. See `docs/durability.md`.
    ///
    /// ```
    /// use wrote::{Survives, device::examine};
    ///
    /// # fn main() -> Result<(), wrote::Error> {
    /// let flushed = Survives::of_write(true, false);
    /// assert_eq!(flushed, Survives::PowerLoss);
    /// println!("here a flushed write survives {}", examine(".")?.survives(flushed));
    /// # Ok(())
    /// # }
    /// ```
    pub const fn of_write(flushed: bool, in_place: bool) -> Survives {
        match (flushed, in_place) {
            (true, _) => Survives::PowerLoss,
            (false, true) => Survives::OsCrash,
            (false, false) => Survives::ProcessCrash,
        }
    }

    /// Returns the name used in results and on the screen: `nothing`, `process-crash`, `os-crash`
    /// or `power-loss`.
    pub fn as_str(self) -> &'static str {
        match self {
            Survives::Nothing => "nothing",
            Survives::ProcessCrash => "process-crash",
            Survives::OsCrash => "os-crash",
            Survives::PowerLoss => "power-loss",
        }
    }
}

impl FromStr for Survives {
    type Err = String;

    /// Parses a name that [`Survives::as_str`] returns.
    fn from_str(word: &str) -> Result<Survives, String> {
        use Survives::{Nothing, OsCrash, PowerLoss, ProcessCrash};
        let all = [Nothing, ProcessCrash, OsCrash, PowerLoss];
        let known = all.into_iter().find(|survives| survives.as_str() == word);
        known.ok_or_else(|| format!("{word:?} is none of {}", all.map(Survives::as_str).join(", ")))
    }
}

impl fmt::Display for Survives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// When writes are made durable without an explicit call. The names come from Redis
/// (`appendfsync`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum SyncPolicy {
    /// With every write: the data survives a power loss once the call, or the wait for the record,
    /// has returned.
    Always,
    /// About once a second.
    EverySec,
    /// About once per interval.
    Interval(Duration),
    /// Only by an explicit call, or when the kernel decides to write.
    #[default]
    No,
}

impl SyncPolicy {
    /// Returns the interval at which writes are flushed, if the policy has one.
    pub(crate) fn interval(self) -> Option<Duration> {
        match self {
            SyncPolicy::EverySec => Some(Duration::from_secs(1)),
            SyncPolicy::Interval(interval) => Some(interval),
            SyncPolicy::Always | SyncPolicy::No => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Target;

    #[test]
    fn a_level_is_read_as_it_is_printed() {
        for word in ["nothing", "process-crash", "os-crash", "power-loss"] {
            assert_eq!(word.parse::<Survives>().map(|level| level.to_string()), Ok(word.into()));
        }
        let wrong = "\"fire\" is none of nothing, process-crash, os-crash, power-loss";
        assert_eq!("fire".parse::<Survives>(), Err(wrong.into()));
    }

    #[test]
    fn only_a_flush_survives_a_power_loss() {
        // W1
        for in_place in [false, true] {
            assert!(Survives::of_write(false, in_place) < Survives::PowerLoss);
            assert_eq!(Survives::of_write(true, in_place), Survives::PowerLoss);
        }
    }

    #[test]
    fn a_direct_write_survives_more_than_a_cached_one_only_in_place() {
        assert_eq!(Survives::of_write(false, false), Survives::ProcessCrash);
        assert_eq!(Survives::of_write(false, true), Survives::OsCrash);
    }

    #[test]
    fn a_flush_that_the_device_never_sees_survives_no_power_loss() {
        let target = Target { mount_options: vec!["nobarrier".into()], ..Target::default() };
        assert_eq!(target.survives(Survives::PowerLoss), Survives::OsCrash);
        assert_eq!(target.survives(Survives::ProcessCrash), Survives::ProcessCrash);
        assert_eq!(Target::default().survives(Survives::PowerLoss), Survives::PowerLoss);
    }

    #[test]
    fn no_flush_makes_memory_more_than_memory() {
        let target = Target { in_memory: true, ..Target::default() };
        assert_eq!(target.survives(Survives::PowerLoss), Survives::ProcessCrash);
        assert_eq!(target.survives(Survives::Nothing), Survives::Nothing);
    }
}
