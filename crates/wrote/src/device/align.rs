//! What direct I/O on a file must be aligned to.

use super::{Backing, Target};
use rustix::fs::{AtFlags, StatxFlags};
use std::fs::File;

/// What the transfers of direct I/O on a file must be aligned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alignment {
    /// The offset in the file and the length must be multiples of this.
    pub offset_bytes: u32,
    /// The address of the memory must be a multiple of this.
    pub memory_bytes: u32,
}

/// What direct I/O on an open `file` of `target` must be aligned to; `None` where the file system
/// says that it has no direct I/O for this file.
///
/// From `statx(2)` with `STATX_DIOALIGN` (Linux 6.1: ext4, XFS, F2FS and block devices; later
/// others). Where the kernel does not say:
///
/// - Btrfs, or an overlay, which may lie on one: the file system's block. Btrfs takes less too, but
///   writes it through the page cache;
/// - another file system on a block device: the device's logical block;
/// - no block device: a page, which suits all that take direct I/O at all. tmpfs takes `O_DIRECT`
///   (Linux 6.6) at any offset and length, since it copies as before; 6.18 still tells no alignment.
///
/// An answer is no promise that direct I/O works: where the kernel does not say, only the open or
/// the first transfer tells.
pub fn alignment(file: &File, target: &Target) -> Option<Alignment> {
    alignment_told(file).unwrap_or_else(|| {
        let bytes = presumed_bytes(file, target);
        Some(Alignment { offset_bytes: bytes, memory_bytes: bytes })
    })
}

/// What the kernel itself says, if it does: with it nobody need look at what lies below the file.
/// `Some(None)` where it says that there is no direct I/O.
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
    match &target.backing {
        Backing::None { .. } => page_bytes,
        Backing::Block(device) if matches!(target.filesystem.as_str(), "btrfs" | "overlay") => {
            let block = rustix::fs::fstatvfs(file).ok().and_then(|fs| fs.f_bsize.try_into().ok());
            block.unwrap_or(page_bytes).max(device.logical_block_bytes)
        }
        Backing::Block(device) => device.logical_block_bytes,
    }
}
