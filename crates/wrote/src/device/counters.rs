//! The block layer's counters of a device, from its `stat` file.

use super::block::{self, SYS};
use super::target::BlockDevice;
use crate::error::{Action, Error, Tried};
use rustix::io::Errno;
use std::path::Path;

/// The block layer's counters of one device, over all its users.
///
/// From `/sys/dev/block/MAJOR:MINOR/stat`, documented in the kernel's
/// `Documentation/block/stat.rst`. A request counts when completed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written, without discards.
    pub written_bytes: u64,
    /// Read requests, after merging.
    pub reads: u64,
    /// Write requests, after merging.
    pub writes: u64,
    /// Flushes of the device's cache (Linux 5.5). The kernel counts them only for whole disks: a
    /// partition has its disk's. On bio-based devices (most of dm and md) they stay 0.
    pub flushes: u64,
}

impl Counters {
    /// Returns the difference to `earlier`; 0 if a counter went backwards.
    pub fn since(&self, earlier: &Counters) -> Counters {
        Counters {
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
            reads: self.reads.saturating_sub(earlier.reads),
            writes: self.writes.saturating_sub(earlier.writes),
            flushes: self.flushes.saturating_sub(earlier.flushes),
        }
    }
}

impl BlockDevice {
    /// Reads the block layer's counters of this device (the partition or mapped device itself, not
    /// the disks below). They count all its users since boot.
    ///
    /// Fails if `/sys` does not know the device. Without [`BlockDevice::counts`] the counters never
    /// change.
    pub fn counters(&self) -> Result<Counters, Error> {
        read(Path::new(SYS), self.major, self.minor)
    }

    /// Returns whether the block layer counts for this device: false if its queue keeps no
    /// statistics (`queue/iostats` is 0, the default of zram) or `/sys` does not know it.
    pub fn counts(&self) -> bool {
        kept(Path::new(SYS), self.major, self.minor)
    }
}

/// Indices of the fields in a `stat` file.
const READS: usize = 0;
const READ_SECTORS: usize = 2;
const WRITES: usize = 4;
const WRITTEN_SECTORS: usize = 6;
const FLUSHES: usize = 15;

fn read(sys: &Path, major: u32, minor: u32) -> Result<Counters, Error> {
    let folder = block::folder(sys, major, minor);
    let own = fields(&folder)?;
    let disk = block::disk_folder(&folder);
    let disks = if disk == folder { own.clone() } else { fields(disk)? };
    let field = |index: usize| own.get(index).copied().unwrap_or(0);
    Ok(Counters {
        read_bytes: field(READ_SECTORS).saturating_mul(block::SECTOR_BYTES),
        written_bytes: field(WRITTEN_SECTORS).saturating_mul(block::SECTOR_BYTES),
        reads: field(READS),
        writes: field(WRITES),
        flushes: disks.get(FLUSHES).copied().unwrap_or(0),
    })
}

/// Returns whether the device's queue keeps statistics. Kernels without this setting always do.
fn kept(sys: &Path, major: u32, minor: u32) -> bool {
    let folder = block::folder(sys, major, minor);
    let queue = block::disk_folder(&folder).join("queue");
    fields(&folder).is_ok() && block::text(&queue, "iostats").as_deref() != Some("0")
}

/// Reads the numbers of a `stat` file; at least the eleven of every kernel.
fn fields(folder: &Path) -> Result<Vec<u64>, Error> {
    let path = folder.join("stat");
    let text = std::fs::read_to_string(&path).tried(&path, Action::Examine)?;
    let numbers: Result<Vec<u64>, _> = text.split_ascii_whitespace().map(str::parse).collect();
    let numbers = numbers.ok().filter(|numbers| numbers.len() >= 11);
    numbers.ok_or(Errno::BADMSG).tried(&path, Action::Examine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::fake::Sys;

    const STAT: &str = "   72108    25724  5831154    22947     9616    22552  1776288     4103 \
                        0     7276    27302     3791       47   171736      232      539       \
                        18\n";

    #[test]
    fn sectors_are_512_bytes_and_discards_are_not_writes() {
        let sys = Sys::new();
        sys.disk("vda", (254, 0), 1000);
        sys.file("devices/vda/stat", STAT);
        let expected = Counters {
            read_bytes: 5_831_154 * 512,
            written_bytes: 1_776_288 * 512,
            reads: 72_108,
            writes: 9_616,
            flushes: 539,
        };
        assert_eq!(read(sys.path(), 254, 0).unwrap(), expected);
    }

    #[test]
    fn a_partition_counts_its_own_bytes_and_its_disks_flushes() {
        let sys = Sys::new();
        sys.disk("vda", (254, 0), 1000);
        sys.partition("vda", "vda1", (254, 1), 600);
        sys.file("devices/vda/stat", STAT);
        sys.file("devices/vda/vda1/stat", "1 0 8 0 2 0 16 0 0 0 0 0 0 0 0 0 0\n");
        let expected =
            Counters { read_bytes: 4096, written_bytes: 8192, reads: 1, writes: 2, flushes: 539 };
        assert_eq!(read(sys.path(), 254, 1).unwrap(), expected);
    }

    #[test]
    fn an_old_kernel_counts_no_flushes() {
        let sys = Sys::new();
        sys.disk("vda", (254, 0), 1000);
        sys.file("devices/vda/stat", "1 0 8 0 2 0 16 0 0 0 0\n");
        assert_eq!(read(sys.path(), 254, 0).unwrap().flushes, 0);
    }

    #[test]
    fn a_device_without_statistics_says_so() {
        let sys = Sys::new();
        sys.disk("zram0", (253, 0), 1000);
        assert!(!kept(sys.path(), 253, 0), "no stat file");
        assert!(read(sys.path(), 253, 0).unwrap_err().to_string().contains("No such file"));
        sys.file("devices/zram0/stat", "0 0 0 0 0 0 0 0 0 0 0\n");
        assert!(kept(sys.path(), 253, 0), "a kernel without the switch");
        sys.file("devices/zram0/queue/iostats", "0\n");
        assert!(!kept(sys.path(), 253, 0));
        sys.file("devices/zram0/queue/iostats", "1\n");
        assert!(kept(sys.path(), 253, 0));
    }

    #[test]
    fn a_counter_that_goes_backwards_counts_nothing() {
        let earlier = Counters { written_bytes: 10, reads: 3, ..Counters::default() };
        let later = Counters { written_bytes: 4, reads: 5, ..Counters::default() };
        assert_eq!(later.since(&earlier), Counters { reads: 2, ..Counters::default() });
    }
}
