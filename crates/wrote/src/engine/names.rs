//! File names: resolution, and changes that lose nothing.

use super::folder::{Folder, PlaceOfName};
use super::judge::uninterrupted;
use super::{Engine, Fallback, FileId};
use crate::error::{Action, Error, Tried};
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, fsync, linkat, mkdirat, readlinkat,
    renameat, renameat_with, syncfs, unlinkat,
};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// The most symbolic links followed (`path_resolution(7)`).
const LINKS_MAX: u32 = 40;

/// Where a write to a name goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    /// The name, with symbolic links of its last component followed. The file need not exist.
    pub path: PathBuf,
    /// The kind of entry under that name.
    pub found: Found,
}

/// The kind of entry under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    /// An ordinary file.
    File,
    Folder,
    /// A device, a pipe, a socket; or something without a name, reached through a link in `/proc`.
    Other,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum NameChange<'a> {
    /// Renames `from` to `to`. With `replace` an existing `to` is replaced, otherwise it is an
    /// error.
    Rename { from: &'a Path, to: &'a Path, replace: bool },
    /// Removes the name, and the file with it unless it is open or has another name.
    Remove(&'a Path),
    /// Makes the names in the folder durable.
    SyncFolder(&'a Path),
}

impl Engine {
    /// Resolves paths below the folder's path relative to it, even after renames. Has no effect on
    /// a simulated disk, which has no folders.
    pub(crate) fn enter(&mut self, folder: Folder) {
        if self.backend.has_folders() {
            self.backend.enter(folder);
        }
    }

    /// Opens a folder and enters it. If it can't be read, it is looked up by path each time.
    pub(crate) fn hold_folder(&mut self, folder: &Path) {
        if self.backend.has_folders()
            && let Ok(held) = Folder::open(folder)
        {
            self.enter(held);
        }
    }

    /// Returns whether `path` still refers to the file, whose name may have been removed or reused.
    pub(crate) fn is_named(&self, file: FileId, path: &Path) -> Result<bool, Error> {
        self.check_process()?;
        self.backend.is_named(self.slot(file), path).tried(path, Action::Examine)
    }

    /// Finds where a write to the name `path` goes, following symbolic links like `open(2)`, and
    /// what exists there. A missing name is not an error.
    pub(crate) fn locate(&mut self, path: impl AsRef<Path>) -> Result<Located, Error> {
        self.check_process()?;
        let path = path.as_ref();
        uninterrupted(|| self.backend.locate(path)).tried(path, Action::Examine)
    }

    /// Renames the file `from` to `to` atomically, within one file system: at every moment `to` is
    /// the old file or the new one (`rename(2)`). With `replace` an existing file is replaced,
    /// otherwise it is an error (W7). Durable once the folder is synced.
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

    /// Makes the names in the folder durable (`fsync(2)`): files created or renamed there survive
    /// power loss. If the file system has nothing to sync, that is a fallback, not an error. An
    /// error is returned by every later call for this folder (W2).
    pub fn sync_folder(&mut self, folder: impl AsRef<Path>) -> Result<(), Error> {
        let folder = folder.as_ref();
        let poisoned = self.poisoned_folders.iter().find(|(path, _)| path == folder);
        if let Some(&(ref path, errno)) = poisoned {
            return Err(Error::Poisoned { path: path.clone(), errno });
        }
        self.check_process()?;
        self.change_name(NameChange::SyncFolder(folder), folder, Action::SyncFolder)
            .inspect_err(|error| self.poisoned_folders.push((folder.to_owned(), error.errno())))
    }

    /// Creates a folder (`mkdir(2)`); an existing one is not an error. Durable once the parent
    /// folder is synced.
    pub fn make_folder(&mut self, folder: impl AsRef<Path>) -> Result<(), Error> {
        self.check_process()?;
        let folder = folder.as_ref();
        uninterrupted(|| self.backend.make_folder(folder)).tried(folder, Action::MakeFolder)
    }

    /// Lists a folder, sorted by name.
    pub fn list(&mut self, folder: impl AsRef<Path>) -> Result<Vec<PathBuf>, Error> {
        self.check_process()?;
        let folder = folder.as_ref();
        uninterrupted(|| self.backend.list(folder)).tried(folder, Action::Examine)
    }

    fn change_name(
        &mut self,
        change: NameChange,
        path: &Path,
        action: Action,
    ) -> Result<(), Error> {
        self.check_process()?;
        let fallback = uninterrupted(|| self.backend.change_name(change)).tried(path, action)?;
        if let Some(Fallback { wanted, got, because }) = fallback {
            self.effective.fell_back(wanted, got, because);
        }
        Ok(())
    }
}

// Paths below `within`'s are resolved relative to it.

/// Follows the symbolic links of the path's last component, like `open(2)`.
///
/// A link in `/proc/self/fd` may refer to a file even if its text names nothing: to a pipe, or a
/// removed file (`proc(5)`). Such a file has no name that another could take.
pub(super) fn locate(within: Option<&Folder>, named: &Path) -> io::Result<Located> {
    if named == Path::new("") {
        // Like open(2). Otherwise the current folder would be used.
        return Err(Errno::NOENT.into());
    }
    let followed = |path: &Path| PlaceOfName::new(within, path).stat(AtFlags::empty());
    let mut path = named.to_owned();
    for _ in 0..LINKS_MAX {
        let place = PlaceOfName::new(within, &path);
        let kind = match place.stat(AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => FileType::from_raw_mode(stat.st_mode),
            Err(Errno::NOENT) => {
                let is_nameless = path != named && followed(named).is_ok();
                let found = if is_nameless { Found::Other } else { Found::Nothing };
                return Ok(Located { path, found });
            }
            Err(errno) => return Err(errno.into()),
        };
        let found = match kind {
            // The kernel decides whether it may be followed: in a folder such as /tmp, another
            // user's link may not (`fs.protected_symlinks`, proc(5): EACCES).
            FileType::Symlink => match followed(&path) {
                Err(errno @ (Errno::ACCESS | Errno::PERM)) => return Err(errno.into()),
                _ => None,
            },
            FileType::RegularFile => Some(Found::File),
            FileType::Directory => Some(Found::Folder),
            _ => Some(Found::Other),
        };
        if let Some(found) = found {
            return Ok(Located { path, found });
        }
        let text = readlinkat(place.folder, place.name, Vec::new())?.into_bytes();
        // Relative to the folder of the link; an absolute target replaces everything.
        path = folder_of(&path).join(OsString::from_vec(text));
    }
    Err(Errno::LOOP.into())
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
}

pub(super) fn make_folder(within: Option<&Folder>, folder: &Path) -> io::Result<()> {
    let place = PlaceOfName::new(within, folder);
    let is_folder = || {
        let found = place.stat(AtFlags::empty());
        found.is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Directory)
    };
    match mkdirat(place.folder, place.name, Mode::from_raw_mode(0o777)) {
        Err(Errno::EXIST) if is_folder() => Ok(()),
        result => Ok(result?),
    }
}

