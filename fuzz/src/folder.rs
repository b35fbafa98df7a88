//! The folder of a log, in memory where the machine has such a file system.

use lab::damage::{Files, put};
use std::cell::OnceCell;
use std::path::{Path, PathBuf};

thread_local! {
    static ROOT: OnceCell<tempfile::TempDir> = const { OnceCell::new() };
}

/// Puts `files` into a folder with nothing else in it, while `action` runs.
pub fn with(files: &Files, action: impl FnOnce(&Path)) {
    let folder = ROOT.with(|root| root.get_or_init(root_folder).path().join("log"));
    put(&folder, files).expect("a folder for the log");
    action(&folder);
}

fn root_folder() -> tempfile::TempDir {
    let memory = PathBuf::from("/dev/shm");
    tempfile::tempdir_in(memory).or_else(|_| tempfile::tempdir()).expect("a temporary folder")
}
