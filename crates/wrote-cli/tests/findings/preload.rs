//! Libraries for tests that are loaded before the C library (`LD_PRELOAD` in ld.so(8)).

use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A library in a folder that is removed when this value is dropped.
pub struct Library {
    pub path: PathBuf,
    _folder: TempDir,
}

/// Compiles a C file in the same folder as this source.
pub fn library(source: &str) -> Result<Library, String> {
    // The loader splits the list of libraries at blanks, which the path of the tests' folder may
    // contain.
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let path = folder.path().join("library.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/findings").join(source);
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-O1", "-o"]).args([&path, &source]);
    match compile.output() {
        Ok(output) if output.status.success() => Ok(Library { path, _folder: folder }),
        Ok(output) => panic!("cc: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => Err(format!("cc: {error}")),
    }
}
