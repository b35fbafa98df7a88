//! An engine's knowledge of its open files.

use super::op::OpKind;
use super::{FileId, FileOptions};
use crate::Error;
use std::os::fd::RawFd;
use std::path::{Path, PathBuf};

/// How a file was opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileAccess {
    /// Its descriptor; -1 on a disk without files.
    pub raw: RawFd,
    pub direct: bool,
    /// The error number of a refused `O_DIRECT`.
    pub refused: Option<i32>,
    /// Offset and length of a direct transfer must be multiples of this.
    pub align_bytes: u32,
}

pub(super) struct OpenFile {
    pub path: PathBuf,
    pub raw: RawFd,
    /// Whether transfers bypass the page cache, as far as known.
    pub direct: bool,
    /// Whether a direct transfer has succeeded, so that a later EINVAL is not a refusal of
    /// `O_DIRECT`.
    pub direct_proven: bool,
    pub align_bytes: u32,
    /// The `RWF_` flags of its reads and writes (`pwritev2(2)`).
    pub read_flags: i32,
    pub write_flags: i32,
    /// The flag of a durable write: `RWF_DSYNC` or `RWF_SYNC`.
    durable_flag: i32,
    /// The error number of the failed flush (W2).
    pub poison: Option<i32>,
    /// The number of files opened before, which distinguishes files in the same slot.
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
            // A power of two on every device.
            align_bytes: access.align_bytes.next_power_of_two(),
            read_flags,
            write_flags: read_flags | flag(options.atomic, libc::RWF_ATOMIC),
            durable_flag: if options.sync_metadata { libc::RWF_SYNC } else { libc::RWF_DSYNC },
            poison: None,
            generation,
        }
    }

    /// Returns whether an offset or length (or both combined with `|`) is not a multiple of the
    /// alignment, a power of two.
    #[inline]
    pub(super) fn misses(&self, place: u64) -> bool {
        self.direct && place & u64::from(self.align_bytes - 1) != 0
    }

    /// Returns the error of everything forbidden after a failed flush (W2).
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

/// Returns the file of `id`. Using a closed file is a bug of the caller, and must not affect its
/// successor in the slot.
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
