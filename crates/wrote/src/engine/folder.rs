//! `Folder`: an open folder that stays the same even if its name changes.

use crate::error::{Action, Error, Tried};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Stat, StatxFlags, openat, statat, statx};
use rustix::io::{Errno, retry_on_intr};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The default permissions of new files, minus the umask.
const MODE_OF_FILES: u32 = 0o666;

/// A folder held open. Paths below its path are resolved relative to it, even after a rename or a
/// change of the working directory. Clones share the descriptor.
#[derive(Clone, Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    held: Arc<OwnedFd>,
    /// The permissions of files created in it.
    mode: u32,
}

impl Folder {
    pub(crate) fn open(path: &Path) -> Result<Folder, Error> {
        let open = PlaceOfName::new(None, path).open(OFlags::DIRECTORY, Mode::empty());
        let held = Arc::new(open.tried(path, Action::Examine)?.into());
        Ok(Folder { path: path.to_owned(), held, mode: MODE_OF_FILES })
    }

    /// Returns the same folder with other permissions for new files, minus the umask.
    pub(crate) fn with_mode(self, mode: u32) -> Folder {
        Folder { mode, ..self }
    }

    /// Returns the path that the user gave; paths below it are resolved relative to the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the same folder under another path.
    pub(crate) fn known_as(&self, path: &Path) -> Folder {
        Folder { path: path.to_owned(), ..self.clone() }
    }

    /// Opens a file whose path is below its own (`openat(2)`).
    pub(crate) fn open_file(&self, path: &Path, flags: OFlags) -> io::Result<File> {
        open_within(Some(self), path, flags)
    }

    /// Returns a path that refers to it under any name, if `/proc` is mounted (`proc(5)`).
    pub(crate) fn proc_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.held.as_raw_fd()))
    }

    /// Returns whether its path still refers to it.
    pub(crate) fn is_at_its_path(&self) -> io::Result<bool> {
        PlaceOfName::new(None, &self.path).leads_to(&self.held)
    }
}

/// Opens a file; a path below `within`'s is resolved relative to it.
pub(crate) fn open_within(within: Option<&Folder>, path: &Path, flags: OFlags) -> io::Result<File> {
    let place = PlaceOfName::new(within, path);
    place.open(flags, Mode::from_raw_mode(place.mode))
}

/// A name, and the folder in which the kernel looks it up.
#[derive(Clone, Copy)]
pub(super) struct PlaceOfName<'a> {
    pub folder: BorrowedFd<'a>,
    pub name: &'a Path,
    /// The permissions of a file created there.
    pub mode: u32,
}

impl<'a> PlaceOfName<'a> {
    /// Resolves a path below `within`'s relative to it, and any other as usual.
    pub(super) fn new(within: Option<&'a Folder>, path: &'a Path) -> PlaceOfName<'a> {
        let below = within.and_then(|within| Some((within, path.strip_prefix(&within.path).ok()?)));
        let (folder, name, mode) = match below {
            Some((within, name)) => {
                let name = if name.as_os_str().is_empty() { Path::new(".") } else { name };
                (within.held.as_fd(), name, within.mode)
            }
            None => (CWD, path, MODE_OF_FILES),
        };
        PlaceOfName { folder, name, mode }
    }

    pub(super) fn open(self, flags: OFlags, mode: Mode) -> io::Result<File> {
        let open = || openat(self.folder, self.name, flags | OFlags::CLOEXEC, mode);
        Ok(retry_on_intr(open)?.into())
    }

    /// Returns the folder itself, if it is held under that path.
    pub(super) fn held(self) -> Option<BorrowedFd<'a>> {
        (self.name == Path::new(".") && self.folder.as_raw_fd() >= 0).then_some(self.folder)
    }

    pub(super) fn stat(self, flags: AtFlags) -> rustix::io::Result<Stat> {
        statat(self.folder, self.name, flags)
    }

    /// Returns whether the name refers to this file. A failing disk gives an error for each name,
    /// which does not mean that the name is gone.
    pub(super) fn leads_to(self, file: impl AsFd) -> io::Result<bool> {
        let own = identity(file.as_fd(), Path::new(""), AtFlags::EMPTY_PATH)?;
        match identity(self.folder, self.name, AtFlags::empty()) {
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
            named => Ok(own == named?),
        }
    }
}

/// Returns device and inode, and queries nothing else: after a look at a file's times, the first
/// write updates them (multigrain timestamps, Linux 6.13). A log checks after each flush, and ext4
/// without a journal would then write the inode with each flush.
fn identity(
    folder: BorrowedFd<'_>,
    name: &Path,
    flags: AtFlags,
) -> rustix::io::Result<(u32, u32, u64)> {
    let found = statx(folder, name, flags, StatxFlags::INO)?;
    Ok((found.stx_dev_major, found.stx_dev_minor, found.stx_ino))
}

/// Returns whether both refer to one file.
pub(super) fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

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
        let leads = |path: &Path| PlaceOfName::new(None, path).leads_to(&file);
        assert!(leads(&path).unwrap());
        for gone in [folder.path().join("nothing"), path.join("below")] {
            assert!(!leads(&gone).unwrap());
        }
        let long = folder.path().join("a".repeat(4096));
        assert_eq!(leads(&long).unwrap_err().raw_os_error(), Some(libc::ENAMETOOLONG));
    }
}
