//! Names of files: where they lead, and changes that lose nothing.

use super::judge::uninterrupted;
use super::{Engine, Fallback};
use crate::error::{Action, Error, Tried};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Symbolic links that may lead to each other (`path_resolution(7)`).
const LINKS_MAX: u32 = 40;

/// The end of a write to a name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Located {
    /// The name, with symbolic links of its last part followed. The file need not exist.
    pub path: PathBuf,
    /// The kind of thing with that name.
    pub found: Found,
}

/// The kind of thing with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Found {
    /// Nothing.
    Nothing,
    /// An ordinary file.
    File,
    /// A folder.
    Folder,
    /// A device, a pipe, a socket; or a thing without a name, behind a link of `/proc`.
    Other,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum NameChange<'a> {
    /// Renames `from` to `to`. A file called `to` is gone with `replace`, and an error without.
    Rename { from: &'a Path, to: &'a Path, replace: bool },
    /// Removes the name, and the file with it unless it is open or has another name.
    Remove(&'a Path),
    /// Brings the names in the folder to stable storage.
    SyncFolder(&'a Path),
}

impl Engine {
    /// Finds where a write to the name `path` ends, with symbolic links followed as by `open(2)`,
    /// and what is there. A missing name is no error.
    pub fn locate(&mut self, path: impl AsRef<Path>) -> Result<Located, Error> {
        let path = path.as_ref();
        uninterrupted(|| self.backend.locate(path)).tried(path, Action::Examine)
    }

    /// Renames the file `from` to `to`, in one file system and in one step: at every moment `to` is
    /// its old file or the new one (`rename(2)`). An old file is gone with `replace`, and an error
    /// without (W7). Durable once the folder is synced.
    pub fn rename(
        &mut self,
        from: impl AsRef<Path>,
        to: impl AsRef<Path>,
        replace: bool,
    ) -> Result<(), Error> {
        let (from, to) = (from.as_ref(), to.as_ref());
        self.change_name(NameChange::Rename { from, to, replace }, to, Action::Rename)
    }

    /// Removes the name of a file (`unlink(2)`).
    pub fn remove(&mut self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        self.change_name(NameChange::Remove(path), path, Action::Remove)
    }

    /// Brings the names in the folder to stable storage (`fsync(2)`): files made or renamed there
    /// survive a power loss. If the file system has nothing to sync there, that is a fallback, not
    /// an error. An error comes back at every later call for this folder (W2).
    pub fn sync_folder(&mut self, folder: impl AsRef<Path>) -> Result<(), Error> {
        let folder = folder.as_ref();
        let poisoned = self.poisoned_folders.iter().find(|(path, _)| path == folder);
        if let Some(&(ref path, errno)) = poisoned {
            return Err(Error::Poisoned { path: path.clone(), errno });
        }
        self.change_name(NameChange::SyncFolder(folder), folder, Action::SyncFolder)
            .inspect_err(|error| self.poisoned_folders.push((folder.to_owned(), error.errno())))
    }

    /// Makes a folder (`mkdir(2)`); an existing folder is no error. Durable once the folder that
    /// holds it is synced.
    pub fn make_folder(&mut self, folder: impl AsRef<Path>) -> Result<(), Error> {
        let folder = folder.as_ref();
        uninterrupted(|| self.backend.make_folder(folder)).tried(folder, Action::MakeFolder)
    }

    /// Lists a folder, in order of the names.
    pub fn list(&mut self, folder: impl AsRef<Path>) -> Result<Vec<PathBuf>, Error> {
        let folder = folder.as_ref();
        uninterrupted(|| self.backend.list(folder)).tried(folder, Action::Examine)
    }

    fn change_name(
        &mut self,
        change: NameChange,
        path: &Path,
        action: Action,
    ) -> Result<(), Error> {
        let fallback = uninterrupted(|| self.backend.change_name(change)).tried(path, action)?;
        if let Some(Fallback { wanted, got, because }) = fallback {
            self.effective.fell_back(wanted, got, because);
        }
        Ok(())
    }
}

/// Follows the symbolic links of the path's last part, as `open(2)` does.
///
/// A link of `/proc/self/fd` may lead to a thing though its text names nothing: to a pipe, or a
/// file that was removed (`proc(5)`). Such a thing has no name to give to another.
pub(super) fn locate(named: &Path) -> io::Result<Located> {
    let mut path = named.to_owned();
    for _ in 0..LINKS_MAX {
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let is_nameless = path != named && fs::metadata(named).is_ok();
                let found = if is_nameless { Found::Other } else { Found::Nothing };
                return Ok(Located { path, found });
            }
            Err(error) => return Err(error),
        };
        let kind = metadata.file_type();
        if !kind.is_symlink() {
            let found = match kind {
                kind if kind.is_file() => Found::File,
                kind if kind.is_dir() => Found::Folder,
                _ => Found::Other,
            };
            return Ok(Located { path, found });
        }
        // The kernel decides whether it may be followed: in a folder such as /tmp another user's
        // link may not (`fs.protected_symlinks`, proc(5): EACCES).
        if let Err(error) = fs::metadata(&path)
            && error.kind() == io::ErrorKind::PermissionDenied
        {
            return Err(error);
        }
        // Relative to the folder of the link; an absolute text replaces all.
        path = folder_of(&path).join(fs::read_link(&path)?);
    }
    Err(Errno::LOOP.into())
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
        result => result,
    }
}

