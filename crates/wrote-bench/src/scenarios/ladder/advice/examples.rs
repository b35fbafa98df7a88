//! Example code with this library: one file each, shown as compiled.

pub mod direct_file;
pub mod log;
pub mod writer;
pub mod writer_cached;
pub mod writer_cached_unsynced;
pub mod writer_unsynced;
