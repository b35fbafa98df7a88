//! The block layer's counters of a device, from its `stat` file (M7). This is a separate file
//! because jobs and scenarios share it.

use std::fs;
use std::path::Path;
use wrote::device::BlockDevice;

/// The block layer's unit of length, whatever the device's block size.
pub(crate) const SECTOR_BYTES: u64 = 512;
/// The positions of the counters in a device's `stat` file.
const READS: usize = 0;
const READ_MERGES: usize = 1;
const READ_SECTORS: usize = 2;
const READ_MS: usize = 3;
const WRITES: usize = 4;
const WRITE_MERGES: usize = 5;
const WRITTEN_SECTORS: usize = 6;
const WRITE_MS: usize = 7;
const IN_FLIGHT: usize = 8;
const BUSY_MS: usize = 9;
const WEIGHTED_MS: usize = 10;
const FLUSHES: usize = 15;
const FLUSH_MS: usize = 16;

/// The block layer's counters of one device, which include all programs that use it.
///
/// They come from `/sys/dev/block/MAJOR:MINOR/stat`, which the kernel's
/// `Documentation/block/stat.rst` describes. A request is counted when it completes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// The number of bytes read.
    pub read_bytes: u64,
    /// The number of bytes written, without discards.
    pub written_bytes: u64,
    /// The number of read requests, after merging.
    pub reads: u64,
    /// The number of write requests, after merging.
    pub writes: u64,
    /// The number of read requests that were merged into others.
    pub read_merges: u64,
    /// The number of write requests that were merged into others.
    pub write_merges: u64,
    /// The total duration of all reads, in milliseconds.
    pub read_ms: u64,
    /// The total duration of all writes, in milliseconds.
    pub write_ms: u64,
    /// The time during which at least one request was in flight, in milliseconds.
    pub busy_ms: u64,
    /// The total duration of all requests, including those in flight, in milliseconds.
    pub weighted_ms: u64,
    /// The number of flushes of the device's cache (Linux 5.5). The kernel counts them only for
    /// whole disks, so a partition has its disk's count. On bio-based devices (most dm and md
    /// devices), the count is always 0.
    pub flushes: u64,
    /// The total duration of all reads, writes and flushes of the whole disk, in milliseconds.
    pub queued_ms: u64,
    /// The number of requests that the disk had not completed yet.
    pub in_flight: u64,
}

impl Counters {
    /// Returns the counters of a device; `None` if it has none, as with some drivers, or if its
    /// queue's `iostats` is turned off.
    pub fn of(device: &BlockDevice) -> Option<Counters> {
        Counters::read(Path::new("/sys"), device.major, device.minor)
    }

    fn read(sys: &Path, major: u32, minor: u32) -> Option<Counters> {
        let folder = sys.join(format!("dev/block/{major}:{minor}")).canonicalize().ok()?;
        // A partition's folder is inside the folder of its disk, and only the disk has a queue.
        let disk = if folder.join("partition").exists() { folder.parent()? } else { &folder };
        let iostats = fs::read_to_string(disk.join("queue/iostats")).unwrap_or_default();
        if iostats.trim() == "0" {
            return None;
        }
        let (own, disks) = (fields(&folder)?, fields(disk)?);
        Some(Counters {
            read_bytes: own[READ_SECTORS].saturating_mul(SECTOR_BYTES),
            written_bytes: own[WRITTEN_SECTORS].saturating_mul(SECTOR_BYTES),
            reads: own[READS],
            writes: own[WRITES],
            read_merges: own[READ_MERGES],
            write_merges: own[WRITE_MERGES],
            read_ms: own[READ_MS],
            write_ms: own[WRITE_MS],
            busy_ms: own[BUSY_MS],
            weighted_ms: own[WEIGHTED_MS],
            flushes: disks.get(FLUSHES).copied().unwrap_or(0),
            queued_ms: disks[READ_MS] + disks[WRITE_MS] + disks.get(FLUSH_MS).unwrap_or(&0),
            in_flight: disks[IN_FLIGHT],
        })
    }

    /// Returns the difference from `earlier`; 0 for a counter that went backwards. The `in_flight`
    /// of the result is the smaller of the two numbers.
    pub fn since(&self, earlier: &Counters) -> Counters {
        let since = |of: fn(&Counters) -> u64| of(self).saturating_sub(of(earlier));
        Counters {
            read_bytes: since(|at| at.read_bytes),
            written_bytes: since(|at| at.written_bytes),
            reads: since(|at| at.reads),
            writes: since(|at| at.writes),
            read_merges: since(|at| at.read_merges),
            write_merges: since(|at| at.write_merges),
            read_ms: since(|at| at.read_ms),
            write_ms: since(|at| at.write_ms),
            busy_ms: since(|at| at.busy_ms),
            weighted_ms: since(|at| at.weighted_ms),
            flushes: since(|at| at.flushes),
            queued_ms: since(|at| at.queued_ms),
            in_flight: self.in_flight.min(earlier.in_flight),
        }
    }
}