pub(super) fn list(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    // By their bytes: a comparison of paths takes them apart.
    paths.sort_unstable_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
    Ok(paths)
}

pub(super) fn change(change: NameChange) -> io::Result<Option<Fallback>> {
    match change {
        NameChange::Rename { from, to, replace: true } => fs::rename(from, to).map(|()| None),
        NameChange::Rename { from, to, replace: false } => rename_to_new(from, to),
        NameChange::Remove(path) => fs::remove_file(path).map(|()| None),
        NameChange::SyncFolder(path) => sync_folder(path),
    }
}

fn rename_to_new(from: &Path, to: &Path) -> io::Result<Option<Fallback>> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(None),
        // NFS, 9p, Ceph and most of FUSE lack the flag.
        Err(errno @ (Errno::INVAL | Errno::NOSYS)) => {
            let got = rename_without_the_flag(from, to)?;
            let because = format!("renameat2: {}", io::Error::from(errno));
            Ok(Some(Fallback { wanted: "RENAME_NOREPLACE", got, because }))
        }
        Err(errno) => Err(errno.into()),
    }
}

/// Renames without replacing. A file gets a second name, which fails where that exists, and loses
/// the first. A folder has one name only (`link(2)`, EPERM): it replaces an empty folder made for
/// that, and no folder that another process has filled meanwhile (`rename(2)`, ENOTEMPTY).
fn rename_without_the_flag(from: &Path, to: &Path) -> io::Result<&'static str> {
    if !fs::symlink_metadata(from)?.is_dir() {
        fs::hard_link(from, to)?;
        fs::remove_file(from)?;
        return Ok("link and unlink");
    }
    fs::create_dir(to)?;
    fs::rename(from, to).inspect_err(|_| {
        // Only if it is still empty; the first error is the one to report.
        let _ = fs::remove_dir(to);
    })?;
    Ok("rename onto an empty folder")
}

/// Syncs a folder. Some file systems have nothing to sync there and answer EINVAL (`fsync(2)`).
fn sync_folder(path: &Path) -> io::Result<Option<Fallback>> {
    match File::open(path)?.sync_all() {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP)) => {
            let because = format!("fsync of a folder: {error}");
            Ok(Some(Fallback { wanted: "durable names", got: "names as they are", because }))
        }
        synced => synced.map(|()| None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_to_the_name_that_a_write_would_reach() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        fs::write(place("file"), b"x").unwrap();
        symlink("file", place("link")).unwrap();
        symlink(place("link"), place("link-to-link")).unwrap();
        symlink("nothing", place("dangling")).unwrap();
        symlink("loop", place("loop")).unwrap();
        let located = |name: &str| locate(&place(name)).unwrap();
        assert_eq!(located("link-to-link"), Located { path: place("file"), found: Found::File });
        assert_eq!(located("dangling"), Located { path: place("nothing"), found: Found::Nothing });
        assert_eq!(locate(folder.path()).unwrap().found, Found::Folder);
        assert_eq!(locate(Path::new("/dev/null")).unwrap().found, Found::Other);
        assert_eq!(locate(&place("loop")).unwrap_err().raw_os_error(), Some(libc::ELOOP));
    }

    #[test]
    fn what_has_no_name_behind_its_link_is_not_taken_for_nothing() {
        // W7: a file called "gone (deleted)" would be made.
        let folder = tempfile::tempdir().unwrap();
        let gone = File::create(folder.path().join("gone")).unwrap();
        fs::remove_file(folder.path().join("gone")).unwrap();
        let (pipe, _other_end) = io::pipe().unwrap();
        for number in [gone.as_raw_fd(), pipe.as_raw_fd()] {
            let link = PathBuf::from(format!("/proc/self/fd/{number}"));
            assert_eq!(locate(&link).unwrap().found, Found::Other);
        }
    }

    #[test]
    fn a_name_that_is_taken_is_replaced_only_when_that_was_said() {
        // W7
        let folder = tempfile::tempdir().unwrap();
        let (new, taken) = (folder.path().join("new"), folder.path().join("taken"));
        fs::write(&new, b"new").unwrap();
        fs::write(&taken, b"precious").unwrap();
        let rename = |replace| change(NameChange::Rename { from: &new, to: &taken, replace });
        assert_eq!(rename(false).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&taken).unwrap(), b"precious");
        rename(true).unwrap();
        assert_eq!(fs::read(&taken).unwrap(), b"new");
        assert!(!new.exists());
    }

    #[test]
    fn where_a_rename_knows_no_flags_files_and_folders_get_new_names_and_no_taken_ones() {
        // W7
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        fs::write(place("file"), b"file").unwrap();
        fs::create_dir(place("folder")).unwrap();
        fs::write(place("folder/inside"), b"inside").unwrap();
        fs::create_dir(place("taken")).unwrap();
        for from in ["file", "folder"] {
            let error = rename_without_the_flag(&place(from), &place("taken")).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            let to = place(&format!("new-{from}"));
            rename_without_the_flag(&place(from), &to).unwrap();
            assert!(to.exists() && !place(from).exists());
        }
        assert_eq!(fs::read(place("new-folder/inside")).unwrap(), b"inside");
        assert_eq!(fs::read_dir(place("taken")).unwrap().count(), 0);
    }
}
