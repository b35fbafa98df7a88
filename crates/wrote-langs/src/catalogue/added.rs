//! Languages in folders of the user's own.

use super::{Entry, is_left_out};
use crate::manifest::{FILE_NAME, is_id};
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use wrote_result::Error;

/// The limit of a folder's size: a larger one was named by mistake.
const SIZE_BYTES_MAX: u64 = 4 << 20;
const FILES_MAX: usize = 1000;

/// Reads the language in `folder`, whose name is its id.
///
/// # Errors
///
/// [`Error::Usage`], one line, where it holds no language, or a file that no program needs;
/// [`Error::Failed`] where it cannot be read.
pub(super) fn read(folder: &Path) -> Result<Entry, Error> {
    let real = folder.canonicalize().map_err(|error| unreadable(folder, &error))?;
    if !real.is_dir() {
        return Err(refused(folder, "is no folder; give the one that holds a language"));
    }
    let origin = folder.join(FILE_NAME).display().to_string();
    match fs::symlink_metadata(real.join(FILE_NAME)) {
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(refused(folder, "holds no manifest.toml, and so no language"));
        }
        Err(error) => return Err(unreadable(&folder.join(FILE_NAME), &error)),
    }
    let id = real.file_name().and_then(|name| name.to_str()).filter(|name| is_id(name));
    let Some(id) = id else {
        let because = "its name is to be the language's id, of small letters, digits and hyphens";
        return Err(refused(folder, because));
    };
    let mut reader = Reader { shown: folder, root: &real, files: Vec::new(), size_bytes: 0 };
    reader.read_folder(Path::new(""))?;
    Entry::new(id.to_owned(), reader.files, &origin)
}

struct Reader<'a> {
    /// The folder as the user named it.
    shown: &'a Path,
    root: &'a Path,
    files: Vec<(PathBuf, Vec<u8>)>,
    size_bytes: u64,
}

impl Reader<'_> {
    fn read_folder(&mut self, within: &Path) -> Result<(), Error> {
        let failed = |error| unreadable(&self.shown.join(within), &error);
        let entries = fs::read_dir(self.root.join(within)).map_err(failed)?;
        let names: io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.file_name())).collect();
        for name in names.map_err(failed)? {
            let path = within.join(name);
            if !is_left_out(&path) {
                self.read_entry(&path)?;
            }
        }
        Ok(())
    }

    fn read_entry(&mut self, path: &Path) -> Result<(), Error> {
        let shown = self.shown.join(path);
        let metadata = fs::symlink_metadata(self.root.join(path));
        let metadata = metadata.map_err(|error| unreadable(&shown, &error))?;
        if metadata.is_dir() {
            return self.read_folder(path);
        }
        if !metadata.is_file() {
            // A link may lead anywhere, and its file is outside the folder that is copied.
            return Err(refused(&shown, "is no regular file; a language's folder holds no others"));
        }
        let text = self.read_file(path, &metadata)?;
        self.files.push((path.to_owned(), text));
        if self.files.len() > FILES_MAX {
            return Err(self.too_large(&format!("more than {FILES_MAX} files")));
        }
        Ok(())
    }

    fn read_file(&mut self, path: &Path, metadata: &Metadata) -> Result<Vec<u8>, Error> {
        let left = SIZE_BYTES_MAX - self.size_bytes;
        let mut text = Vec::new();
        if metadata.len() <= left {
            let file = File::open(self.root.join(path));
            // The file may grow meanwhile.
            let read = file.and_then(|file| file.take(left + 1).read_to_end(&mut text));
            read.map_err(|error| unreadable(&self.shown.join(path), &error))?;
        }
        self.size_bytes += metadata.len().max(text.len() as u64);
        if self.size_bytes > SIZE_BYTES_MAX {
            return Err(self.too_large("more than 4 MiB"));
        }
        Ok(text)
    }

    fn too_large(&self, what: &str) -> Error {
        refused(self.shown, &format!("holds {what}: is it the folder of a language?"))
    }
}

fn refused(path: &Path, because: &str) -> Error {
    Error::Usage(format!("{}: {because}", path.display()))
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    let shown = path.display();
    match error.kind() {
        ErrorKind::NotFound => Error::Usage(format!("{shown}: does not exist")),
        ErrorKind::NotADirectory => Error::Usage(format!("{shown}: a part of it is a file")),
        _ => Error::Failed(format!("{shown}: can't be read: {error}")),
    }
}
