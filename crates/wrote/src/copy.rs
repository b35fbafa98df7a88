//! One file to another in constant memory.

pub mod stdio;
pub mod tree;

use crate::{Effective, Engine, Error};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

/// Whether the copy may share the source's blocks until one of the two is written to (FICLONE,
/// `ioctl_ficlonerange(2)`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Reflink {
    /// Where the file system can.
    #[default]
    Auto,
    /// Or not at all.
    Always,
    /// Never: every byte is copied.
    Never,
}

/// What is asked of a copy.
#[derive(Clone, Debug)]
pub struct CopyOptions {
    /// Whether blocks may be shared.
    pub reflink: Reflink,
    /// Whether a file that is there already is replaced (W7).
    pub replace: bool,
    /// Whether the copy, with its name, survives a power loss when this returns.
    pub durable: bool,
    /// Whether the copy is read back past the cache and its checksum compared with the source's.
    pub verify: bool,
    /// Bytes of one transfer.
    pub bs_bytes: usize,
    /// Transfers in flight at once; memory is `iodepth * bs_bytes`, whatever the file's size (W8).
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

/// How far a copy has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress {
    /// File bytes that are done, holes included; with `verify` each is done twice.
    pub bytes_done: u64,
    /// Of how many; `None` where nobody knows before the end.
    pub bytes_total: Option<u64>,
}

/// Is told how far a copy has come, and may stop it.
pub type Watch<'a> = &'a mut dyn FnMut(CopyProgress) -> ControlFlow<()>;

/// How the bytes went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Blocks are shared: nothing was moved.
    Reflink,
    /// The file system's server moved them (`copy_file_range(2)`).
    CopyFileRange,
    /// Read and written by the engine.
    Transfers,
}

/// What a copy was.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Copied {
    /// The file's length.
    pub bytes: u64,
    /// How the bytes went.
    pub method: Method,
    /// Until the copy was as safe as asked.
    pub elapsed: Duration,
    /// The checksum (XXH3, 128 bits) of source and copy, where it was compared.
    pub checksum: Option<u128>,
    /// What was in effect.
    pub effective: Effective,
}

/// Copies the ordinary file `from` to `to`, where it appears when it is whole.
///
/// # Errors
///
/// With the kernel's words; what was at `to` is then as it was.
pub fn copy(
    _from: &Path,
    _to: &Path,
    _options: &CopyOptions,
    _watch: Watch,
) -> Result<Copied, Error> {
    todo!()
}

/// As [`copy`], through an engine of the caller's.
///
/// # Errors
///
/// Those of [`copy`].
pub fn copy_through(
    _engine: &mut Engine,
    _from: &Path,
    _to: &Path,
    _options: &CopyOptions,
    _watch: Watch,
) -> Result<Copied, Error> {
    todo!()
}
