//! The one folder that a run makes for its files, and removes: `.wrote-XXXXXX`.

mod leftover;
mod lock;
mod remove;
mod staged;

pub use leftover::{Cleaned, Leftover, clean, leftovers};

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use wrote_jobs::peers::Peers;
use wrote_result::Error;

/// The first part of a run's folder name; six random letters and digits follow.
const PREFIX: &str = ".wrote-";

/// The folder of a run, and the lock in it that tells a living run from a dead one.
///
/// Dropping it removes the folder with all that the run made in it, and nothing else: only files of
/// the names that a run gives (`lock`, and `ways-output-0.data` and its like), no folder below but
/// one of a log's files (`append-log-0.data`), never through a symbolic link.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    folder: remove::Open,
    /// Held for as long as the run lives; `None` once the folder is removed or given away.
    lock: Option<File>,
    /// Of several ranks that use the folder: this one. `None` alone.
    rank: Option<u32>,
    /// Whether this process made the folder, and so removes it.
    is_maker: bool,
}

impl Scratch {
    /// Makes a new folder in `parent`, which only its owner may enter, and locks it.
    ///
    /// The errors are one line. [`Error::Usage`]: there is no such folder, or it is a file or a
    /// device. [`Error::Failed`]: it can't be written to.
    pub fn make(parent: &Path) -> Result<Scratch, Error> {
        check_folder(parent)?;
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .rand_bytes(6)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent)
            .map_err(|error| not_made(parent, &error))?;
        // Its own way of removing would take everything in the folder, other programs' files too.
        let path = folder.keep();
        let folder = remove::Open::at(&path).map_err(|error| {
            // It is new, and so empty.
            let _ = std::fs::remove_dir(&path);
            not_made(parent, &error)
        })?;
        match lock::make(&path) {
            Ok(lock) => Ok(Scratch { path, folder, lock: Some(lock), rank: None, is_maker: true }),
            Err(error) => {
                let _ = folder.remove(());
                Err(not_made(parent, &error))
            }
        }
    }

    /// Makes one folder for all ranks, or one on each of their disks. Rank 0 makes it, and each
    /// other rank uses that folder where it is there, else makes one of that name.
    ///
    /// # Errors
    ///
    /// Those of [`Scratch::make`] and of [`Peers::meet`].
    pub fn make_for(parent: &Path, peers: &dyn Peers) -> Result<Scratch, Error> {
        if !peers.are_many() {
            return Scratch::make(parent);
        }
        let made = match peers.is_first() {
            true => Some(Scratch::make(parent)?),
            false => None,
        };
        let name = made.as_ref().and_then(|made| made.path.file_name()?.to_str().map(String::from));
        let name = peers.of_first("the folder", name.unwrap_or_default())?;
        let mut scratch = match made {
            Some(made) => made,
            None => Scratch::join(parent, &name)?,
        };
        scratch.rank = Some(peers.rank());
        Ok(scratch)
    }

    /// Opens the folder of another rank, or makes it where it is not there.
    fn join(parent: &Path, name: &str) -> Result<Scratch, Error> {
        check_folder(parent)?;
        let failed = |error: io::Error| not_made(parent, &error);
        let path = parent.join(name);
        let mut builder = std::fs::DirBuilder::new();
        let is_new = match builder.mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            other => other.map(|()| true).map_err(failed)?,
        };
        let folder = remove::Open::at(&path).map_err(failed)?;
        // The lock is held by the rank that made the folder.
        let lock = match is_new {
            true => lock::make(&path).map_err(failed)?,
            false => File::open(&path).map_err(failed)?,
        };
        Ok(Scratch { path, folder, lock: Some(lock), rank: None, is_maker: is_new })
    }

    /// Removes what this rank made, and leaves the folder to the rank that made it.
    pub fn leave(mut self) {
        if let Some(rank) = self.rank.filter(|_| !self.is_maker) {
            self.folder.remove_of(rank);
            self.lock = None;
        }
    }

    /// Ends the work of all ranks in the folder: where it went wrong, `result` is the error of the
    /// group. A rank that did not make the folder removes its files; the one that did waits until
    /// all others have, and removes the folder. Asked to stop, each rank removes all that it finds,
    /// since the others may be gone.
    pub fn end_for<T>(self, peers: &dyn Peers, result: Result<T, Error>) -> Result<T, Error> {
        if !peers.are_many() {
            return result.and_then(|done| self.remove().map(|()| done));
        }
        match result.map_err(|error| peers.fail(error)) {
            Ok(done) => {
                peers.barrier("the end")?;
                if self.is_maker {
                    self.remove()?
                } else {
                    self.leave()
                }
                Ok(done)
            }
            Err(Error::Interrupted) => Err(Error::Interrupted),
            // Rank 0, and whichever misses it.
            Err(error) if peers.tells() => {
                peers.part();
                Err(error)
            }
            Err(error) => {
                self.leave();
                peers.part();
                Err(error)
            }
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a scenario's file, or of its log's folder: `ways-source-0.data`. Only files of
    /// such names are removed, and of such folders only a log's files.
    pub fn file(&self, scenario: &str, part: &str, number: u32) -> PathBuf {
        match self.rank {
            Some(rank) => self.file_of(rank, scenario, part, number),
            None => self.shared_file(scenario, part, number),
        }
    }

    /// The path of a file of this rank: `ways-source-rank3-0.data`.
    pub fn file_of(&self, rank: u32, scenario: &str, part: &str, number: u32) -> PathBuf {
        self.path.join(format!("{scenario}-{part}-rank{rank}-{number}.data"))
    }

    /// Whether a path of [`Scratch::file`] is that of one rank.
    pub fn is_of_rank(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| self.rank.is_some_and(|rank| name.contains(&mark(rank))))
    }

    /// The path of another rank's file, given that of this rank.
    pub fn of_rank(&self, path: &Path, other: u32) -> PathBuf {
        match (self.rank, path.file_name().and_then(|name| name.to_str())) {
            (Some(rank), Some(name)) => {
                path.with_file_name(name.replacen(&mark(rank), &mark(other), 1))
            }
            _ => path.to_owned(),
        }
    }

    /// The path of a file that all ranks use.
    pub fn shared_file(&self, scenario: &str, part: &str, number: u32) -> PathBuf {
        self.path.join(format!("{scenario}-{part}-{number}.data"))
    }

    /// Removes the log in a folder of [`Scratch::file`], if there is one.
    pub fn remove_log(&self, log: &Path) -> Result<(), Error> {
        let name = log.file_name().expect("a folder in the run's own");
        remove::remove_log(&self.folder.folder, name)
            .map_err(|error| Error::Failed(format!("{}: can't be removed: {error}", log.display())))
    }

    /// The file that is locked: a file of the run's that is there from the start.
    pub fn lock_file(&self) -> PathBuf {
        self.path.join(lock::NAME)
    }

    /// Removes the folder. What the run did not make is left where it is, and the error names it.
    pub fn remove(mut self) -> Result<(), Error> {
        self.remove_once()
    }

    /// Leaves the folder and its files to the user, and says where. It is no longer a run's: the
    /// lock goes, so that no later run takes it for a leftover.
    pub fn keep(mut self) -> PathBuf {
        if self.lock.take().is_some() {
            // At worst the folder is taken for a leftover of a run that was killed.
            let _ = std::fs::remove_file(self.path.join(lock::NAME));
        }
        std::mem::take(&mut self.path)
    }

    fn remove_once(&mut self) -> Result<(), Error> {
        // Held until the lock file is gone, so that no `wrote clean` removes it at the same time.
        match self.lock.take() {
            Some(lock) => self.folder.remove(lock),
            None => Ok(()),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // No caller is left for an error; the rest is found as a leftover.
        let _ = self.remove_once();
    }
}

/// Refuses what is not a folder, with the reason.
pub fn check_folder(parent: &Path) -> Result<(), Error> {
    let shown = parent.display();
    let metadata = std::fs::metadata(parent).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Error::Usage(format!("{shown}: does not exist")),
        io::ErrorKind::NotADirectory => Error::Usage(format!("{shown}: a part of it is a file")),
        _ => Error::Failed(format!("{shown}: can't be examined: {error}")),
    })?;
    let kind = metadata.file_type();
    let because = if kind.is_dir() {
        return Ok(());
    } else if kind.is_block_device() {
        "is a block device; wrote bench writes files: give a folder on it"
    } else if kind.is_file() {
        "is a file; give the folder to write in"
    } else {
        "is not a folder; give the folder to write in"
    };
    Err(Error::Usage(format!("{shown}: {because}")))
}

