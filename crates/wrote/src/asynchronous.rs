//! `AsyncReader` and `AsyncWriter`: a `Reader` and a `Writer` for tasks of any runtime.
//!
//! A thread owns the reader or writer and waits for the disk. A poll only passes jobs and takes
//! results, and the thread wakes the task when a result is ready. No poll waits for the disk, and
//! none wakes itself.

#[cfg(feature = "futures-io")]
mod futures_io;
mod reader;
#[cfg(feature = "tokio")]
mod tokio;
mod worker;
mod writer;

pub use reader::AsyncReader;
pub use writer::AsyncWriter;
