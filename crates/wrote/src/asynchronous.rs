//! `AsyncReader` and `AsyncWriter`: a `Reader` and a `Writer` for tasks of any runtime.
//!
//! A thread has the reader or writer, and waits for the disk in place of the tasks. A poll only
//! hands jobs to it and takes results back, and the thread wakes the task when a result is there:
//! no poll waits for the disk, and none wakes itself.

#[cfg(feature = "futures-io")]
mod futures_io;
mod reader;
#[cfg(feature = "tokio")]
mod tokio;
mod worker;
mod writer;

pub use reader::AsyncReader;
pub use writer::AsyncWriter;
