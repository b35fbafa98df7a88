//! The file or folder of a piece of work. No other program uses it, and it is removed after the
//! work.

use crate::Result;
use crate::clock::Clock;
use crate::outcome::Outcome;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The path of a file or folder. When this is dropped, the file or folder is removed with its
/// content.
#[derive(Debug)]
pub struct Place(PathBuf);

impl Place {
    /// Claims `path`. Fails if something already exists there.
    pub fn take(path: &Path) -> Result<Place> {
        match path.symlink_metadata() {
            Ok(_) => Err(format!("{}: there is something already", path.display()).into()),
            Err(_) => Ok(Place(path.to_owned())),
        }
    }

    /// Creates a folder at `path`. Fails if something already exists there.
    pub fn folder(path: &Path) -> Result<Place> {
        let place = Place::take(path)?;
        std::fs::create_dir(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(place)
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Fails unless the file has `bytes` bytes, because different work would then have been
    /// measured.
    pub fn check_length(&self, bytes: u64) -> Result<()> {
        let path = self.0.display();
        let length = self.0.metadata().map_err(|error| format!("{path}: {error}"))?.len();
        if length == bytes {
            return Ok(());
        }
        Err(format!("{path}: {length} bytes, not {bytes}").into())
    }
}

/// Times `work`, which creates a file of `bytes` bytes at `path` in the given number of operations,
/// and then removes the file.
pub fn timed(
    path: &Path,
    bytes: u64,
    operations: u64,
    work: impl FnOnce() -> Result<()>,
) -> Result<Outcome> {
    let place = Place::take(path)?;
    let clock = Clock::start()?;
    work().map_err(|error| format!("{}: {error}", path.display()))?;
    let outcome = clock.stop(bytes, operations)?;
    place.check_length(bytes)?;
    Ok(outcome)
}

impl Drop for Place {
    fn drop(&mut self) {
        // If the work failed early, there is nothing to remove. Any leftovers are visible in the
        // caller's folder.
        let _ = std::fs::remove_file(&self.0).or_else(|_| std::fs::remove_dir_all(&self.0));
    }
}

/// Creates a durable file of zeros at `path`.
pub fn zeros(path: &Path, bytes: u64) -> io::Result<File> {
    let mut file = File::create_new(path)?;
    io::copy(&mut io::repeat(0).take(bytes), &mut file)?;
    file.sync_all()?;
    sync_folder(path)?;
    Ok(file)
}

/// Makes the name of a new file durable (`fsync(2)`: "an explicit fsync() on a file descriptor for
/// the directory is also needed").
pub fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_gone_when_its_place_is() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("file");
        let place = Place::take(&path).expect("nothing there");
        std::fs::write(&path, "abc").expect("room");
        place.check_length(3).expect("three bytes");
        let message = place.check_length(4).expect_err("too short").to_string();
        assert_eq!(message, format!("{}: 3 bytes, not 4", path.display()));
        sync_folder(&path).expect("a folder");
        drop(place);
        assert!(!path.exists());
    }

    #[test]
    fn a_folder_is_gone_with_all_that_is_in_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("folder");
        let ours = Place::folder(&path).expect("nothing there");
        std::fs::write(ours.path().join("file"), "abc").expect("room");
        assert!(Place::folder(&path).is_err());
        drop(ours);
        assert!(!path.exists());
    }

    #[test]
    fn existing_files_are_neither_taken_nor_removed() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("file");
        std::fs::write(&path, "theirs").expect("room");
        assert!(Place::take(&path).is_err());
        assert_eq!(std::fs::read(&path).expect("still there"), b"theirs");
    }
}
