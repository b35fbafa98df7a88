//! Tests of engines, files, writers, saves and copies, with one module per subject.

#[cfg(feature = "tokio")]
mod asynchronous;
mod copy;
mod device;
mod direct_file;
mod engine;
mod engine_within;
mod faults;
mod faulty;
mod file_drops;
mod file_threads;
mod file_waiting;
mod in_child;
mod interpreted;
mod lines;
mod lines_kill;
mod log_kill;
mod log_soak;
mod on_disk;
mod polled;
mod reader;
mod save;
mod save_fails;
mod save_many;
mod save_read;
mod script;
mod sqpoll;
mod writer;
mod writer_replace;

use std::path::{Path, PathBuf};

/// Creates a folder on a disk, because `/tmp` may be in memory. Returns it with the path of a file
/// in it.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = fixtures::folder();
    let path = folder.path().join("file");
    (folder, path)
}

/// Returns the path of the tested file on a simulated disk.
fn path() -> &'static Path {
    Path::new("/sim/file")
}
