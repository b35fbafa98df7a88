//! The cache of built programs: one folder each, complete when it appears, removed when a newer
//! build appears.
//!
//! `CACHE/langs/ID-HASH` holds one program. A build fills `.draft-XXXXXX` beside it and renames it
//! at the end. A process that fills or uses a folder holds a shared lock on it (flock(2)); only
//! unlocked folders are removed. On a file system without locks nothing is removed.

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, flock, fstat, openat, syncfs};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use wrote_result::Error;

const NAME: &str = "langs";
const DRAFT: &str = ".draft-";
/// The number of random characters after the prefix.
const DRAFT_RANDOM: usize = 6;
/// The number of attempts while other processes create and remove the same folders.
const TRIES: u32 = 100;

pub(super) struct Shelf {
    path: PathBuf,
}

/// A folder being filled. Removed on drop unless it was moved to its place.
pub(super) struct Draft {
    folder: TempDir,
    in_use: InUse,
}

/// Keeps a built program's folder from being removed.
#[derive(Clone, Debug, Default)]
pub(crate) struct InUse(#[allow(dead_code, reason = "held, not read")] Option<Arc<OwnedFd>>);

/// Locks don't count for a program's identity.
impl PartialEq for InUse {
    fn eq(&self, _: &InUse) -> bool {
        true
    }
}

impl Eq for InUse {}

impl Shelf {
    /// Opens the folder, or creates it with access for its owner only.
    pub(super) fn open(cache: &Path) -> Result<Shelf, Error> {
        let cache = std::path::absolute(cache).map_err(|error| unusable(cache, &error))?;
        let path = cache.join(NAME);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|error| unusable(&path, &error))?;
        // The owner of the parent folder can replace it.
        for folder in [&cache, &path] {
            let metadata = fs::metadata(folder).map_err(|error| unusable(folder, &error))?;
            refuse_others(folder, &metadata, geteuid().as_raw())?;
        }
        Ok(Shelf { path })
    }

    pub(super) fn take(&self, id: &str, hash: u64) -> Option<(PathBuf, InUse)> {
        let path = self.place(id, hash);
        let in_use = hold(&path).ok()?;
        Some((path, in_use))
    }

    pub(super) fn draft(&self) -> Result<Draft, Error> {
        for _ in 0..TRIES {
            let folder = self.new_folder().map_err(|error| unusable(&self.path, &error))?;
            // Before it was locked, another process may have removed it as unused.
            if let Ok(in_use) = hold(folder.path()) {
                return Ok(Draft { folder, in_use });
            }
        }
        Err(self.taken_away())
    }

    /// Moves a draft to its place, durably. If another process has put the same build there, uses
    /// that.
    pub(super) fn put(&self, draft: Draft, id: &str, hash: u64) -> Result<(PathBuf, InUse), Error> {
        let place = self.place(id, hash);
        let failed =
            |error| Error::Failed(format!("{}: can't be written: {error}", place.display()));
        sync_all(draft.path()).map_err(failed)?;
        for _ in 0..TRIES {
            match fs::rename(draft.path(), &place) {
                Ok(()) => {
                    // The rename has moved it from its temporary name.
                    let _ = draft.folder.keep();
                    return Ok((place, draft.in_use));
                }
                Err(error) if is_occupied(&error) => {}
                Err(error) => return Err(failed(error)),
            }
            if let Some(taken) = self.take(id, hash) {
                return Ok(taken);
            }
        }
        Err(self.taken_away())
    }

    /// Removes unlocked older builds of `id`, and drafts of killed runs. Ignores failures.
    pub(super) fn remove_others(&self, id: &str, hash: u64) {
        let Ok(entries) = fs::read_dir(&self.path) else {
            return;
        };
        let kept = name(id, hash);
        for entry in entries.flatten() {
            let other = entry.file_name();
            let Some(other) = other.to_str().filter(|other| *other != kept) else {
                continue;
            };
            if is_build_of(id, other) || is_draft(other) {
                self.remove(&self.path.join(other));
            }
        }
    }

    /// Removes an unlocked folder, moving it away before deleting its files.
    fn remove(&self, path: &Path) {
        let Ok(folder) = open_folder(path) else {
            return;
        };
        if flock(&folder, FlockOperation::NonBlockingLockExclusive).is_err() {
            return;
        }
        if let Ok(away) = self.new_folder() {
            // The drop removes it with its contents.
            let _ = fs::rename(path, away.path().join("old"));
        }
    }

    fn new_folder(&self) -> io::Result<TempDir> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(DRAFT).rand_bytes(DRAFT_RANDOM);
        builder.permissions(Permissions::from_mode(0o700)).tempdir_in(&self.path)
    }

    fn place(&self, id: &str, hash: u64) -> PathBuf {
        self.path.join(name(id, hash))
    }

    fn taken_away(&self) -> Error {
        let shown = self.path.display();
        Error::Failed(format!("{shown}: another process removes its contents"))
    }
}

impl Draft {
    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn name(id: &str, hash: u64) -> String {
    format!("{id}-{hash:016x}")
}

/// Returns whether a folder is named like a build of `id`: `go-0123456789abcdef`.
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

/// Locks the folder at `path`, unless it is absent or being removed.
fn hold(path: &Path) -> io::Result<InUse> {
    let folder = open_folder(path)?;
    let held = flock(&folder, FlockOperation::NonBlockingLockShared);
    // Any other error comes from a file system without locks, where no folder is removed.
    if held == Err(Errno::WOULDBLOCK) {
        return Err(Errno::WOULDBLOCK.into());
    }
    // The opened folder may have been removed before it was locked.
    let (held, there) = (fstat(&folder)?, fs::symlink_metadata(path)?);
    if (held.st_dev, held.st_ino) != (there.dev(), there.ino()) {
        return Err(ErrorKind::NotFound.into());
    }
    Ok(InUse(Some(Arc::new(folder))))
}

/// Returns whether a rename failed because its target exists (rename(2) has two such errors).
fn is_occupied(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty)
}

/// Flushes the file system of the folder (syncfs(2), which reports errors since Linux 5.8), so that
/// no file is empty after a power loss. Some compilers produce hundreds of files, which one call
/// covers.
fn sync_all(folder: &Path) -> io::Result<()> {
    Ok(syncfs(open_folder(folder)?)?)
}

/// Refuses a folder in which another user may put a program, because its programs are run. sudo(8)
/// may leave another user's home in the environment.
fn refuse_others(folder: &Path, metadata: &Metadata, user: u32) -> Result<(), Error> {
    let (shown, owner) = (folder.display(), metadata.uid());
    let refused = |because: String| Err(Error::Failed(format!("{shown}: {because}")));
    if owner != user {
        return refused(format!(
            "belongs to another user ({owner}), and programs are run from it: let XDG_CACHE_HOME \
             name a folder of your own"
        ));
    }
    if metadata.mode() & 0o022 != 0 {
        return refused(format!(
            "others may write in it, and programs are run from it: chmod go-w {shown}"
        ));
    }
    Ok(())
}

/// Returns the error that the cache folder can't be used.
fn unusable(path: &Path, error: &io::Error) -> Error {
    let because = match error.kind() {
        ErrorKind::PermissionDenied => "is not writable for this user".into(),
        ErrorKind::ReadOnlyFilesystem => "is on a read-only file system".into(),
        ErrorKind::StorageFull => "is on a full disk".into(),
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => "a part of it is a file".into(),
        _ => format!("can't be made: {error}"),
    };
    Error::Failed(format!("{}: {because}; programs are built in it", path.display()))
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
