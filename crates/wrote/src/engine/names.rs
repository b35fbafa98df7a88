//! Looks up folders and file names, and changes them safely.

use super::Fallback;
use crate::error::{Action, Error, Tried};
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, Stat, StatxFlags, fsync, linkat,
    mkdirat, openat, readlinkat, renameat, renameat_with, statat, statx, syncfs, unlinkat,
};
use rustix::io::{Errno, retry_on_intr};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The default permissions of new files, less the umask.
const MODE_OF_FILES: u32 = 0o666;

/// A folder, which is held open if it is on the kernel's disk. Paths below its path are resolved
/// relative to it, even after a rename or a change of the working directory. Clones share the
/// descriptor.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// `None` for a folder that is known only by its path: it does not exist yet, or is on a
    /// simulated disk.
    held: Option<Arc<OwnedFd>>,
    /// The permissions of files created in the folder.
    mode: u32,
}

impl Folder {
    pub(crate) fn open(path: &Path) -> Result<Folder, Error> {
        let open = PlaceOfName::new(None, path).open(OFlags::DIRECTORY, Mode::empty());
        let held = Some(Arc::new(open.tried(path, Action::Examine)?.into()));
        Ok(Folder { held, ..Folder::named(path) })
    }

    /// Creates a folder that is known only by its path.
    pub(crate) fn named(path: &Path) -> Folder {
        Folder { path: path.to_owned(), held: None, mode: MODE_OF_FILES }
    }

    pub(crate) fn is_held(&self) -> bool {
        self.held.is_some()
    }

    /// Returns the same folder with other permissions for new files, less the umask.
    pub(crate) fn with_mode(self, mode: u32) -> Folder {
        Folder { mode, ..self }
    }

    /// Returns the path that the caller gave. Paths below it are resolved relative to the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the same folder under another path.
    pub(crate) fn known_as(&self, path: &Path) -> Folder {
        Folder { path: path.to_owned(), ..self.clone() }
    }

    /// Opens a file whose path is below the folder's path (`openat(2)`). If the folder is not held
    /// open, fails with `ENOENT`, because it contains no files.
    pub(crate) fn open_file(&self, path: &Path, flags: OFlags) -> io::Result<File> {
        if self.is_held() { open_within(Some(self), path, flags) } else { Err(Errno::NOENT.into()) }
    }

    /// Returns a path that refers to the folder whatever its current name; `None` if the folder is
    /// not held open. The path works only if `/proc` is mounted (`proc(5)`).
    pub(crate) fn proc_path(&self) -> Option<PathBuf> {
        let held = self.held.as_ref()?;
        Some(PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd())))
    }

    /// Returns whether the folder's path still refers to it.
    pub(crate) fn is_at_its_path(&self) -> io::Result<bool> {
        let Some(held) = &self.held else { return Ok(true) };
        Ok(PlaceOfName::new(None, &self.path).len_of(held)?.is_some())
    }
}

/// Opens a file. If its path is below the path of `within`, it is resolved relative to that folder.
pub(crate) fn open_within(within: Option<&Folder>, path: &Path, flags: OFlags) -> io::Result<File> {
    let place = PlaceOfName::new(within, path);
    place.open(flags, Mode::from_raw_mode(place.mode))
}

/// A name, and the folder in which the kernel looks it up.
#[derive(Clone, Copy)]
pub(super) struct PlaceOfName<'a> {
    pub folder: BorrowedFd<'a>,
    pub name: &'a Path,
    /// The permissions of a file that is created under the name.
    pub mode: u32,
}

