//! The description of the storage below a path.

use crate::Survives;
use std::path::PathBuf;

/// The storage below a path.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Target {
    /// The path, absolute and without symbolic links.
    pub path: PathBuf,
    /// The mount point of the file system that holds the path.
    pub mount_point: PathBuf,
    /// The file system's type, as the kernel names it: `ext4`, `xfs`, `btrfs`, `tmpfs`, `overlay`,
    /// `fuse.NAME`. `unknown` where the mount is invisible (a chroot); `none` of a block device
    /// itself.
    pub filesystem: String,
    /// The options of the mount and of the file system, each once. `rw` is left out where either of
    /// the two is read-only.
    pub mount_options: Vec<String>,
    /// The file system's size, in bytes.
    pub capacity_bytes: u64,
    /// Bytes that a user without privileges may still use (`f_bavail`).
    pub free_bytes: u64,
    /// Whether the mount or the file system is read-only.
    pub read_only: bool,
    /// Whether writes stay in the machine's memory even after a flush: tmpfs, ramfs, an overlay
    /// whose upper folder lies on one of them, a block device made of memory (zram, brd), a loop
    /// device over a file in memory.
    pub in_memory: bool,
    /// Whether ext4 keeps a journal here (`journal_task` in `/sys/fs/ext4/DEVICE`). `None` on other
    /// file systems, and where `/sys` does not say.
    pub has_journal: Option<bool>,
    /// The block device on which the file system, or the upper folder of an overlay, lies. Where
    /// there is none, more than one, or none that is visible: the reason, ready to be shown.
    pub device: Result<BlockDevice, String>,
}

impl Target {
    /// Whether the file system is known to write a flushed block in its old place, by a direct
    /// write that changes only data: ext2, ext3, ext4, XFS, and a block device without a file
    /// system.
    ///
    /// Not ext4 with `data=journal`, which passes every write through its journal. Not file systems
    /// that copy on write (Btrfs, ZFS, bcachefs). A file of XFS that shares blocks (a reflink) is
    /// copied on write too; the answer is about files that share none.
    pub fn writes_in_place(&self) -> bool {
        matches!(self.filesystem.as_str(), "ext2" | "ext3" | "ext4" | "xfs" | "none")
            && !self.mounted_with("data=journal")
    }

    /// Whether the file system is known to write each byte to a new place (Btrfs, ZFS, bcachefs):
    /// zeros that were written before keep no room for it.
    pub(crate) fn copies_on_write(&self) -> bool {
        matches!(self.filesystem.as_str(), "btrfs" | "zfs" | "bcachefs")
    }

    /// Whether a flush of a file reaches the device's cache: not where the file system is mounted
    /// with `nobarrier` or `barrier=0` (`ext4(5)`, `xfs(5)`, `btrfs(5)`).
    pub fn flushes_reach_device(&self) -> bool {
        !self.mounted_with("nobarrier") && !self.mounted_with("barrier=0")
    }

    /// Returns what a write survives here that would survive `level` on a disk that flushes reach:
    /// a crash of the process where files lie in memory, since a flush adds nothing there; no power
    /// loss where flushes do not reach the device.
    pub fn survives(&self, level: Survives) -> Survives {
        if self.in_memory {
            level.min(Survives::ProcessCrash)
        } else if !self.flushes_reach_device() {
            level.min(Survives::OsCrash)
        } else {
            level
        }
    }

    fn mounted_with(&self, option: &str) -> bool {
        self.mount_options.iter().any(|known| known == option)
    }
}

impl Default for Target {
    /// Nothing is known.
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
            device: Err(String::new()),
        }
    }
}

/// A block device and its queue, as the kernel describes them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockDevice {
    /// The kernel's name of the file system's device: `sda1`, `nvme0n1p2`, `dm-0`; `MAJOR:MINOR`
    /// where `/sys` does not know it.
    pub name: String,
    /// The major number of that device.
    pub major: u32,
    /// The minor number of that device.
    pub minor: u32,
    /// The whole disks below a partition, or below a device made of others (dm, LVM, md, bcache).
    /// Empty for a whole disk. A loop device counts as a disk.
    pub disks: Vec<String>,
    /// The model, as the disk names itself; the models of several disks joined by ` + `; for a loop
    /// device the file below it: `file /data/image`.
    pub model: Option<String>,
    /// Its size, in bytes; 0 where `/sys` does not say.
    pub capacity_bytes: u64,
    /// Whether the kernel takes it for a rotating disk. Virtual disks often say so wrongly.
    pub rotational: bool,
    /// The I/O scheduler in use; `none` where there is none, or no request queue.
    pub scheduler: String,
    /// The smallest unit that it addresses, in bytes; 512 where `/sys` does not say.
    pub logical_block_bytes: u32,
    /// The smallest unit that it writes without reading first, in bytes; the logical block where
    /// `/sys` does not say.
    pub physical_block_bytes: u32,
    /// The transfer that it prefers for streams, in bytes: the stripe of a RAID; 0 where it reports
    /// none.
    pub optimal_io_bytes: u32,
    /// `write back` (a volatile cache: flushes matter), `write through`, or `unknown`.
    pub write_cache: String,
    /// Whether it takes writes with Force Unit Access.
    pub fua: bool,
    /// Whether it has poll queues, and so can serve an IOPOLL ring.
    pub io_poll: bool,
    /// The depth of its request queue; 0 where it has none (zram, most of dm and md).
    pub nr_requests: u32,
    /// The longest transfer that is one command at any place in memory, by `max_sectors_kb`,
    /// `max_segments` and `chunk_sectors` of the queue, in bytes. 0 where there is none or `/sys`
    /// does not say.
    pub transfer_bytes_max: u64,
}
