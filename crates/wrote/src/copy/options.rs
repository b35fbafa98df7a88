//! Options of a copy, its method, and the engine that suits it.

use crate::engine::Options;
use crate::{Engine, Error, FileId, Ioengine};
use rustix::param::page_size;
use std::path::Path;

/// Whether the copy may share the source's blocks until one of the two is written to (FICLONE,
/// `ioctl_ficlonerange(2)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Reflink {
    /// Share blocks where the file system can, else copy the bytes.
    #[default]
    Auto,
    /// Share blocks or fail.
    Always,
    /// Copy every byte.
    Never,
}

/// Options of a copy.
#[derive(Clone, Debug)]
pub struct CopyOptions {
    /// Whether blocks may be shared.
    pub reflink: Reflink,
    /// Whether an existing file is replaced (W7).
    pub replace: bool,
    /// Whether the copy, with its name, survives a power loss when the call returns.
    pub durable: bool,
    /// Whether the copy is read back past the cache and its checksum compared with the source's.
    pub verify: bool,
    /// Bytes of one transfer: whole pages, at most 1 GiB.
    pub bs_bytes: usize,
    /// Transfers in flight at once. Memory is `iodepth * bs_bytes`, for a file of any size (W8).
    pub iodepth: u32,
}

impl Default for CopyOptions {
    fn default() -> CopyOptions {
        CopyOptions {
            reflink: Reflink::Auto,
            replace: false,
            durable: true,
            verify: false,
            bs_bytes: 1 << 20,
            iodepth: 16,
        }
    }
}

/// The way by which the bytes were copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Blocks are shared: no bytes were moved.
    Reflink,
    /// The file system's server moved them (`copy_file_range(2)`).
    CopyFileRange,
    /// Read, and written past the page cache.
    Direct,
    /// Read, and written through the page cache: for a short file, or where the file system takes
    /// no direct transfers.
    Cached,
}

impl Method {
    /// Returns how the engine has written the file, as far as is known now.
    pub(super) fn of(engine: &Engine, file: FileId) -> Method {
        if engine.is_direct(file) { Method::Direct } else { Method::Cached }
    }
}

/// The longest registered buffer of a ring (`io_uring_register(2)`).
const BS_BYTES_MAX: usize = 1 << 30;

/// Opens an engine for a copy of `len` bytes. Its buffers hold no more than these bytes, since
/// preparing them takes time.
pub(super) fn engine_for(len: u64, options: &CopyOptions) -> Result<Engine, Error> {
    let needed = len.clamp(1, BS_BYTES_MAX as u64) as usize;
    let bs_bytes = options.bs_bytes.clamp(1, needed).next_multiple_of(page_size());
    let pieces = len.div_ceil(bs_bytes as u64).max(1);
    let iodepth = u64::from(options.iodepth.max(1)).min(pieces) as u32;
    Engine::open(&Options::new(Ioengine::IoUring, iodepth, bs_bytes))
}

/// Returns the file's length as far as it is known before the file is open.
pub(super) fn len_hint(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}
