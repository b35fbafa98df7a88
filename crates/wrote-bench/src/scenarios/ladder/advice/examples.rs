//! Example code that uses this library, with a file for each example. It is shown as it is
//! compiled.

pub mod direct_file;
pub mod log;
pub mod writer;
pub mod writer_cached;
pub mod writer_cached_unsynced;
pub mod writer_unsynced;