pub(super) fn list(within: Option<&Folder>, folder: &Path) -> io::Result<Vec<PathBuf>> {
    let open = PlaceOfName::new(within, folder).open(OFlags::DIRECTORY, Mode::empty())?;
    let mut paths = Vec::new();
    for entry in Dir::new(open)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            paths.push(folder.join(OsStr::from_bytes(name)));
        }
    }
    // By bytes, because comparing paths splits them.
    paths.sort_unstable_by(|one, other| one.as_os_str().cmp(other.as_os_str()));
    Ok(paths)
}

pub(super) fn change(within: Option<&Folder>, change: NameChange) -> io::Result<Option<Fallback>> {
    let place = |path| PlaceOfName::new(within, path);
    match change {
        NameChange::Rename { from, to, replace } => {
            let (from, to) = (place(from), place(to));
            if !replace {
                return rename_to_new(from, to);
            }
            renameat(from.folder, from.name, to.folder, to.name)?;
            Ok(None)
        }
        NameChange::Remove(path) => {
            let PlaceOfName { folder, name, .. } = place(path);
            unlinkat(folder, name, AtFlags::empty())?;
            Ok(None)
        }
        NameChange::SyncFolder(path) => sync_folder(place(path)),
    }
}

fn rename_to_new(from: PlaceOfName, to: PlaceOfName) -> io::Result<Option<Fallback>> {
    match renameat_with(from.folder, from.name, to.folder, to.name, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(None),
        // NFS, 9p, Ceph and most FUSE file systems lack the flag.
        Err(errno @ (Errno::INVAL | Errno::NOSYS)) => {
            let got = rename_without_the_flag(from, to)?;
            let because = format!("renameat2: {}", io::Error::from(errno));
            Ok(Some(Fallback { wanted: "RENAME_NOREPLACE", got, because }))
        }
        Err(errno) => Err(errno.into()),
    }
}

