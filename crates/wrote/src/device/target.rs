//! The description of the storage below a path, and the alignment of direct I/O there.

use crate::Survives;
use rustix::fs::{AtFlags, StatxFlags};
use std::fs::File;
use std::path::PathBuf;

/// Mount options that keep a flush from the device's cache (ext4(5), btrfs(5), and the
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
    /// `fuse.NAME`. `unknown` if the mount is invisible (in a chroot); `none` for a block device
    /// itself.
    pub filesystem: String,
    /// The options of the mount and of the file system, without duplicates. `rw` is omitted if
    /// either is read-only.
    pub mount_options: Vec<String>,
    /// The file system's size, in bytes.
    pub capacity_bytes: u64,
    /// Bytes available to unprivileged users (`f_bavail`).
    pub free_bytes: u64,
    /// Whether the mount or the file system is read-only.
    pub read_only: bool,
    /// Whether writes stay in memory even after a flush: tmpfs, ramfs, an overlay whose upper
    /// folder is on one of them, a memory block device (zram, brd), a loop device over a file in
    /// memory.
    pub in_memory: bool,
    /// Whether ext4 has a journal here (`journal_task` in `/sys/fs/ext4/DEVICE`). `None` on other
    /// file systems, and if `/sys` does not show it.
    pub has_journal: Option<bool>,
    /// The file system below, with its path and mount: the one of an overlay's upper folder, or of
    /// a loop device's file. If there are several, the first that is [limited](Target::limit).
    pub below: Option<Box<Target>>,
    /// The block device on which the file system, or the upper folder of an overlay, lies. If there
    /// is none, more than one, or none that is visible: the reason, ready to be shown.
    pub device: Result<BlockDevice, String>,
}

impl Target {
    /// Returns whether the file system is known to write a flushed block in place, by a direct
    /// write that changes only data: ext2, ext3, ext4, XFS, and a block device without a file
    /// system.
    ///
    /// Not ext4 with `data=journal`, which passes every write through its journal, and not
    /// copy-on-write file systems (Btrfs, ZFS, bcachefs). On XFS, a file that shares blocks (a
    /// reflink) is copied on write too; the answer is for files that share none.
    pub fn writes_in_place(&self) -> bool {
        matches!(self.filesystem.as_str(), "ext2" | "ext3" | "ext4" | "xfs" | "none")
            && !self.mounted_with("data=journal")
    }

    /// Returns whether the file system is known to write each byte to a new place (Btrfs, ZFS,
    /// bcachefs), so that previously written zeros reserve no space.
    pub(crate) fn copies_on_write(&self) -> bool {
        matches!(self.filesystem.as_str(), "btrfs" | "zfs" | "bcachefs")
    }

    /// Returns whether `syncfs(2)` and a flush after it are known to make files and names durable,
    /// and to report all errors (Linux 5.8). A FUSE server is not called.
    pub(crate) fn syncfs_flushes(&self) -> bool {
        matches!(self.filesystem.as_str(), "btrfs" | "ext4" | "f2fs" | "xfs")
            && rustix::system::uname()
                .release()
                .to_str()
                .is_ok_and(|it| version(it) >= Some((5, 8)))
    }

    /// Returns the worst event that a flushed write survives here and why, ready to be shown; or
    /// `None` where it survives a power loss. A flush does nothing on `tmpfs` and on an `overlay`
    /// mounted `volatile`. It does not reach the device's cache with `nobarrier` (ext4(5),
    /// btrfs(5)).
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

