//! The files and folders that a run creates, and removes unless it succeeds.

use super::mark;
use super::place::folder_of;
use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use wrote_result::Error;

/// The files that a run has created. They are removed on drop, unless [`Made::keep`] is called.
#[derive(Debug, Default)]
pub struct Made {
    files: Vec<(PathBuf, Identity)>,
    /// The folders that the run has created for them, parents first.
    folders: Vec<PathBuf>,
}

/// The identity of a file, which no later file of the same name shares. It includes the creation
/// time if the file system records it, because the inode number of a removed file is soon reused.
type Identity = (u64, u64, Option<SystemTime>);

fn identity(metadata: &Metadata) -> Identity {
    (metadata.dev(), metadata.ino(), metadata.created().ok())
}

impl Made {
    /// Creates a file; fails if it exists (W7).
    pub(crate) fn make(&mut self, path: &Path) -> Result<File, Error> {
        let failed = Error::at(path, "create");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        mark::set(&file, &metadata);
        let identity = identity(&metadata);
        // The working directory may change before the file is removed.
        let path = std::path::absolute(path).map_err(failed)?;
        self.files.push((path, identity));
        Ok(file)
    }

    /// Creates the missing folders above the path.
    pub(crate) fn make_folders(&mut self, path: &Path) -> std::io::Result<()> {
        let folder = std::path::absolute(folder_of(path))?;
        let missing = folder.ancestors().take_while(|folder| !folder.exists()).collect::<Vec<_>>();
        for folder in missing.into_iter().rev() {
            std::fs::create_dir(folder)?;
            self.folders.push(folder.to_owned());
        }
        Ok(())
    }

    pub(crate) fn has(&self, metadata: &Metadata) -> bool {
        self.files.iter().any(|(_, known)| *known == identity(metadata))
    }

    /// Removes a file if the run created it, and never another file of that name.
    pub(crate) fn remove(&mut self, path: &Path) -> Result<(), Error> {
        let Ok(found) = std::fs::metadata(path) else { return Ok(()) };
        let is_it = |(_, known): &mut (PathBuf, Identity)| *known == identity(&found);
        self.files.extract_if(.., is_it).try_for_each(|(path, known)| {
            let removed = remove_made(&path, known);
            removed.map_err(Error::at(&path, "unlink"))
        })
    }

    /// Keeps the files, because the run has succeeded.
    pub fn keep(mut self) {
        self.files.drain(..).for_each(|(path, _)| mark::remove(&path));
        self.folders.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for (path, known) in &self.files {
            // A destructor cannot return an error.
            let _ = remove_made(path, *known);
        }
        for folder in self.folders.iter().rev() {
            // Another program may have put a file into the folder.
            let _ = std::fs::remove_dir(folder);
        }
    }
}

fn remove_made(path: &Path, known: Identity) -> std::io::Result<()> {
    // A link with this name is another file, so it is not followed.
    match std::fs::symlink_metadata(path) {
        Ok(now) if identity(&now) == known => std::fs::remove_file(path),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_run_are_removed_and_those_put_in_their_place_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let [ours, theirs] = ["ours", "theirs"].map(|name| folder.path().join(name));
        let mut made = Made::default();
        made.make(&ours).unwrap();
        made.make(&theirs).unwrap();
        // Both files exist at the same time, so the second cannot have the inode number of the
        // first.
        let other = folder.path().join("other");
        std::fs::write(&other, "precious").unwrap();
        assert!(made.has(&ours.metadata().unwrap()) && !made.has(&other.metadata().unwrap()));
        std::fs::rename(&other, &theirs).unwrap();
        drop(made);
        assert!(!ours.exists());
        assert_eq!(std::fs::read(&theirs).unwrap(), b"precious");
    }

    #[test]
    fn folders_of_the_run_go_with_its_files_unless_something_else_is_in_them() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        for keeps in [false, true] {
            let mut made = Made::default();
            for path in [place("a/b/c/file"), place("a/b/file")] {
                made.make_folders(&path).unwrap();
                made.make(&path).unwrap();
            }
            std::fs::write(place("a/theirs"), "").unwrap();
            if keeps {
                made.keep()
            } else {
                drop(made)
            }
            assert_eq!((place("a/theirs").exists(), place("a/b").exists()), (true, keeps));
        }
        assert!(place("a/b/c/file").exists());
    }

    #[test]
    fn a_file_that_was_given_the_name_and_the_number_of_a_removed_one_is_not_the_runs() {
        // W7
        let folder = fixtures::folder();
        let path = folder.path().join("file");
        let mut made = Made::default();
        let born = made.make(&path).unwrap().metadata().unwrap();
        let again = || {
            std::fs::remove_file(&path).unwrap();
            std::fs::write(&path, "precious").unwrap();
            path.metadata().unwrap()
        };
        // The clock for creation times advances in steps of a few milliseconds (`CONFIG_HZ`).
        let mut now = again();
        while now.created().ok().is_some() && now.created().ok() == born.created().ok() {
            now = again();
        }
        assert!(!made.has(&now) || now.created().is_err());
        drop(made);
        assert!(path.exists() || now.created().is_err());
    }

    #[test]
    fn kept_files_stay_and_existing_ones_are_not_made() {
        // W7
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut made = Made::default();
        made.make(&path).unwrap();
        made.keep();
        assert!(path.exists());
        let error = Made::default().make(&path).unwrap_err().to_string();
        assert!(error.contains("create: File exists"), "{error}");
        assert!(path.exists());
    }
}
