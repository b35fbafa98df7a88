//! A description of the storage below a path, and the alignment that direct I/O requires there.

use crate::Survives;
use rustix::fs::{AtFlags, StatxFlags};
use std::fs::File;
use std::path::PathBuf;

/// The mount options that prevent a flush of the device's cache (ext4(5), btrfs(5), and the
/// kernel's `Documentation/filesystems/f2fs.rst`).
const NO_BARRIER: &[&str] = &["nobarrier", "barrier=0", "barrier=none", "fsync_mode=nobarrier"];

/// The major number of loop devices (the kernel's `Documentation/admin-guide/devices.txt`).
const LOOP_MAJOR: u32 = 7;

/// The storage below a path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Target {
    /// The path, absolute and without symbolic links.
    pub path: PathBuf,
    /// The mount point of the file system that holds the path.
    pub mount_point: PathBuf,
    /// The file system's type, as named by the kernel: `ext4`, `xfs`, `btrfs`, `tmpfs`, `overlay`,
    /// `fuse.NAME`. It is `unknown` if the mount is invisible (in a chroot), and `none` for a block
    /// device itself.
    pub filesystem: String,
    /// The options of the mount and of the file system, without duplicates. `rw` is omitted if
    /// either is read-only.
    pub mount_options: Vec<String>,
    /// The file system's size, in bytes.
    pub capacity_bytes: u64,
    /// The space available to unprivileged users, in bytes (`f_bavail`).
    pub free_bytes: u64,
    /// Whether the mount or the file system is read-only.
    pub read_only: bool,
    /// Whether writes stay in memory even after a flush, as on tmpfs, ramfs, an overlay whose upper
    /// folder is on one of these, a memory block device (zram, brd), or a loop device over a file
    /// in memory.
    pub in_memory: bool,
    /// Whether an ext4 has a journal (`journal_task` in `/sys/fs/ext4/DEVICE`). `None` on other
    /// file systems, and if `/sys` does not show it.
    pub has_journal: Option<bool>,
    /// The file system that contains an overlay's upper folder, or a loop device's file, with its
    /// path and mount. If there are several, the first one that is [limited](Target::limit).
    pub below: Option<Box<Target>>,
    /// The block device that contains the file system, or the upper folder of an overlay. If there
    /// is no device, more than one, or none that is visible, the reason, ready to be shown.
    pub device: Result<BlockDevice, String>,
}

impl Target {
    /// Returns whether the file system is known to write a flushed block in place, by a direct
    /// write that changes only data. This is true of ext2, ext3, ext4, XFS, and a block device
    /// without a file system.
    ///
    /// ext4 with `data=journal` is excluded, because it passes every write through its journal, and
    /// so are copy-on-write file systems (Btrfs, ZFS, bcachefs). On XFS, blocks that a file shares
    /// with another (a reflink) are also copied on write; the result applies only to files that
    /// share none.
    pub fn writes_in_place(&self) -> bool {
        matches!(self.filesystem.as_str(), "ext2" | "ext3" | "ext4" | "xfs" | "none")
            && !self.mounted_with("data=journal")
    }

    /// Returns whether the file system is known to write each byte to newly allocated blocks
    /// (Btrfs, ZFS, bcachefs), so that writing zeros first reserves no space.
    pub(crate) fn copies_on_write(&self) -> bool {
        matches!(self.filesystem.as_str(), "btrfs" | "zfs" | "bcachefs")
    }

    /// Returns whether `syncfs(2)` followed by a flush is known to make files and names durable,
    /// and to report all errors (Linux 5.8). It does not call a FUSE server.
    pub(crate) fn syncfs_flushes(&self) -> bool {
        matches!(self.filesystem.as_str(), "btrfs" | "ext4" | "f2fs" | "xfs")
            && rustix::system::uname()
                .release()
                .to_str()
                .is_ok_and(|it| version(it) >= Some((5, 8)))
    }