/// Returns the numbers in a device's `stat` file; `None` if the file is missing or contains fewer
/// than 11. Every kernel reports at least 11 numbers, and newer ones report more.
fn fields(folder: &Path) -> Option<Vec<u64>> {
    let text = fs::read_to_string(folder.join("stat")).ok()?;
    let numbers: Result<Vec<u64>, _> = text.split_ascii_whitespace().map(str::parse).collect();
    numbers.ok().filter(|numbers| numbers.len() >= 11)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixtures::{Mounted, Tree, or_skip};
    use std::fs::File;
    use std::io::Write;

    const STAT: &str = "   72108    25724  5831154    22947     9616    22552  1776288     4103 \
                        0     7276    27302     3791       47   171736      232      539       \
                        18\n";

    /// Creates an artificial `/sys` with a disk and its partition.
    fn sys(disk: &str, partition: &str) -> Tree {
        let sys = Tree::new();
        sys.file("devices/vda/stat", disk);
        sys.file("devices/vda/vda1/stat", partition);
        sys.file("devices/vda/vda1/partition", "1\n");
        sys.link("dev/block/254:0", "devices/vda");
        sys.link("dev/block/254:1", "devices/vda/vda1");
        sys
    }

    #[test]
    fn sectors_are_512_bytes_and_discards_are_not_writes() {
        let expected = Counters {
            read_bytes: 5_831_154 * 512,
            written_bytes: 1_776_288 * 512,
            reads: 72_108,
            writes: 9_616,
            read_merges: 25_724,
            write_merges: 22_552,
            read_ms: 22_947,
            write_ms: 4103,
            busy_ms: 7276,
            weighted_ms: 27_302,
            flushes: 539,
            queued_ms: 22_947 + 4103 + 18,
            in_flight: 0,
        };
        let sys = sys(STAT, "1 0 8 0 2 0 16 0 0 0 0 0 0 0 0 0 0\n");
        assert_eq!(Counters::read(sys.path(), 254, 0), Some(expected));
        let (queued_ms, flushes) = (expected.queued_ms, expected.flushes);
        let (reads, writes, read_bytes, written_bytes) = (1, 2, 4096, 8192);
        let own = Counters { reads, writes, read_bytes, written_bytes, ..Counters::default() };
        let expected = Counters { queued_ms, flushes, ..own };
        assert_eq!(Counters::read(sys.path(), 254, 1), Some(expected), "its disk's flushes");
    }

    #[test]
    fn a_device_without_statistics_has_no_counters() {
        let sys = sys("0 0 0 0 0 0 0 0 0 0 0\n", "");
        assert_eq!(Counters::read(sys.path(), 253, 0), None, "no such device");
        assert_eq!(Counters::read(sys.path(), 254, 1), None, "no numbers");
        let old = Counters::read(sys.path(), 254, 0);
        assert_eq!(old, Some(Counters::default()), "a kernel without the switch and flushes");
        sys.file("devices/vda/queue/iostats", "0\n");
        assert_eq!(Counters::read(sys.path(), 254, 0), None);
        sys.file("devices/vda/queue/iostats", "1\n");
        assert!(Counters::read(sys.path(), 254, 0).is_some());
    }

    #[test]
    fn writes_to_a_partition_are_in_its_counters_with_the_flushes_of_its_disk() {
        // M7
        let mounted = or_skip!(Mounted::partition("ext4", 64 << 20));
        let device = wrote::device::device_at(mounted.path()).unwrap();
        let before = Counters::of(&device).unwrap();
        let mut file = File::create_new(mounted.path().join("counted")).unwrap();
        // The bytes vary, so that no layer below can compress them or store a hole.
        let bytes: Vec<u8> =
            (0_u64..8 << 20).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 13) as u8).collect();
        file.write_all(&bytes).unwrap();
        file.sync_all().unwrap();
        let counted = Counters::of(&device).unwrap().since(&before);
        assert!(counted.written_bytes >= 8 << 20 && counted.writes > 0, "{counted:?}");
        assert!(counted.flushes > 0 || device.write_cache == "write through", "{counted:?}");
    }

    #[test]
    fn a_counter_that_goes_backwards_counts_nothing() {
        let earlier = Counters { written_bytes: 10, writes: 3, ..Counters::default() };
        let later = Counters { written_bytes: 4, writes: 5, ..Counters::default() };
        assert_eq!(later.since(&earlier), Counters { writes: 2, ..Counters::default() });
    }
}
