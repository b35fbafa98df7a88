//! The state of an engine's open files.

use super::op::OpKind;
use super::{FileId, FileOptions};
use crate::Error;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

/// The outcome of opening a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileAccess {
    /// The file's descriptor; -1 on a disk without descriptors.
    pub raw: RawFd,
    pub direct: bool,
    /// The error number, if `O_DIRECT` was refused.
    pub refused: Option<i32>,
    /// The alignment of the offset and length of a direct transfer, in bytes.
    pub align_bytes: u32,
}

pub(super) struct OpenFile {
    pub path: PathBuf,
    pub raw: RawFd,
    /// Whether transfers bypass the page cache, as far as is known.
    pub direct: bool,
    /// Whether a direct transfer has succeeded, so that a later EINVAL does not mean that
    /// `O_DIRECT` is refused.
    pub direct_proven: bool,
    pub align_bytes: u32,
    /// The `RWF_` flags of reads and writes (`pwritev2(2)`).
    pub read_flags: i32,
    pub write_flags: i32,
    /// The flag of a durable write: `RWF_DSYNC` or `RWF_SYNC`.
    durable_flag: i32,
    /// The error number of the failed flush (W2).
    pub poison: Option<i32>,
    /// The number of files opened before this one. It distinguishes files that use the same slot.
    pub generation: u64,
}

impl OpenFile {
    pub(super) fn new(
        path: &Path,
        options: &FileOptions,
        access: &FileAccess,
        generation: u64,
    ) -> OpenFile {
        let flag = |wanted, flag| if wanted { flag } else { 0 };
        let read_flags = flag(options.dontcache, libc::RWF_DONTCACHE);
        OpenFile {
            path: path.to_owned(),
            raw: access.raw,
            direct: access.direct,
            direct_proven: false,
            // The alignment is a power of two on every device.
            align_bytes: access.align_bytes.next_power_of_two(),
            read_flags,
            write_flags: read_flags | flag(options.atomic, libc::RWF_ATOMIC),
            durable_flag: if options.sync_metadata { libc::RWF_SYNC } else { libc::RWF_DSYNC },
            poison: None,
            generation,
        }
    }

    /// Returns whether an offset, a length, or both combined with `|`, violates the alignment,
    /// which is a power of two.
    #[inline]
    pub(super) fn misses(&self, place: u64) -> bool {
        self.direct && place & u64::from(self.align_bytes - 1) != 0
    }

    /// Returns the error of every operation that is refused after a failed flush (W2); `None` if no
    /// flush has failed.
    pub(super) fn poisoned(&self) -> Option<Error> {
        self.poison.map(|errno| Error::Poisoned { path: self.path.clone(), errno })
    }

    #[inline]
    pub(super) fn rw_flags(&self, kind: OpKind) -> i32 {
        match kind {
            OpKind::Read => self.read_flags,
            OpKind::Write => self.write_flags,
            OpKind::DurableWrite => self.write_flags | self.durable_flag,
            OpKind::Fdatasync | OpKind::Fsync | OpKind::Fallocate | OpKind::Reserve => 0,
        }
    }
}

/// Returns the file of `id`. Panics if it has been closed, because that is a bug in the caller and
/// must not affect the next file in the slot.
#[inline]
pub(super) fn known(files: &[Option<OpenFile>], id: FileId) -> &OpenFile {
    let file = files.get(id.slot as usize).and_then(Option::as_ref);
    let same = file.filter(|file| file.generation == id.generation);
    same.expect("the file was not closed, and is this engine's")
}

/// Returns the descriptor of an open file.
#[inline]
pub(super) fn raw(files: &[Option<OpenFile>], slot: u32) -> RawFd {
    files[slot as usize].as_ref().expect("open while in flight").raw
}