    /// Returns the option of the mount itself that keeps a flush from the device's cache.
    pub fn no_barrier(&self) -> Option<&'static str> {
        NO_BARRIER.iter().copied().find(|option| self.mounted_with(option))
    }

    /// Returns why it is not known what a flushed write survives here, ready to be shown; `None`
    /// where no crash that was tried took one (`docs/durability.md`).
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
                // A file that was there before, as one of a loop device, was never lost.
                below.filter(|below| !below.lacks_journal())?.doubt()
            }),
            "" | "unknown" => Some("its mount cannot be seen from here".into()),
            _ => Some(format!("{filesystem}: not tried")),
        }
    }

    /// Returns what `/sys` does not show of a disk.
    fn unseen(&self) -> Option<String> {
        let device = self.device.as_ref().ok()?;
        if device.is_unseen() || device.major == LOOP_MAJOR && self.below.is_none() {
            return Some(format!("what device {} is cannot be seen from here", device.name));
        }
        let has_one = matches!(self.filesystem.as_str(), "ext3" | "ext4");
        let is_unseen = has_one && self.has_journal.is_none();
        is_unseen.then(|| format!("whether {} has a journal cannot be seen", self.filesystem))
    }

    /// Returns whether the file system, or the one of an overlay's upper folder, is known to keep
    /// no journal, and to write in place.
    pub fn lacks_journal(&self) -> bool {
        match self.filesystem.as_str() {
            "overlay" => self.below.as_deref().is_some_and(Target::lacks_journal),
            "ext2" | "vfat" | "msdos" | "exfat" => true,
            _ => self.has_journal == Some(false),
        }
    }

    /// Returns what a write survives here that would survive `level` on a disk that flushes reach.
    pub fn survives(&self, level: Survives) -> Survives {
        self.limit().map_or(level, |(most, _)| level.min(most))
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
    /// `/sys` does not know it.
    pub name: String,
    /// The device's major number.
    pub major: u32,
    /// The device's minor number.
    pub minor: u32,
    /// The underlying whole disks of a partition or stacked device (dm, LVM, md, bcache). Empty for
    /// a whole disk. A loop device counts as a disk.
    pub disks: Vec<String>,
    /// The disk's model, joined by ` + ` for several; for a loop device its file: `file
    /// /data/image`.
    pub model: Option<String>,
    /// Its size in bytes; 0 if `/sys` does not show it.
    pub capacity_bytes: u64,
    /// Whether the kernel considers it a rotating disk. Often wrong for virtual disks.
    pub rotational: bool,
    /// The I/O scheduler in use; `none` without a scheduler or request queue.
    pub scheduler: String,
    /// The smallest addressable unit, in bytes; 512 if `/sys` does not show it.
    pub logical_block_bytes: u32,
    /// The smallest unit written without reading first, in bytes; the logical block if `/sys` does
    /// not show it.
    pub physical_block_bytes: u32,
    /// The transfer that it prefers for streams, in bytes: the stripe of a RAID; 0 if it reports
    /// none.
    pub optimal_io_bytes: u32,
    /// `write back` (a volatile cache: flushes matter), `write through`, or `unknown`.
    pub write_cache: String,
    /// Whether it supports writes with Force Unit Access.
    pub fua: bool,
    /// Whether it has poll queues, and can therefore serve an IOPOLL ring.
    pub io_poll: bool,
    /// The depth of its request queue; 0 without one (zram, most of dm and md).
    pub nr_requests: u32,
    /// The longest transfer that is one command at any memory address, by `max_sectors_kb`,
    /// `max_segments` and `chunk_sectors` of the queue, in bytes. 0 if there is none or `/sys` does
    /// not show it.
    pub transfer_bytes_max: u64,
    /// The longest write that it leaves whole or not done at a power loss, in bytes, by
    /// `atomic_write_unit_max_bytes` of its queue (Linux 6.11). 0 if it promises none or `/sys`
    /// does not show it.
    pub atomic_write_bytes_max: u64,
}

impl BlockDevice {
    /// Returns whether `/sys` does not know it, so that its numbers are its name.
    fn is_unseen(&self) -> bool {
        self.name == format!("{}:{}", self.major, self.minor)
    }
}

/// Returns the first two numbers of a kernel's release (`uname(2)`).
pub(super) fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(['.', '-', '+']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Returns the alignment of direct I/O on an open `file` of `target`: of the file offset and length
/// of a transfer, and of the memory address. `None` if the file system reports that this file does
/// not support direct I/O.
///
/// From `statx(2)` with `STATX_DIOALIGN` (Linux 6.1: ext4, XFS, F2FS and block devices; others
/// later). If the kernel does not report it:
///
/// - Btrfs, or an overlay, which may lie on one: the file system's block. Btrfs accepts less too,
///   but writes it through the page cache;
/// - another file system on a block device: the device's logical block;
/// - no block device: a page, which suits every file system with direct I/O. tmpfs accepts
///   `O_DIRECT` (Linux 6.6) at any offset and length, because it copies as before; 6.18 still
///   reports no alignment.
///
/// The alignment does not guarantee that direct I/O works: unless the kernel reports it, only the
/// open or the first transfer shows that.
pub fn alignment(file: &File, target: &Target) -> Option<(u32, u32)> {
    alignment_told(file).unwrap_or_else(|| {
        let bytes = presumed_bytes(file, target);
        Some((bytes, bytes))
    })
}

/// Returns the kernel's answer, if it has one, which makes examining the storage unnecessary.
/// `Some(None)` if the file does not support direct I/O.
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
