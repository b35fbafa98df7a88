//! The folder in which a run creates and removes its files: `.wrote-XXXXXX`.

mod leftover;
mod lock;
mod remove;
mod staged;

pub use leftover::{Cleaned, clean, leftovers};

use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use wrote_jobs::machine::target;
use wrote_jobs::peers::Peers;
use wrote_result::Error;

/// The prefix of the name of a run's folder. Six random letters and digits follow it.
const PREFIX: &str = ".wrote-";

/// The word before the rank's number in the name of a file that belongs to one rank.
pub(crate) const OF_RANK: &str = "-rank";

/// A run's folder, or a temporary file or folder, that still exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The file or folder.
    pub path: PathBuf,
    /// The space that the run's files occupy, in bytes.
    pub size_bytes: u64,
    /// Whether the run is still alive.
    pub alive: bool,
}

/// The folder of a run, with a lock that shows whether the run is alive.
///
/// Dropping the value removes the folder with everything that the run created in it, and nothing
/// else: only files whose names a run uses (`lock`, `ways-output-0.data` and the like) and folders
/// of a log's files (`append-log-0.data`), and never through a symbolic link.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    folder: remove::Open,
    /// The lock, which is held as long as the run is alive; `None` once the folder is removed or
    /// given away.
    lock: Option<File>,
    /// Whether this process created the folder and therefore removes it.
    is_maker: bool,
    /// The number of this rank, if several ranks use the folder; `None` for a single process.
    rank: Option<u32>,
}

impl Scratch {
    /// Creates a new folder in `parent` that only its owner may enter, and locks it.
    ///
    /// Each error is one line. [`Error::Usage`]: `parent` does not exist, or is a file or a device.
    /// [`Error::Failed`]: `parent` is not writable.
    pub fn make(parent: &Path) -> Result<Scratch, Error> {
        check_writable(parent)?;
        let folder = tempfile::Builder::new()
            .prefix(PREFIX)
            .rand_bytes(6)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent)
            .map_err(|error| not_made(parent, &error))?;
        // The folder is detached from tempfile, which would remove everything in it, including the
        // files of other programs.
        Scratch::locked(folder.keep()).map_err(|error| not_made(parent, &error))
    }

    /// Locks a new folder. Removes the folder if that fails.
    fn locked(path: PathBuf) -> io::Result<Scratch> {
        let folder = remove::Open::at(&path).inspect_err(|_| {
            // The folder is new, and therefore empty.
            let _ = std::fs::remove_dir(&path);
        })?;
        match lock::make(&path) {
            Ok(lock) => Ok(Scratch { path, folder, lock: Some(lock), rank: None, is_maker: true }),
            Err(error) => {
                let _ = folder.remove(());
                Err(error)
            }
        }
    }

    /// Creates one folder for all ranks, or one on each of their disks. Rank 0 creates the folder.
    /// Every other rank uses this folder if it sees the folder, and otherwise creates one with the
    /// same name.
    ///
    /// # Errors
    ///
    /// Like [`Scratch::make`] and [`Peers::agree`].
    pub fn make_for(parent: &Path, peers: Peers) -> Result<Scratch, Error> {
        let first = peers.is_first().then(|| Scratch::make(parent)).transpose()?;
        let name = first.as_ref().and_then(|made| made.path.file_name()?.to_str());
        let name = peers.of_first("the folder", name.unwrap_or_default().to_owned())?;
        let joined = || Scratch::join(parent.join(name)).map_err(|error| not_made(parent, &error));
        let mut scratch = first.map_or_else(joined, Ok)?;
        scratch.rank = peers.are_many().then(|| peers.rank());
        Ok(scratch)
    }

    /// Opens the folder of rank 0, or creates it if it does not exist.
    fn join(path: PathBuf) -> io::Result<Scratch> {
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let (folder, lock) = (remove::Open::at(&path)?, Some(File::open(&path)?));
                Ok(Scratch { path, folder, lock, rank: None, is_maker: false })
            }
            made => made.and_then(|()| Scratch::locked(path)),
        }
    }

    /// Waits until all ranks have finished their work in the folder, and removes the folder on the
    /// rank that created it. If any rank fails, each rank removes everything that it finds, because
    /// other ranks may be gone.
    ///
    /// # Errors
    ///
    /// The first error of any rank; otherwise like [`Scratch::remove`].
    pub fn end_for(mut self, peers: Peers, done: Result<(), Error>) -> Result<(), Error> {
        peers.end(done)?;
        self.lock.take_if(|_| !self.is_maker);
        self.remove()
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path of a scenario's file or log folder, such as `ways-source-0.data`. Only
    /// files with such names are removed, and in such folders only the files of a log.
    pub fn file(&self, scenario: &str, part: &str, number: u32) -> PathBuf {
        self.shared_file(scenario, &format!("{part}{}", self.of_rank()), number)
    }

    /// Returns the part of a file's name that identifies its rank; empty if there is only one.
    pub fn of_rank(&self) -> String {
        self.rank.map_or(String::new(), |rank| format!("{OF_RANK}{rank}"))
    }

    /// Returns the path of a file that all ranks share.
    pub fn shared_file(&self, scenario: &str, part: &str, number: u32) -> PathBuf {
        self.path.join(format!("{scenario}-{part}-{number}.data"))
    }

    /// Removes the log in a folder whose path [`Scratch::file`] returned, if there is one.
    pub fn remove_log(&self, log: &Path) -> Result<(), Error> {
        let name = log.file_name().expect("a folder in the run's own");
        remove::remove_log(&self.folder.folder, name)
            .map_err(|error| Error::Failed(format!("{}: can't be removed: {error}", log.display())))
    }

    /// Returns the path of the lock file, which exists from the start.
    pub fn lock_file(&self) -> PathBuf {
        self.path.join(lock::NAME)
    }

    /// Removes the folder. Anything that the run did not create is kept, and the error names it.
    pub fn remove(mut self) -> Result<(), Error> {
        self.remove_once()
    }

    /// Leaves the folder and its files to the user, and returns the folder's path. The lock file is
    /// removed, so that no later run mistakes the folder for a leftover.
    pub fn keep(mut self) -> PathBuf {
        if self.lock.take().is_some() {
            // At worst, the folder is mistaken for the folder of a killed run.
            let _ = std::fs::remove_file(self.path.join(lock::NAME));
        }
        std::mem::take(&mut self.path)
    }

    fn remove_once(&mut self) -> Result<(), Error> {
        // The lock is held until its file is gone, so that no `wrote clean` removes the folder
        // concurrently.
        match self.lock.take() {
            Some(lock) => self.folder.remove(lock),
            None => Ok(()),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // There is no caller to report an error to. Whatever remains is found as a leftover.
        let _ = self.remove_once();
    }
}

/// Refuses a path that is not a folder, and gives the reason.
pub fn check_folder(parent: &Path) -> Result<(), Error> {
    let shown = parent.display();
    let kind = target::examined(parent)?.file_type();
    let because = if kind.is_dir() {
        return Ok(());
    } else if kind.is_block_device() {
        "is a block device, and only files are written: name a folder on it"
    } else if kind.is_file() {
        "is a file: name the folder to write in"
    } else {
        "is not a folder: name the folder to write in"
    };
    Err(Error::Usage(format!("{shown}: {because}")))
}

/// Refuses a path that is not a folder, and a folder in which no files can be created, and gives
/// the reason.
///
/// This check must precede the comparison of the free space with the required space, because a file
/// system that accepts no files has no free space, either.
pub fn check_writable(parent: &Path) -> Result<(), Error> {
    check_folder(parent)?;
    target::check_new(parent).map_err(|error| not_made(parent, &error))
}

/// Returns the text of an error without the path that tempfile adds, which means nothing to the
/// user.
fn without_path(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" at path ").next().unwrap_or(&text).to_owned()
}

