//! The alignment of direct I/O on a file.

use super::target::Target;
use rustix::fs::{AtFlags, StatxFlags};
use std::fs::File;

/// The alignment of direct I/O on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Alignment {
    /// File offset and length of a transfer must be multiples of this.
    pub offset_bytes: u32,
    /// The memory address must be a multiple of this.
    pub memory_bytes: u32,
}

/// Returns the alignment of direct I/O on an open `file` of `target`; `None` if the file system
/// reports that this file does not support direct I/O.
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
pub fn alignment(file: &File, target: &Target) -> Option<Alignment> {
    alignment_told(file).unwrap_or_else(|| {
        let bytes = presumed_bytes(file, target);
        Some(Alignment { offset_bytes: bytes, memory_bytes: bytes })
    })
}

/// Returns the kernel's answer, if it has one, which makes examining the storage unnecessary.
/// `Some(None)` if the file does not support direct I/O.
pub(crate) fn alignment_told(file: &File) -> Option<Option<Alignment>> {
    let found = rustix::fs::statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    if !StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::DIOALIGN) {
        return None;
    }
    let (offset_bytes, memory_bytes) = (found.stx_dio_offset_align, found.stx_dio_mem_align);
    let possible = offset_bytes > 0 && memory_bytes > 0;
    Some(possible.then_some(Alignment { offset_bytes, memory_bytes }))
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
