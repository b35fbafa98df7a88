//! Walks a tree in constant memory: a folder, its contents, its end.

use crate::error::{Action, Error, Tried};
use std::fs::{self, ReadDir};
use std::path::{Path, PathBuf};

/// The maximum nesting of folders. Each stays open while its contents are walked, and a process may
/// have 1024 open files by default (`getrlimit(2)`).
pub const FOLDERS_DEEP_MAX: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    /// A folder, followed by its contents and its end.
    Folder,
    File,
    /// A symbolic link, which is not followed.
    Link,
    /// A pipe, a socket, a device.
    Other,
    /// The end of a folder.
    End,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TreeStep {
    pub path: PathBuf,
    pub kind: EntryKind,
    /// The length of a file, in a measuring walk; else 0.
    pub len: u64,
}

/// A depth-first walk, in the file system's order of names.
pub(super) struct TreeWalk {
    open: Vec<(PathBuf, ReadDir)>,
    next: Option<PathBuf>,
    measures: bool,
}

impl TreeWalk {
    /// Starts at a folder, or at the target of a symbolic link.
    pub(super) fn of(folder: &Path) -> Result<TreeWalk, Error> {
        let metadata = fs::metadata(folder).tried(folder, Action::Examine)?;
        if !metadata.is_dir() {
            return Err(Error::refused(folder, "is not a folder"));
        }
        Ok(TreeWalk { open: Vec::new(), next: Some(folder.to_owned()), measures: false })
    }

    /// Also finds the lengths of files.
    pub(super) fn measuring(self) -> TreeWalk {
        TreeWalk { measures: true, ..self }
    }

    /// Returns the next step, or `None` after the end of the first folder.
    pub(super) fn next(&mut self) -> Result<Option<TreeStep>, Error> {
        if let Some(folder) = self.next.take() {
            if self.open.len() == FOLDERS_DEEP_MAX {
                let because = format!("lies in more than {FOLDERS_DEEP_MAX} folders");
                return Err(Error::refused(&folder, &because));
            }
            let entries = fs::read_dir(&folder).tried(&folder, Action::Open)?;
            self.open.push((folder.clone(), entries));
            return Ok(Some(TreeStep { path: folder, kind: EntryKind::Folder, len: 0 }));
        }
        let Some((folder, entries)) = self.open.last_mut() else {
            return Ok(None);
        };
        let Some(entry) = entries.next() else {
            let (path, _) = self.open.pop().expect("there was a last one");
            return Ok(Some(TreeStep { path, kind: EntryKind::End, len: 0 }));
        };
        let entry = entry.tried(folder, Action::Read)?;
        let path = entry.path();
        let kind = match entry.file_type().tried(&path, Action::Examine)? {
            kind if kind.is_dir() => {
                self.next = Some(path);
                return self.next();
            }
            kind if kind.is_file() => EntryKind::File,
            kind if kind.is_symlink() => EntryKind::Link,
            _ => EntryKind::Other,
        };
        let is_measured = self.measures && kind == EntryKind::File;
        // Relative to the folder's descriptor, which saves the path lookup.
        let len =
            if is_measured { entry.metadata().tried(&path, Action::Examine)?.len() } else { 0 };
        Ok(Some(TreeStep { path, kind, len }))
    }
}