impl<'a> PlaceOfName<'a> {
    /// Resolves a path relative to `within` if it is below that folder's path, and as usual
    /// otherwise.
    pub(super) fn new(within: Option<&'a Folder>, path: &'a Path) -> PlaceOfName<'a> {
        let below = within.and_then(|within| {
            Some((within.held.as_ref()?, path.strip_prefix(&within.path).ok()?, within.mode))
        });
        let (folder, name, mode) = match below {
            Some((held, name, mode)) => {
                let name = if name.as_os_str().is_empty() { Path::new(".") } else { name };
                (held.as_fd(), name, mode)
            }
            None => (CWD, path, MODE_OF_FILES),
        };
        PlaceOfName { folder, name, mode }
    }

    pub(super) fn open(self, flags: OFlags, mode: Mode) -> io::Result<File> {
        let open = || openat(self.folder, self.name, flags | OFlags::CLOEXEC, mode);
        Ok(retry_on_intr(open)?.into())
    }

    /// Returns the folder itself, if this is the path of a folder held open.
    pub(super) fn held(self) -> Option<BorrowedFd<'a>> {
        (self.name == Path::new(".") && self.folder.as_raw_fd() >= 0).then_some(self.folder)
    }

    pub(super) fn stat(self, flags: AtFlags) -> rustix::io::Result<Stat> {
        statat(self.folder, self.name, flags)
    }

    /// Returns the length of this file if the name refers to it. A failing disk returns an error
    /// for every name, which does not mean that the name has gone.
    pub(super) fn len_of(self, file: impl AsFd) -> io::Result<Option<u64>> {
        let (own, _) = identity(file.as_fd(), Path::new(""), AtFlags::EMPTY_PATH)?;
        match identity(self.folder, self.name, AtFlags::empty()) {
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(error.into()),
            Ok((named, len)) => Ok((own == named).then_some(len)),
        }
    }
}

/// Returns the device and inode, and the length. Queries nothing else: once a file's times have
/// been read, the next write updates them (multigrain timestamps, Linux 6.13). A log calls this
/// after each flush, so ext4 without a journal would otherwise write the inode with every flush.
fn identity(
    folder: BorrowedFd<'_>,
    name: &Path,
    flags: AtFlags,
) -> rustix::io::Result<((u32, u32, u64), u64)> {
    let found = statx(folder, name, flags, StatxFlags::INO | StatxFlags::SIZE)?;
    Ok(((found.stx_dev_major, found.stx_dev_minor, found.stx_ino), found.stx_size))
}

/// Returns whether both refer to the same file.
pub(super) fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

/// The maximum number of symbolic links followed (`path_resolution(7)`).
const LINKS_MAX: u32 = 40;

/// The destination of a write to a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Located {
    /// The name, with symbolic links in its last component followed. The file need not exist.
    pub path: PathBuf,
    /// The kind of entry with that name.
    pub found: Found,
}

