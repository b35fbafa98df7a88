//! The lines that are advised with this library: a file each, shown as it is compiled.

pub mod direct_file;
pub mod log;
pub mod writer;
pub mod writer_cached;
pub mod writer_cached_unsynced;
pub mod writer_unsynced;