/// Returns the error for a folder that can't be created, or in which no files can.
pub(crate) fn not_made(parent: &Path, error: &io::Error) -> Error {
    // The kind is matched, because tempfile's errors hide the error number in a text.
    let because = match error.kind() {
        io::ErrorKind::PermissionDenied => "is not writable for this user".into(),
        io::ErrorKind::ReadOnlyFilesystem => "is on a read-only file system".into(),
        io::ErrorKind::StorageFull => "is on a full disk, without space for a folder".into(),
        io::ErrorKind::QuotaExceeded => "is full: the user's quota is used up".into(),
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "a part of the path is a file".into()
        }
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
    fn files_of_others_are_left_and_named() {
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
            (file.clone(), "is a file: name the folder to write in"),
            (file.join("below"), "a part of the path is a file"),
            ("/dev/null".into(), "is not a folder: name the folder to write in"),
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
                .ends_with("is a block device, and only files are written: name a folder on it")
        );
    }

    #[test]
    fn a_parent_in_which_nothing_can_be_made_is_a_failure() {
        // Not even root can create folders in sysfs.
        let error = refused(Path::new("/sys"));
        assert!(matches!(error, Error::Failed(_)));
        let because = "cannot create files here: only the kernel creates files in sysfs";
        assert_eq!(error.to_string(), format!("/sys: {because}"));
        for (errno, because) in [
            (Errno::ACCESS, "/data: is not writable for this user"),
            (Errno::ROFS, "/data: is on a read-only file system"),
            (Errno::NOSPC, "/data: is on a full disk, without space for a folder"),
            (Errno::IO, "/data: cannot create files here: Input/output error (os error 5)"),
        ] {
            let error = not_made(Path::new("/data"), &errno.into());
            assert_eq!(error.to_string(), because);
        }
    }
}