/// The part of a file's name that says whose it is.
fn mark(rank: u32) -> String {
    format!("-rank{rank}-")
}

/// Returns an error's words without the path that tempfile adds: it is not the user's.
fn without_path(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" at path ").next().unwrap_or(&text).to_owned()
}

fn not_made(parent: &Path, error: &io::Error) -> Error {
    // By its kind: tempfile's errors hide their number behind the path.
    let because = match error.kind() {
        io::ErrorKind::PermissionDenied => "is not writable for this user".into(),
        io::ErrorKind::ReadOnlyFilesystem => "is on a read-only file system".into(),
        io::ErrorKind::StorageFull => "is on a full disk: there is no space for a folder".into(),
        io::ErrorKind::QuotaExceeded => "is full: the user's quota is used up".into(),
        _ => format!("cannot create files here: {}", without_path(error)),
    };
    Error::Failed(format!("{}: {because}", parent.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixtures::names;
    use rustix::io::Errno;
    use std::fs;
    use tempfile::TempDir;

    fn refused(parent: &Path) -> Error {
        let error = Scratch::make(parent).unwrap_err();
        assert_eq!(error.to_string().lines().count(), 1);
        error
    }

    #[test]
    fn the_folder_is_the_owners_alone_and_goes_with_its_files() {
        let parent = TempDir::new().unwrap();
        let scratch = Scratch::make(parent.path()).unwrap();
        let name = scratch.path().file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name.starts_with(".wrote-") && name.len() == 13, "{name}");
        let mode = fs::metadata(scratch.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        fs::write(scratch.file("ways", "output", 0), "x").unwrap();
        fs::write(scratch.file("ways", "output", 12), "x").unwrap();
        scratch.remove().unwrap();
        assert!(names(parent.path()).is_empty());
    }

    #[test]
    fn dropping_removes_too() {
        let parent = TempDir::new().unwrap();
        let scratch = Scratch::make(parent.path()).unwrap();
        fs::write(scratch.file("ways", "output", 0), "x").unwrap();
        drop(scratch);
        assert!(names(parent.path()).is_empty());
    }

    #[test]
    fn what_the_run_did_not_make_is_left_and_named() {
        let parent = TempDir::new().unwrap();
        let scratch = Scratch::make(parent.path()).unwrap();
        let path = scratch.path().to_owned();
        fs::write(scratch.file("ways", "output", 0), "ours").unwrap();
        fs::write(path.join("thesis.txt"), "theirs").unwrap();
        fs::create_dir(path.join("job-1.data")).unwrap();
        fs::write(path.join("job-1.data/job-0.data"), "theirs").unwrap();
        let error = scratch.remove().unwrap_err().to_string();
        assert!(error.contains("job-1.data") && error.contains("thesis.txt"), "{error}");
        assert_eq!(names(&path), ["job-1.data", "thesis.txt"]);
        assert_eq!(fs::read(path.join("job-1.data/job-0.data")).unwrap(), b"theirs");
    }

    #[test]
    fn a_symbolic_link_is_neither_followed_nor_removed() {
        let parent = TempDir::new().unwrap();
        let precious = parent.path().join("precious");
        fs::write(&precious, "theirs").unwrap();
        let scratch = Scratch::make(parent.path()).unwrap();
        let link = scratch.file("ways", "output", 0);
        std::os::unix::fs::symlink(&precious, &link).unwrap();
        assert!(scratch.remove().unwrap_err().to_string().contains("ways-output-0.data"));
        assert!(link.is_symlink());
        assert_eq!(fs::read(&precious).unwrap(), b"theirs");
    }

    #[test]
    fn a_folder_that_was_replaced_by_a_link_is_left_alone() {
        let parent = TempDir::new().unwrap();
        let elsewhere = parent.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        fs::write(elsewhere.join("ways-output-0.data"), "theirs").unwrap();
        let scratch = Scratch::make(parent.path()).unwrap();
        let path = scratch.path().to_owned();
        fs::rename(&path, parent.path().join("moved")).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
        assert!(scratch.remove().is_err());
        assert_eq!(names(&elsewhere), ["ways-output-0.data"]);
    }

    #[test]
    fn a_folder_above_may_be_moved_and_the_runs_folder_goes_all_the_same() {
        let above = TempDir::new().unwrap();
        let [before, after] = ["before", "after"].map(|name| above.path().join(name));
        fs::create_dir(&before).unwrap();
        let scratch = Scratch::make(&before).unwrap();
        fs::write(scratch.file("ways", "output", 0), "x").unwrap();
        fs::rename(&before, &after).unwrap();
        scratch.remove().unwrap();
        assert!(names(&after).is_empty());
    }

    #[test]
    fn a_folder_that_is_kept_is_the_users() {
        let parent = TempDir::new().unwrap();
        let scratch = Scratch::make(parent.path()).unwrap();
        fs::write(scratch.file("ways", "output", 0), "x").unwrap();
        let path = scratch.keep();
        assert_eq!(names(&path), ["ways-output-0.data"]);
        assert!(leftovers(parent.path()).is_empty());
    }

    #[test]
    fn a_parent_that_is_no_folder_is_refused_as_wrong_usage() {
        let parent = TempDir::new().unwrap();
        let file = parent.path().join("file");
        fs::write(&file, "theirs").unwrap();
        for (path, because) in [
            (parent.path().join("missing"), "does not exist"),
            (file.clone(), "is a file; give the folder to write in"),
            (file.join("below"), "a part of it is a file"),
            ("/dev/null".into(), "is not a folder; give the folder to write in"),
        ] {
            let error = refused(&path);
            assert!(matches!(error, Error::Usage(_)), "{error:?}");
            assert_eq!(error.to_string(), format!("{}: {because}", path.display()));
        }
        assert_eq!(fs::read(&file).unwrap(), b"theirs");
    }

    #[test]
    fn a_block_device_is_refused_and_a_folder_on_it_is_asked_for() {
        let devices = fs::read_dir("/dev").unwrap().flatten().map(|entry| entry.path());
        let is_block =
            |path: &PathBuf| fs::metadata(path).is_ok_and(|m| m.file_type().is_block_device());
        let Some(device) = devices.into_iter().find(is_block) else {
            let test = "a_block_device_is_refused_and_a_folder_on_it_is_asked_for";
            return fixtures::skip(test, "there is none in /dev");
        };
        let error = refused(&device);
        assert!(matches!(error, Error::Usage(_)));
        assert!(
            error
                .to_string()
                .ends_with("is a block device; wrote bench writes files: give a folder on it")
        );
    }

    #[test]
    fn a_parent_in_which_nothing_can_be_made_is_a_failure() {
        // No folder can be made in sysfs, not even by root.
        assert!(matches!(refused(Path::new("/sys")), Error::Failed(_)));
        for (errno, because) in [
            (Errno::ACCESS, "/data: is not writable for this user"),
            (Errno::ROFS, "/data: is on a read-only file system"),
            (Errno::NOSPC, "/data: is on a full disk: there is no space for a folder"),
            (Errno::IO, "/data: cannot create files here: Input/output error (os error 5)"),
        ] {
            let error = not_made(Path::new("/data"), &errno.into());
            assert_eq!(error.to_string(), because);
        }
    }
}
