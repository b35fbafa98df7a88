//! The files that a run of jobs made: they stay, or they are removed.

use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use wrote_result::Error;

/// The files that the run made. Dropping it removes them, [`Made::keep`] leaves them.
#[derive(Debug, Default)]
pub struct Made {
    files: Vec<(PathBuf, Identity)>,
}

/// The identity of a file, unlike that of another file that gets its name later: also its birth,
/// where the file system keeps that, because the number of a file that was removed is soon given
/// out again.
type Identity = (u64, u64, Option<SystemTime>);

fn identity(metadata: &Metadata) -> Identity {
    (metadata.dev(), metadata.ino(), metadata.created().ok())
}

impl Made {
    /// Makes a file; one that is there already is an error (W7).
    pub fn make(&mut self, path: &Path) -> Result<File, Error> {
        let failed = |error| Error::Failed(format!("{}: create: {error}", path.display()));
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(failed)?;
        let identity = identity(&file.metadata().map_err(failed)?);
        // Where the run stands may change until it is removed.
        let path = std::path::absolute(path).map_err(failed)?;
        self.files.push((path, identity));
        Ok(file)
    }

    pub fn has(&self, metadata: &Metadata) -> bool {
        self.files.iter().any(|(_, known)| *known == identity(metadata))
    }

    pub fn keep(mut self) {
        self.files.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for (path, known) in &self.files {
            // A link in its place is another file: it is not followed.
            if std::fs::symlink_metadata(path).is_ok_and(|now| identity(&now) == *known) {
                // No caller is left for an error.
                let _ = std::fs::remove_file(path);
            }
        }
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
        // Both exist at once: the second cannot be given the number of the first.
        let other = folder.path().join("other");
        std::fs::write(&other, "precious").unwrap();
        assert!(made.has(&ours.metadata().unwrap()) && !made.has(&other.metadata().unwrap()));
        std::fs::rename(&other, &theirs).unwrap();
        drop(made);
        assert!(!ours.exists());
        assert_eq!(std::fs::read(&theirs).unwrap(), b"precious");
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
        // The clock of births moves in steps of some milliseconds (`CONFIG_HZ`).
        let mut now = again();
        while now.created().ok().is_some() && now.created().ok() == born.created().ok() {
            now = again();
        }
        assert!(!made.has(&now) || now.created().is_err());
        drop(made);
        assert!(path.exists() || now.created().is_err());
    }

    #[test]
    fn what_is_kept_stays_and_what_exists_is_not_made() {
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
