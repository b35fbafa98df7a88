//! A folder that is made beside its place under another name, and takes the place when it is whole.

use super::{FOLDER_PARTS, MODE_PRIVATE, moved};
use crate::engine::folder_of;
use crate::error::Tried;
use crate::metadata::Metadata;
use crate::staged::temporary_path;
use crate::{Action, Engine, Error, device};
use rustix::fs::syncfs;
use std::fs::{self, DirBuilder, File, Permissions, ReadDir};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// File systems of which it is known that `syncfs(2)` ends with a flush of the device's cache: it
/// commits their journal, transaction or checkpoint. Not of ext2, which flushes only for `fsync(2)`,
/// nor of FUSE, whose server is not asked.
const SYNCFS_FLUSHES: [&str; 4] = ["btrfs", "ext4", "f2fs", "xfs"];

/// A folder on its way to its place. Until then it is this user's alone, so that what is in it is
/// what this process has put there.
#[derive(Debug)]
pub(super) struct StagedFolder {
    /// What it is a copy of.
    pub from: PathBuf,
    /// Where it is until it is whole.
    pub temporary: PathBuf,
    /// Each file and folder in it has to be synced by itself.
    pub syncs_each: bool,
    /// Open from before anything was written: what fails to be written in the background is told to who
    /// had the file system open then, and once only to who comes later (Linux 5.8).
    handle: File,
    place: PathBuf,
}

impl StagedFolder {
    /// Makes the folder, which is to be `place` when it is whole.
    pub(super) fn new(from: &Path, place: PathBuf, durable: bool) -> Result<StagedFolder, Error> {
        let make = |name: &Path| DirBuilder::new().mode(MODE_PRIVATE).create(name);
        let (temporary, ()) = beside(&place, make).tried(&place, Action::Open)?;
        let handle = File::open(&temporary).tried(&place, Action::Open)?;
        // Without /proc nobody knows what file system it is.
        let flushes = |path| {
            device::examine(path)
                .is_ok_and(|target| SYNCFS_FLUSHES.contains(&target.filesystem.as_str()))
        };
        let syncs_each = durable && !flushes(&temporary);
        Ok(StagedFolder { from: from.to_owned(), temporary, syncs_each, handle, place })
    }

    /// Gives the folder its place, in one step, after what is in it; and just before that what else it
    /// has, since by the permissions of its source others may be allowed to change what is in it.
    pub(super) fn put(
        &self,
        engine: &mut Engine,
        metadata: &Metadata,
        durable: bool,
    ) -> Result<(), Error> {
        if durable && !self.syncs_each {
            syncfs(&self.handle).tried(&self.place, Action::Fsync)?;
        }
        metadata.give(self.handle.as_fd(), &self.temporary, FOLDER_PARTS)?;
        engine.rename(&self.temporary, &self.place, false)?;
        if !durable {
            return Ok(());
        }
        match self.handle.sync_all() {
            // A file system that has nothing to sync of a folder: told of the one that holds it.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP)) => {
            }
            synced => synced.tried(&self.place, Action::Fsync)?,
        }
        engine.sync_folder(folder_of(&self.place))
    }

    /// The place of what is being built at `path`.
    pub(super) fn told(&self, path: &Path) -> Option<PathBuf> {
        path.starts_with(&self.temporary).then(|| moved(path, &self.temporary, &self.place))
    }

    /// Removes the folder with all that is in it.
    pub(super) fn abandon(self) {
        // Called because of an error already, which is the one to tell of.
        let _ = remove(&self.temporary);
    }
}

/// Makes something beside `place`, under a name that nobody else makes.
pub(super) fn beside<T>(
    place: &Path,
    make: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(PathBuf, T)> {
    loop {
        let temporary = temporary_path(place);
        match make(&temporary) {
            Ok(made) => return Ok((temporary, made)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Removes a folder that nobody else could put anything into. Symbolic links are removed, never
/// followed; folders that had their permissions already are opened again.
fn remove(folder: &Path) -> io::Result<()> {
    let mut open: Vec<(PathBuf, ReadDir)> = vec![enter(folder.to_owned())?];
    while let Some((_, entries)) = open.last_mut() {
        match entries.next().transpose()? {
            Some(entry) if entry.file_type()?.is_dir() => open.push(enter(entry.path())?),
            Some(entry) => fs::remove_file(entry.path())?,
            None => {
                let (empty, _) = open.pop().expect("there was a last one");
                fs::remove_dir(empty)?;
            }
        }
    }
    Ok(())
}

fn enter(folder: PathBuf) -> io::Result<(PathBuf, ReadDir)> {
    fs::set_permissions(&folder, Permissions::from_mode(MODE_PRIVATE))?;
    let entries = fs::read_dir(&folder)?;
    Ok((folder, entries))
}