    /// Returns the worst event that a flushed write survives on this target, and the reason, ready
    /// to be shown; `None` if it survives a power loss. A flush does nothing on `tmpfs` and on an
    /// `overlay` mounted `volatile`. With `nobarrier` (ext4(5), btrfs(5)), a flush does not reach
    /// the device's cache.
    pub fn limit(&self) -> Option<(Survives, String)> {
        let filesystem = self.filesystem.as_str();
        let below = self.below.as_deref().and_then(Target::limit);
        let below = below.map(|(level, because)| match filesystem {
            "overlay" => (level, format!("overlay over {because}")),
            _ if level == Survives::ProcessCrash && self.in_memory => {
                (level, "loop device over memory".into())
            }
            _ => (level, format!("loop device over {because}")),
        });
        // Linux 6.18 shows `volatile` as `fsync=volatile`.
        let is_volatile = self.mounted_with("volatile") || self.mounted_with("fsync=volatile");
        let volatile = (filesystem == "overlay" && is_volatile).then(|| "overlay, volatile".into());
        let memory = (self.in_memory && self.below.is_none()).then(|| match &self.device {
            Ok(device) => format!("{}, a disk of memory", device.name),
            Err(_) => filesystem.into(),
        });
        let nothing = volatile.or(memory).map(|because| (Survives::ProcessCrash, because));
        let cache =
            self.no_barrier().map(|option| (Survives::OsCrash, format!("{filesystem}, {option}")));
        [nothing, below, cache].into_iter().flatten().min_by_key(|(level, _)| *level)
    }

    /// Returns the mount's own option that prevents a flush of the device's cache, if there is one.
    pub fn no_barrier(&self) -> Option<&'static str> {
        NO_BARRIER.iter().copied().find(|option| self.mounted_with(option))
    }

    /// Returns the reason why it is not known what a flushed write survives on this target, ready
    /// to be shown; `None` if none of the simulated crashes lost a flushed write
    /// (`docs/durability.md`).
    pub fn doubt(&self) -> Option<String> {
        let filesystem = self.filesystem.as_str();
        let below = self.below.as_deref();
        match filesystem {
            "overlay" => match below {
                None => self.device.as_ref().err().cloned(),
                Some(below) => below.doubt(),
            },
            _ if self.lacks_journal() => Some(format!("{filesystem} has no journal")),
            _ if self.in_memory => None,
            "ext3" | "ext4" | "xfs" | "btrfs" | "none" => self.unseen().or_else(|| {
                // In the simulated crashes, a file that had already existed, like a loop device's
                // file, was never lost.
                below.filter(|below| !below.lacks_journal())?.doubt()
            }),
            "" | "unknown" => Some("its mount cannot be seen from here".into()),
            _ => Some(format!("{filesystem}: not tried")),
        }
    }

    /// Returns a description of what `/sys` does not show about the device, if anything.
    fn unseen(&self) -> Option<String> {
        let device = self.device.as_ref().ok()?;
        if device.is_unseen() || device.major == LOOP_MAJOR && self.below.is_none() {
            return Some(format!("what device {} is cannot be seen from here", device.name));
        }
        let has_one = matches!(self.filesystem.as_str(), "ext3" | "ext4");
        let is_unseen = has_one && self.has_journal.is_none();
        is_unseen.then(|| format!("whether {} has a journal cannot be seen", self.filesystem))
    }

    /// Returns whether the file system, or the file system of an overlay's upper folder, is known
    /// to have no journal and to write in place.
    pub fn lacks_journal(&self) -> bool {
        match self.filesystem.as_str() {
            "overlay" => self.below.as_deref().is_some_and(Target::lacks_journal),
            "ext2" | "vfat" | "msdos" | "exfat" => true,
            _ => self.has_journal == Some(false),
        }
    }

    /// Returns what a write to this target survives, given that it would survive `level` on a disk
    /// whose flushes work.
    pub fn survives(&self, level: Survives) -> Survives {
        self.limit().map_or(level, |(most, _)| level.min(most))
    }

    fn mounted_with(&self, option: &str) -> bool {
        self.mount_options.iter().any(|known| known == option)
    }
}

impl Default for Target {
    /// Returns a target about which nothing is known.
    fn default() -> Target {
        Target {
            path: PathBuf::new(),
            mount_point: PathBuf::new(),
            filesystem: String::new(),
            mount_options: Vec::new(),
            capacity_bytes: 0,
            free_bytes: 0,
            read_only: false,
            in_memory: false,
            has_journal: None,
            below: None,
            device: Err(String::new()),
        }
    }
}

