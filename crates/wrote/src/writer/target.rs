//! The file that a `Writer` writes: at its path, staged for a later rename, or passed by the
//! caller.

use crate::engine::{Found, Located, folder_of};
use crate::error::Tried;
use crate::metadata::{Inherited, mode_at_first};
use crate::save::find;
use crate::staged::{StagedFile, complete};
use crate::{Action, Engine, Error, FileId, FileOptions};
use rustix::fs::{OFlags, fcntl_getfl, fstat};
use std::fs::File;
use std::io::Seek;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(super) struct Target {
    pub file: FileId,
    /// The path that the caller gave, for errors.
    pub path: PathBuf,
    /// The folder that contains the file's name. The path is absolute because the process may
    /// change its working directory (`chdir(2)`). The engine holds the folder open, so renaming it
    /// does not matter. `None` if the file has no name yet, or none at all, so that syncing a
    /// folder would not make it more durable.
    pub folder: Option<PathBuf>,
    /// The offset at which writes begin; `None` for the end of the file.
    pub begin: Option<u64>,
    pub replacement: Option<Replacement>,
    /// The file that the caller opened. Its locks are held until it is closed.
    pub given: Option<File>,
    /// Whether this target created the file at its path.
    pub is_new: bool,
}

impl Target {
    /// Opens or creates the file.
    pub(super) fn open(
        engine: &mut Engine,
        path: &Path,
        options: &FileOptions,
    ) -> Result<Target, Error> {
        // The sync must reach the file's own folder, not the folder of a link to it.
        let Located { path, found } = engine.locate(path)?;
        if found == Found::Other {
            return Err(not_ordinary(&path));
        }
        let folder = absolute_folder(&path)?;
        engine.hold_folder(&folder);
        let (file, folder) = (engine.open_file(&path, options)?, Some(folder));
        let is_new = found == Found::Nothing;
        Ok(Target { file, path, folder, begin: None, replacement: None, given: None, is_new })
    }

    /// Creates a file next to `path`, to be renamed to `path` when it is finished.
    pub(super) fn stage(
        engine: &mut Engine,
        path: &Path,
        replace: bool,
        options: &FileOptions,
    ) -> Result<Target, Error> {
        let (place, old) = find(engine, path, replace).map_err(|error| error.about(path))?;
        let has_own_mode = options.mode.is_some();
        // The old file's permissions are set when the content is complete and has the old owner.
        let mode = options.mode.or(mode_at_first(old.as_ref()));
        let place = std::path::absolute(&place).tried(path, Action::Examine)?;
        engine.hold_folder(folder_of(&place));
        let staged = StagedFile::new(engine, &place, replace, &options.mode(mode))
            .map_err(|error| error.renamed(&place, path))?;
        let file = staged.file;
        engine.set_path(file, path);
        let new = engine.descriptor(file).and_then(|new| fstat(new).ok());
        let old = match (old, new) {
            (Some((old, parts)), Some(new)) if has_own_mode => {
                Some((old.with_mode(new.st_mode), parts))
            }
            (old, _) => old,
        };
        let replacement = Some(Replacement { staged, old });
        let path = path.to_owned();
        let (begin, given, is_new) = (None, None, false);
        Ok(Target { file, path, folder: None, begin, replacement, given, is_new })
    }

    /// Reopens a file that the caller opened, to write from its current position or to append to
    /// it.
    pub(super) fn give(
        engine: &mut Engine,
        given: File,
        append: bool,
        options: &FileOptions,
    ) -> Result<Target, Error> {
        // The link leads to the open file, even if the file no longer has a name (`proc(5)`).
        let link = PathBuf::from(format!("/proc/self/fd/{}", given.as_raw_fd()));
        let named = std::fs::read_link(&link).ok();
        let path = named.clone().unwrap_or_else(|| link.clone());
        let flags = fcntl_getfl(&given).tried(&path, Action::Examine)?;
        if flags & OFlags::RWMODE == OFlags::RDONLY {
            let because = "is open for reading only; open it for writing";
            return Err(Error::refused(&path, because));
        }
        let metadata = given.metadata().tried(&path, Action::Examine)?;
        if !metadata.is_file() {
            return Err(not_ordinary(&path));
        }
        let is_same = |path: &Path| {
            std::fs::metadata(path)
                .is_ok_and(|at| (at.dev(), at.ino()) == (metadata.dev(), metadata.ino()))
        };
        let folder = match named.filter(|path| is_same(path)) {
            Some(path) => Some(absolute_folder(&path)?),
            None => None,
        };
        if let Some(folder) = &folder {
            engine.hold_folder(folder);
        }
        let place = (&given).stream_position().tried(&path, Action::Examine)?;
        let file = engine.open_file(&link, options).map_err(|error| error.about(&path))?;
        engine.set_path(file, &path);
        let begin = (!append).then_some(place);
        let (given, is_new) = (Some(given), false);
        Ok(Target { file, path, folder, begin, replacement: None, given, is_new })
    }
}

fn not_ordinary(path: &Path) -> Error {
    Error::refused(path, "is not an ordinary file; a Writer writes only those")
}

fn absolute_folder(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(folder_of(path)).tried(path, Action::Examine)
}

/// A staged file, and the metadata of the file that it replaces.
#[derive(Debug)]
pub(super) struct Replacement {
    staged: StagedFile,
    old: Option<Inherited>,
}

impl Replacement {
    /// Gives the file the metadata of the old one. If `durable`, makes all of it survive power
    /// loss. Nothing may be in flight, and the length must be final.
    pub(super) fn complete(&self, engine: &mut Engine, durable: bool) -> Result<(), Error> {
        complete(engine, self.staged.file, self.old.as_ref(), durable)
    }

    /// Closes the file and atomically gives it its final name.
    pub(super) fn put(self, engine: &mut Engine, durable: bool) -> Result<(), Error> {
        self.staged.put(engine, durable)
    }

    /// Closes the file and removes it.
    pub(super) fn discard(self, engine: &mut Engine) {
        self.staged.abandon(engine);
    }
}
