//! The cache of built programs. Each program has a folder, which is complete from the moment it
//! appears, and is removed when another build of its language is wanted.
//!
//! `CACHE/langs/ID-HASH` contains one program. A build fills `.draft-XXXXXX` next to it, and
//! finally renames this folder. Each process that uses the cache holds a shared lock on it
//! (flock(2)). A process removes builds only while no other process holds the lock. On a file
//! system without locks, nothing is removed.

use crate::scratch::not_made;
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, openat, syncfs};
use rustix::io::retry_on_intr;
use rustix::process::geteuid;
use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use wrote_result::Error;

const NAME: &str = "langs";
const DRAFT: &str = ".draft-";
/// The number of random characters that follow the prefix.
const DRAFT_RANDOM: usize = 6;

/// The cache. While it is open, no other process removes a program.
#[derive(Debug)]
pub(crate) struct Shelf {
    path: PathBuf,
    /// The open folder, which holds the lock.
    _folder: OwnedFd,
}

impl Shelf {
    /// Opens the cache folder, or creates it with access for its owner only. `wanted` lists the IDs
    /// and hashes of the wanted builds. If no other process has the cache open, removes what killed
    /// builds left, and any other builds of the wanted languages.
    pub(super) fn open(cache: &Path, wanted: &[(&str, u64)]) -> Result<Shelf, Error> {
        let cache = std::path::absolute(cache).map_err(|error| unusable(cache, &error))?;
        let path = cache.join(NAME);
        let failed = |error| unusable(&path, &error);
        DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(failed)?;
        // A folder's owner is able to replace the folders in it, so the parent folder is checked,
        // too.
        for folder in [&cache, &path] {
            let metadata = fs::metadata(folder).map_err(|error| unusable(folder, &error))?;
            refuse_others(folder, &metadata, geteuid().as_raw())?;
        }
        let folder = open_folder(&path).map_err(failed)?;
        if flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
            remove_old(&path, wanted);
        }
        // Until this process holds the shared lock, another process may remove builds, but this
        // process has not used any yet. Without locks, no process removes anything.
        let _ = retry_on_intr(|| flock(&folder, FlockOperation::LockShared));
        Ok(Shelf { path, _folder: folder })
    }

    /// Returns the folder of a program that was built before; `None` if there is none.
    pub(super) fn take(&self, id: &str, hash: u64) -> Option<PathBuf> {
        let path = self.path.join(name(id, hash));
        path.symlink_metadata().is_ok_and(|found| found.is_dir()).then_some(path)
    }

    /// Returns a new folder for a build. It is removed on drop unless [`Shelf::put`] has moved it.
    pub(super) fn draft(&self) -> Result<TempDir, Error> {
        new_folder(&self.path).map_err(|error| unusable(&self.path, &error))
    }

    /// Moves a draft to its final path, durably, and returns this path. If another process has put
    /// the same build there, keeps that build.
    pub(super) fn put(&self, draft: TempDir, id: &str, hash: u64) -> Result<PathBuf, Error> {
        let place = self.path.join(name(id, hash));
        let failed =
            |error| Error::Failed(format!("{}: can't be written: {error}", place.display()));
        sync_all(draft.path()).map_err(failed)?;
        match fs::rename(draft.path(), &place) {
            // The rename has moved the folder away from its temporary name.
            Ok(()) => drop(draft.keep()),
            // rename(2) can return either error for an existing folder.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty
                ) => {}
            Err(error) => return Err(failed(error)),
        }
        Ok(place)
    }
}

/// Removes drafts, and builds of the wanted languages with a different hash. Ignores failures.
fn remove_old(shelf: &Path, wanted: &[(&str, u64)]) {
    let Ok(entries) = fs::read_dir(shelf) else { return };
    for entry in entries.flatten() {
        let found = entry.file_name();
        let found = found.to_string_lossy();
        let is_old = |(id, hash): &(&str, u64)| is_build_of(id, &found) && found != name(id, *hash);
        let is_removed = is_draft(&found) || wanted.iter().any(is_old);
        // A symbolic link to a folder is not a folder.
        if is_removed
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Ok(away) = new_folder(shelf)
        {
            // The folder is moved away first, so that a partly removed folder is never taken for a
            // build. When `away` is dropped, it is removed with its contents.
            let _ = fs::rename(entry.path(), away.path().join("old"));
        }
    }
}

fn new_folder(shelf: &Path) -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(DRAFT).rand_bytes(DRAFT_RANDOM);
    builder.permissions(Permissions::from_mode(0o700)).tempdir_in(shelf)
}

fn name(id: &str, hash: u64) -> String {
    format!("{id}-{hash:016x}")
}

/// Returns whether a folder has the name of a build of `id`: `go-0123456789abcdef`.
fn is_build_of(id: &str, name: &str) -> bool {
    let hash = name.strip_prefix(id).and_then(|rest| rest.strip_prefix('-'));
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    hash.is_some_and(|hash| hash.len() == 16 && hash.bytes().all(is_digit))
}

fn is_draft(name: &str) -> bool {
    let random = name.strip_prefix(DRAFT);
    random.is_some_and(|random| {
        random.len() == DRAFT_RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Opens a folder without following symbolic links.
fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}

/// Flushes the file system of the folder (syncfs(2), which reports errors since Linux 5.8), so that
/// no file is empty after a power loss. One call covers the hundreds of files that some compilers
/// produce.
fn sync_all(folder: &Path) -> io::Result<()> {
    Ok(syncfs(open_folder(folder)?)?)
}

/// Refuses a folder into which another user may put a program, because programs in it are run.
/// sudo(8) may leave another user's home in the environment.
fn refuse_others(folder: &Path, metadata: &Metadata, user: u32) -> Result<(), Error> {
    let (shown, owner) = (folder.display(), metadata.uid());
    let refused = |because: String| Err(Error::Failed(format!("{shown}: {because}")));
    if owner != user {
        return refused(format!(
            "belongs to another user ({owner}), and programs are run from it: set XDG_CACHE_HOME \
             to a folder of your own"
        ));
    }
    if metadata.mode() & 0o022 != 0 {
        return refused(format!(
            "others may write in it, and programs are run from it: chmod go-w {shown}"
        ));
    }
    Ok(())
}

/// Returns the error for a cache folder that can't be used.
fn unusable(path: &Path, error: &io::Error) -> Error {
    Error::Failed(format!("{}; programs are built in it", not_made(path, error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_anybody_elses_is_refused_in_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let told = |mode, user| {
            fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
            let metadata = fs::metadata(folder.path()).unwrap();
            let refused = refuse_others(folder.path(), &metadata, user).err()?.to_string();
            assert_eq!(refused.lines().count(), 1);
            Some(refused)
        };
        let user = geteuid().as_raw();
        assert_eq!(told(0o755, user), None);
        assert!(told(0o700, user ^ 1).unwrap().contains("another user"));
        assert!(told(0o770, user).unwrap().contains("others may write in it"));
    }
}
