//! The cache folder of built programs: a folder for each, which comes whole, and goes when a newer one came.
//!
//! `CACHE/langs/ID-HASH` holds one program. It is made as `.draft-XXXXXX` beside it, and renamed when all of
//! it is there. Whoever makes or uses a folder holds a shared lock on it (flock(2)); only what nobody holds
//! is removed. Where a file system has no such locks, nothing is removed.

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

/// The folder within the cache.
const NAME: &str = "langs";
/// What the folder of a build begins with that is not whole yet.
const DRAFT: &str = ".draft-";
/// How many random letters and digits follow.
const DRAFT_RANDOM: usize = 6;
/// How often a folder is looked for, or its place, when others make and remove the same ones meanwhile.
const TRIES: u32 = 100;

/// The folder in which all programs are.
pub(super) struct Shelf {
    path: PathBuf,
}

/// A folder that is being filled. It is removed unless it is put on the shelf.
pub(super) struct Draft {
    folder: TempDir,
    in_use: InUse,
}

/// Keeps a built program's folder from being removed.
#[derive(Clone, Debug, Default)]
pub(crate) struct InUse(#[allow(dead_code, reason = "held, not read")] Option<Arc<OwnedFd>>);

/// It says nothing of what is held.
impl PartialEq for InUse {
    fn eq(&self, _: &InUse) -> bool {
        true
    }
}

impl Eq for InUse {}

impl Shelf {
    /// Opens it, and makes it where it is not there yet: for its owner alone.
    pub(super) fn open(cache: &Path) -> Result<Shelf, Error> {
        let cache = std::path::absolute(cache).map_err(|error| unusable(cache, &error))?;
        let path = cache.join(NAME);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|error| unusable(&path, &error))?;
        // Who owns the folder around it can put another one in its place.
        for folder in [&cache, &path] {
            let metadata = fs::metadata(folder).map_err(|error| unusable(folder, &error))?;
            refuse_others(folder, &metadata, geteuid().as_raw())?;
        }
        Ok(Shelf { path })
    }

    /// The folder of an earlier build, if there is one.
    pub(super) fn take(&self, id: &str, hash: u64) -> Option<(PathBuf, InUse)> {
        let path = self.place(id, hash);
        let in_use = hold(&path).ok()?;
        Some((path, in_use))
    }

    /// A new folder to build in.
    pub(super) fn draft(&self) -> Result<Draft, Error> {
        for _ in 0..TRIES {
            let folder = self.new_folder().map_err(|error| unusable(&self.path, &error))?;
            // Before it was held somebody may have taken it for one that nobody needs.
            if let Ok(in_use) = hold(folder.path()) {
                return Ok(Draft { folder, in_use });
            }
        }
        Err(self.taken_away())
    }

    /// Puts a draft in its place, on stable storage; what somebody else put there meanwhile is as good.
    pub(super) fn put(&self, draft: Draft, id: &str, hash: u64) -> Result<(PathBuf, InUse), Error> {
        let place = self.place(id, hash);
        let failed =
            |error| Error::Failed(format!("{}: can't be written: {error}", place.display()));
        sync_all(draft.path()).map_err(failed)?;
        for _ in 0..TRIES {
            match fs::rename(draft.path(), &place) {
                Ok(()) => {
                    // It has left the place from where it would be removed.
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

    /// Removes the other builds of `id`, and drafts that a killed run left, as far as nobody uses them. It is
    /// a tidying: what can't be removed stays.
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

    /// Removes a folder that nobody holds. It is gone from its place before its first file is.
    fn remove(&self, path: &Path) {
        let Ok(folder) = open_folder(path) else {
            return;
        };
        if flock(&folder, FlockOperation::NonBlockingLockExclusive).is_err() {
            return;
        }
        if let Ok(away) = self.new_folder() {
            // Dropping it removes what is in it.
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
        Error::Failed(format!("{shown}: somebody else removes what is built in it"))
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

/// Whether a folder is of our naming, for this language: `go-0123456789abcdef`.
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

/// Opens a folder, no link to one.
fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::RDONLY;
    Ok(openat(CWD, path, flags, Mode::empty())?)
}

/// Holds the folder at `path`, if it is there and nobody is removing it.
fn hold(path: &Path) -> io::Result<InUse> {
    let folder = open_folder(path)?;
    let held = flock(&folder, FlockOperation::NonBlockingLockShared);
    // Any other error is a file system without locks, where nobody removes anything.
    if held == Err(Errno::WOULDBLOCK) {
        return Err(Errno::WOULDBLOCK.into());
    }
    // What was opened may have been removed before it was held.
    let (held, there) = (fstat(&folder)?, fs::symlink_metadata(path)?);
    if (held.st_dev, held.st_ino) != (there.dev(), there.ino()) {
        return Err(ErrorKind::NotFound.into());
    }
    Ok(InUse(Some(Arc::new(folder))))
}

/// Whether a rename failed for a folder that is there already (rename(2) has both errors for it).
fn is_occupied(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty)
}

/// Flushes all that is in the folder, with the rest of its file system (syncfs(2), which tells of errors since
/// Linux 5.8): a name that came to its place must not be of a file that a power cut emptied. At once, for a
/// compiler may leave hundreds of files.
fn sync_all(folder: &Path) -> io::Result<()> {
    Ok(syncfs(open_folder(folder)?)?)
}

/// Refuses a folder in which anybody but `user` may put a program, for what lies in it is run: one of another
/// user's is also that of a home that sudo(8) left in the environment.
fn refuse_others(folder: &Path, metadata: &Metadata, user: u32) -> Result<(), Error> {
    let (shown, owner) = (folder.display(), metadata.uid());
    let refused = |because: String| Err(Error::Failed(format!("{shown}: {because}")));
    if owner != user {
        return refused(format!(
            "belongs to another user ({owner}), and programs are run from it: let XDG_CACHE_HOME name a \
             folder of your own"
        ));
    }
    if metadata.mode() & 0o022 != 0 {
        return refused(format!(
            "others may write in it, and programs are run from it: chmod go-w {shown}"
        ));
    }
    Ok(())
}

/// Why the folder of all programs can't be used.
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