/// Renames without replacing. A file gets a second name, which fails if that exists, and loses the
/// first. A folder can have only one name (`link(2)`, EPERM): it replaces an empty folder created
/// for that purpose, but not one that another process has filled since (`rename(2)`, ENOTEMPTY).
fn rename_without_the_flag(from: PlaceOfName, to: PlaceOfName) -> io::Result<&'static str> {
    let stat = from.stat(AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        linkat(from.folder, from.name, to.folder, to.name, AtFlags::empty())?;
        unlinkat(from.folder, from.name, AtFlags::empty())?;
        return Ok("link and unlink");
    }
    mkdirat(to.folder, to.name, Mode::from_raw_mode(0o777))?;
    renameat(from.folder, from.name, to.folder, to.name).inspect_err(|_| {
        // Only if it is still empty; the first error is reported.
        let _ = unlinkat(to.folder, to.name, AtFlags::REMOVEDIR);
    })?;
    Ok("rename onto an empty folder")
}

/// Makes all files and names of an open file's file system durable (`syncfs(2)`). The flush after
/// it empties the device's cache again: ext4 without a journal writes metadata last.
pub(crate) fn sync_file_system(open: impl AsFd) -> io::Result<()> {
    syncfs(&open)?;
    Ok(fsync(open)?)
}

/// Syncs a folder. Some file systems have nothing to sync and return EINVAL (`fsync(2)`).
fn sync_folder(folder: PlaceOfName) -> io::Result<Option<Fallback>> {
    let synced = match folder.held() {
        Some(held) => fsync(held),
        None => fsync(folder.open(OFlags::empty(), Mode::empty())?),
    };
    match synced {
        Err(errno @ (Errno::INVAL | Errno::OPNOTSUPP)) => {
            let because = format!("fsync of a folder: {}", io::Error::from(errno));
            Ok(Some(Fallback { wanted: "durable names", got: "names as they are", because }))
        }
        synced => Ok(synced.map(|()| None)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File};
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
        let located = |name: &str| locate(None, &place(name)).unwrap();
        assert_eq!(located("link-to-link"), Located { path: place("file"), found: Found::File });
        assert_eq!(located("dangling"), Located { path: place("nothing"), found: Found::Nothing });
        assert_eq!(locate(None, folder.path()).unwrap().found, Found::Folder);
        assert_eq!(locate(None, Path::new("/dev/null")).unwrap().found, Found::Other);
        assert_eq!(locate(None, &place("loop")).unwrap_err().raw_os_error(), Some(libc::ELOOP));
    }

    #[test]
    fn what_has_no_name_behind_its_link_is_not_taken_for_nothing() {
        // W7: a file called "gone (deleted)" would be created.
        let folder = tempfile::tempdir().unwrap();
        let gone = File::create(folder.path().join("gone")).unwrap();
        fs::remove_file(folder.path().join("gone")).unwrap();
        let (pipe, _other_end) = io::pipe().unwrap();
        for number in [gone.as_raw_fd(), pipe.as_raw_fd()] {
            let link = PathBuf::from(format!("/proc/self/fd/{number}"));
            assert_eq!(locate(None, &link).unwrap().found, Found::Other);
        }
    }

    #[test]
    fn a_name_that_is_taken_is_replaced_only_when_that_was_said() {
        // W7
        let folder = tempfile::tempdir().unwrap();
        let (new, taken) = (folder.path().join("new"), folder.path().join("taken"));
        fs::write(&new, b"new").unwrap();
        fs::write(&taken, b"precious").unwrap();
        let rename = |replace| change(None, NameChange::Rename { from: &new, to: &taken, replace });
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
        let rename = |from: &str, to: &str| {
            let (from, to) = (place(from), place(to));
            let whole = |path| PlaceOfName::new(None, path);
            rename_without_the_flag(whole(&from), whole(&to))
        };
        for from in ["file", "folder"] {
            let error = rename(from, "taken").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            let to = format!("new-{from}");
            rename(from, &to).unwrap();
            assert!(place(&to).exists() && !place(from).exists());
        }
        assert_eq!(fs::read(place("new-folder/inside")).unwrap(), b"inside");
        assert_eq!(fs::read_dir(place("taken")).unwrap().count(), 0);
    }
}