/// A block device and its queue, as the kernel describes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockDevice {
    /// The kernel's name of the file system's device: `sda1`, `nvme0n1p2`, `dm-0`; `MAJOR:MINOR` if
    /// `/sys` does not list it.
    pub name: String,
    /// The device's major number.
    pub major: u32,
    /// The device's minor number.
    pub minor: u32,
    /// The whole disks below a partition or stacked device (dm, LVM, md, bcache). Empty for a whole
    /// disk. A loop device is treated as a disk.
    pub disks: Vec<String>,
    /// The disk's model; several are joined by ` + `. For a loop device, its file: `file
    /// /data/image`.
    pub model: Option<String>,
    /// The device's size, in bytes; 0 if `/sys` does not show it.
    pub capacity_bytes: u64,
    /// Whether the kernel considers the device to be rotating. This is often wrong for virtual
    /// disks.
    pub rotational: bool,
    /// The I/O scheduler in use; `none` without a scheduler or request queue.
    pub scheduler: String,
    /// The smallest addressable unit, in bytes; 512 if `/sys` does not show it.
    pub logical_block_bytes: u32,
    /// The smallest unit that the device can write without first reading, in bytes; the logical
    /// block size if `/sys` does not show it.
    pub physical_block_bytes: u32,
    /// The length of transfers that the device prefers for streams, in bytes, such as the stripe of
    /// a RAID; 0 if it reports none.
    pub optimal_io_bytes: u32,
    /// `write back` (a volatile cache: flushes matter), `write through`, or `unknown`.
    pub write_cache: String,
    /// Whether the device supports writes with Force Unit Access.
    pub fua: bool,
    /// Whether the device has poll queues, and can therefore serve an IOPOLL ring.
    pub io_poll: bool,
    /// The depth of the device's request queue; 0 if it has none (zram, most of dm and md).
    pub nr_requests: u32,
    /// The maximum length of a transfer, in bytes, that is a single command at any memory address,
    /// according to `max_sectors_kb`, `max_segments` and `chunk_sectors` of the queue. 0 if no
    /// length is guaranteed or `/sys` does not show it.
    pub transfer_bytes_max: u64,
    /// The maximum length of an atomic write, in bytes, according to `atomic_write_unit_max_bytes`
    /// of the queue (Linux 6.11). 0 if the device promises none or `/sys` does not show it.
    pub atomic_write_bytes_max: u64,
}

impl BlockDevice {
    /// Returns whether `/sys` does not list the device, so that its numbers serve as its name.
    fn is_unseen(&self) -> bool {
        self.name == format!("{}:{}", self.major, self.minor)
    }
}

/// Returns the first two numbers of a kernel's release (`uname(2)`).
pub(super) fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(['.', '-', '+']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Returns the two alignments that direct I/O requires for an open `file` of `target`: one for the
/// offset and length of a transfer, and one for the memory address. `None` if the file system
/// reports that this file does not support direct I/O.
///
/// The alignment comes from `statx(2)` with `STATX_DIOALIGN` (Linux 6.1: ext4, XFS, F2FS and block
/// devices; others later). If the kernel does not report an alignment, it is one of these:
///
/// - Btrfs, or an overlay, which may be on a Btrfs: the file system's block size. Btrfs also
///   accepts a smaller alignment, but then writes through the page cache;
/// - another file system on a block device: the device's logical block size;
/// - no block device: a page, which suits every file system with direct I/O. tmpfs accepts
///   `O_DIRECT` (Linux 6.6) at any offset and length, because it still copies; as of 6.18, it
///   reports no alignment.
///
/// The alignment does not guarantee that direct I/O works: unless the kernel reports the alignment,
/// only opening the file or the first transfer shows that.
pub fn alignment(file: &File, target: &Target) -> Option<(u32, u32)> {
    alignment_told(file).unwrap_or_else(|| {
        let bytes = presumed_bytes(file, target);
        Some((bytes, bytes))
    })
}

/// Returns the alignment that the kernel reports, so that the storage need not be examined.
/// `Some(None)` if the file does not support direct I/O, and `None` if the kernel reports nothing.
pub(crate) fn alignment_told(file: &File) -> Option<Option<(u32, u32)>> {
    let found = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    if !StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::DIOALIGN) {
        return None;
    }
    let (offset_bytes, memory_bytes) = (found.stx_dio_offset_align, found.stx_dio_mem_align);
    let possible = offset_bytes > 0 && memory_bytes > 0;
    Some(possible.then_some((offset_bytes, memory_bytes)))
}

fn presumed_bytes(file: &File, target: &Target) -> u32 {
    let page_bytes = rustix::param::page_size() as u32;
    match &target.device {
        Err(_) => page_bytes,
        Ok(device) if matches!(target.filesystem.as_str(), "btrfs" | "overlay") => {
            let block = rustix::fs::fstatvfs(file).ok().and_then(|fs| fs.f_bsize.try_into().ok());
            block.unwrap_or(page_bytes).max(device.logical_block_bytes)
        }
        Ok(device) => device.logical_block_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::version;

    #[test]
    fn the_version_of_a_kernel_is_the_beginning_of_its_release() {
        for release in ["5.10.0-rc1", "5.10", "5.10+", "5.10-generic"] {
            assert_eq!(version(release), Some((5, 10)), "{release}");
        }
        assert!(version("5.10") > Some((5, 8)));
        assert_eq!(version("unknown"), None);
    }
}