/// The kind of entry with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Nothing,
    /// An ordinary file.
    File,
    Folder,
    /// A device, a pipe or a socket; or something without a name, reached through a link in
    /// `/proc`.
    Other,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum NameChange<'a> {
    /// Renames `from` to `to`. An existing `to` is replaced if `replace` is set; otherwise, it is
    /// an error.
    Rename { from: &'a Path, to: &'a Path, replace: bool },
    /// Removes the name, and the file with it unless it is open or has another name.
    Remove(&'a Path),
    /// Makes the names in the folder durable.
    SyncFolder(&'a Path),
}

// The functions below resolve a path relative to `within` if it is below that folder's path.

/// Follows symbolic links in the path's last component, like `open(2)`.
///
/// A link in `/proc/self/fd` may refer to a file even if the link's text is not a path: to a pipe,
/// or to a removed file (`proc(5)`). Such a file has no name that another could take over.
pub(super) fn locate(within: Option<&Folder>, named: &Path) -> io::Result<Located> {
    if named == Path::new("") {
        // `open(2)` also fails with this error. Otherwise, the current folder would be used.
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
            // The kernel decides whether the link may be followed. In a folder such as /tmp,
            // another user's link may not be (`fs.protected_symlinks`, proc(5): EACCES).
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
        // The target is relative to the link's folder; an absolute target replaces the whole path.
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
    // Compares bytes, because comparing paths would split them.
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

/// Exchanges two names atomically.
pub(crate) fn exchange(within: &Folder, one: &Path, other: &Path) -> io::Result<()> {
    let [one, other] = [one, other].map(|path| PlaceOfName::new(Some(within), path));
    renameat_with(one.folder, one.name, other.folder, other.name, RenameFlags::EXCHANGE)?;
    Ok(())
}

fn rename_to_new(from: PlaceOfName, to: PlaceOfName) -> io::Result<Option<Fallback>> {
    match renameat_with(from.folder, from.name, to.folder, to.name, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(None),
        // NFS, 9p, Ceph and most FUSE file systems do not support the flag.
        Err(errno @ (Errno::INVAL | Errno::NOSYS)) => {
            let got = rename_without_the_flag(from, to)?;
            let because = format!("renameat2: {}", io::Error::from(errno));
            Ok(Some(Fallback { wanted: "RENAME_NOREPLACE", got, because }))
        }
        Err(errno) => Err(errno.into()),
    }
}

/// Renames without replacing. A file is linked to the second name, which fails if that name exists,
/// and then loses its first name. A folder can have only one name (`link(2)`, EPERM): it replaces
/// an empty folder created for that purpose, unless another process has put something into that
/// folder (`rename(2)`, ENOTEMPTY).
fn rename_without_the_flag(from: PlaceOfName, to: PlaceOfName) -> io::Result<&'static str> {
    let stat = from.stat(AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        linkat(from.folder, from.name, to.folder, to.name, AtFlags::empty())?;
        unlinkat(from.folder, from.name, AtFlags::empty())?;
        return Ok("link and unlink");
    }
    mkdirat(to.folder, to.name, Mode::from_raw_mode(0o777))?;
    renameat(from.folder, from.name, to.folder, to.name).inspect_err(|_| {
        // This removes the folder only if it is still empty. An error here is ignored, because the
        // first error is reported.
        let _ = unlinkat(to.folder, to.name, AtFlags::REMOVEDIR);
    })?;
    Ok("rename onto an empty folder")
}

/// Makes all files and names of an open file's file system durable (`syncfs(2)`). The flush that
/// follows empties the device's cache again, because ext4 without a journal writes metadata last.
pub(super) fn sync_file_system(open: impl AsFd) -> io::Result<()> {
    syncfs(&open)?;
    Ok(fsync(open)?)
}

/// Syncs a folder. Some file systems do not need that and return EINVAL (`fsync(2)`).
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
    use std::fs;
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
    fn a_file_without_a_name_behind_its_link_is_not_taken_for_nothing() {
        // W7: otherwise, a file called "gone (deleted)" would be created.
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
    fn a_rename_without_flags_gives_files_and_folders_new_names_and_no_taken_ones() {
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

    #[test]
    fn paths_below_a_folder_lead_into_it_after_its_name_was_given_to_another() {
        let folder = tempfile::tempdir().unwrap();
        let (own, other) = (folder.path().join("own"), folder.path().join("other"));
        fs::create_dir(&own).unwrap();
        let held = Folder::open(&own).unwrap();
        fs::write(own.join("file"), b"own").unwrap();
        fs::rename(&own, &other).unwrap();
        fs::create_dir(&own).unwrap();
        assert!(!held.is_at_its_path().unwrap());
        let stat = |path: &Path| PlaceOfName::new(Some(&held), path).stat(AtFlags::empty());
        assert_eq!(stat(&own.join("file")).unwrap().st_size, 3);
        assert!(is_same(&stat(&own).unwrap(), &stat(&other).unwrap()));
        assert!(stat(&other.join("nothing")).is_err());
    }

    #[test]
    fn a_name_that_is_gone_leads_nowhere_and_one_that_cannot_be_examined_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = File::create(&path).unwrap();
        let leads =
            |path: &Path| PlaceOfName::new(None, path).len_of(&file).map(|len| len.is_some());
        assert!(leads(&path).unwrap());
        for gone in [folder.path().join("nothing"), path.join("below")] {
            assert!(!leads(&gone).unwrap());
        }
        let long = folder.path().join("a".repeat(4096));
        assert_eq!(leads(&long).unwrap_err().raw_os_error(), Some(libc::ENAMETOOLONG));
    }
}
