//! The engine of large files, which are read and written past the page cache.

use crate::{Engine, Error, Ioengine, Options};

/// The least length of such a file. Below, a ring and its buffers cost more than they bring.
pub(super) const DIRECT_BYTES_MIN: usize = 4 << 20;

/// Opens an engine with 8 transfers of 1 MiB in flight.
pub(super) fn engine() -> Result<Engine, Error> {
    Engine::open(&Options::new(Ioengine::IoUring, 8, 1 << 20))
}
