//! A folder created under a temporary name beside its place, which it takes once complete.

use super::{MODE_PRIVATE, moved};
use crate::engine::{folder_of, sync_file_system};
use crate::error::Tried;
use crate::metadata::Inherited;
use crate::staged::{beside, hold};
use crate::{Action, Engine, Error, device};
use std::fs::{self, DirBuilder, File, Permissions, ReadDir};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A folder being built. Until it is complete only this user may enter it, so that no other process
/// changes its contents.
#[derive(Debug)]
pub(super) struct StagedFolder {
    pub from: PathBuf,
    /// The folder's temporary path.
    pub temporary: PathBuf,
    /// Whether each file and folder in it is synced separately.
    pub syncs_each: bool,
    /// Opened before the first write: a background write error reaches all handles open at that
    /// time, but only one of those opened later (Linux 5.8).
    handle: File,
    place: PathBuf,
}

impl StagedFolder {
    /// Creates the folder that will become `place`.
    pub(super) fn new(from: &Path, place: PathBuf, durable: bool) -> Result<StagedFolder, Error> {
        let make = |path: &Path| {
            DirBuilder::new().mode(MODE_PRIVATE).create(path).tried(path, Action::Open)
        };
        let (temporary, ()) = beside(&place, make)?;
        let handle = File::open(&temporary).tried(&place, Action::Open)?;
        hold(handle.as_fd());
        // Without /proc the file system is unknown.
        let syncs_each =
            durable && !device::examine(&temporary).is_ok_and(|target| target.syncfs_flushes());
        Ok(StagedFolder { from: from.to_owned(), temporary, syncs_each, handle, place })
    }

    /// Syncs the contents, gives the folder its metadata, and renames it in one step. The metadata
    /// comes last, because the source's permissions may let other users change the contents.
    pub(super) fn put(
        &self,
        engine: &mut Engine,
        metadata: Option<Inherited>,
        durable: bool,
    ) -> Result<(), Error> {
        if durable && !self.syncs_each {
            sync_file_system(&self.handle).tried(&self.place, Action::Fsync)?;
        }
        if let Some((metadata, parts)) = metadata {
            metadata.give(self.handle.as_fd(), &self.temporary, parts)?;
        }
        engine.rename(&self.temporary, &self.place, false)?;
        if !durable {
            return Ok(());
        }
        match self.handle.sync_all() {
            // The file system has nothing to sync for a folder; the sync of its parent reports
            // that.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP)) => {
            }
            synced => synced.tried(&self.place, Action::Fsync)?,
        }
        engine.sync_folder(folder_of(&self.place))
    }

    /// Returns the final path of an entry being built at `path`.
    pub(super) fn told(&self, path: &Path) -> Option<PathBuf> {
        path.starts_with(&self.temporary).then(|| moved(path, &self.temporary, &self.place))
    }

    pub(super) fn abandon(self) {
        // Report the first error.
        let _ = remove(&self.temporary);
    }
}

/// Removes a private folder with its contents. Symbolic links are removed, never followed; folders
/// with final permissions are made private again.
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
