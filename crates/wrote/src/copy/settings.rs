//! The settings of a copy, and an engine that suits them. It is a separate file because copies of
//! files and of streams share it.

use crate::engine::Options;
use crate::{Disk, Engine, Error, Fallback, Ioengine, Method, Written};
use rustix::param::page_size;
use std::path::Path;
use std::time::Instant;

/// The settings of a copy, without its watcher.
#[derive(Clone, Debug)]
pub(super) struct CopySettings {
    /// Whether sharing blocks is required or forbidden; `None` for neither.
    pub reflink: Option<bool>,
    pub replace: bool,
    pub preserve: bool,
    pub durable: bool,
    pub verify: bool,
    pub bs_bytes: usize,
    pub iodepth: u32,
    /// The disk whose engine's method the copy uses.
    pub disk: Option<Disk>,
}

/// The maximum length of a ring's registered buffer (`io_uring_register(2)`).
const BS_BYTES_MAX: usize = 1 << 30;

/// Opens an engine with these options, on the disk in `settings` if there is one.
pub(super) fn open_engine(options: &Options, settings: &CopySettings) -> Result<Engine, Error> {
    match &settings.disk {
        Some(disk) => disk.engine(options),
        None => Engine::open(options),
    }
}

/// Opens an engine for a copy of the file at `from`.
pub(super) fn engine_for(from: &Path, settings: &CopySettings) -> Result<Engine, Error> {
    open_engine(&engine_options(len_hint(from), settings), settings)
}

/// Returns engine options for a copy of `len` bytes. The buffers are not larger than `len` in
/// total, because preparing them takes time.
pub(super) fn engine_options(len: u64, settings: &CopySettings) -> Options {
    let needed = len.clamp(1, BS_BYTES_MAX as u64) as usize;
    let bs_bytes = settings.bs_bytes.clamp(1, needed).next_multiple_of(page_size());
    let pieces = len.div_ceil(bs_bytes as u64).max(1);
    let iodepth = u64::from(settings.iodepth.max(1)).min(pieces) as u32;
    Options::new(Ioengine::IoUring, iodepth, bs_bytes)
}

/// Returns the length of the file as reported before it is opened; `u64::MAX` if it is unknown.
fn len_hint(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(u64::MAX, |metadata| metadata.len())
}

/// The outcome of moving a copy's bytes.
pub(super) struct Filled {
    pub bytes: u64,
    pub method: Method,
    /// The checksum of source and copy, if they were compared.
    pub checksum: Option<u128>,
    pub fallbacks: Vec<Fallback>,
}

impl Filled {
    /// Returns the outcome for `bytes` that went through the page cache to a stream.
    pub(super) fn into_stream(bytes: u64) -> Filled {
        Filled { bytes, method: Method::Cached, checksum: None, fallbacks: Vec::new() }
    }

    pub(super) fn written(self, engine: &Engine, began: Instant, durable: bool) -> Written {
        let Filled { bytes, method, checksum, mut fallbacks } = self;
        let mut effective = engine.effective().clone();
        effective.fallbacks.append(&mut fallbacks);
        Written { bytes, elapsed: began.elapsed(), method, durable, checksum, effective }
    }
}
