//! Whether a file is in the page cache when a run reads it.

use crate::failure::{Failure, Tried};
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::path::Path;

/// Puts a file on the device and out of the page cache (`posix_fadvise(2)`).
pub fn drop_file(path: &Path) -> Result<(), Failure> {
    let shown = path.display();
    let file = File::open(path).tried(&shown)?;
    file.sync_all().tried(&shown)?;
    fadvise(&file, 0, None, Advice::DontNeed).tried(shown)
}

/// Reads a file, so that it is in the page cache as far as there is room.
pub fn warm(path: &Path) -> Result<(), Failure> {
    let mut file = File::open(path).tried(path.display())?;
    std::io::copy(&mut file, &mut std::io::sink()).tried(path.display()).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_the_same_whether_cached_or_not_and_one_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("file");
        std::fs::write(&path, "content").expect("room");
        drop_file(&path).expect("there");
        warm(&path).expect("there");
        assert_eq!(std::fs::read(&path).expect("there"), b"content");
        let missing = folder.path().join("missing");
        let message = warm(&missing).expect_err("not there").to_string();
        assert!(message.starts_with(&missing.display().to_string()), "{message}");
        assert!(drop_file(&missing).is_err());
    }
}
