//! A file that is made beside its place under another name, and takes the place when it is whole.

use crate::engine::folder_of;
use crate::{Engine, Error, FileId, FileOptions};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Permissions of a file while nobody but its owner may see it.
pub(crate) const MODE_PRIVATE: u32 = 0o600;

/// Bytes of a name that are taken over into the temporary one; a name has at most 255 (`NAME_MAX`).
const NAME_BYTES_MAX: usize = 200;

/// A file on its way to its place.
///
/// Its temporary name lies in the folder of its place, since only within one file system can a name
/// be changed in one step. It says whose it is, `.NAME.wrote-PROCESS-NUMBER`, and a process that is
/// killed leaves it. `O_TMPFILE` would not spare it: a file without a name can be given a new name, but
/// not one that is taken (`linkat(2)`).
#[derive(Debug)]
pub(crate) struct Staged {
    /// The file, open for writing.
    pub file: FileId,
    temporary: PathBuf,
    place: PathBuf,
    replace: bool,
}

impl Staged {
    /// Makes the file. What is at `place` stays as it is until [`Staged::put`], which replaces it
    /// with `replace` and else fails.
    pub(crate) fn new(
        engine: &mut Engine,
        place: &Path,
        replace: bool,
        options: &FileOptions,
    ) -> Result<Staged, Error> {
        let options = FileOptions { create_new: true, write: true, ..*options };
        loop {
            let temporary = temporary_path(place);
            match engine.open_file(&temporary, &options) {
                Ok(file) => {
                    let place = place.to_owned();
                    return Ok(Staged { file, temporary, place, replace });
                }
                // Left by a killed process that had our number.
                Err(error) if error.errno() == libc::EEXIST => {}
                Err(error) => return Err(error.about(place)),
            }
        }
    }

    /// Where it is until it is whole.
    pub(crate) fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Closes the file and gives it its place, in one step; with `durable`, so that it is there after
    /// a power loss. Whoever needs the bytes to survive has flushed them before: else the new name
    /// may outlive them.
    pub(crate) fn put(self, engine: &mut Engine, durable: bool) -> Result<(), Error> {
        let renamed = engine
            .close_file(self.file)
            .and_then(|()| engine.rename(&self.temporary, &self.place, self.replace));
        if let Err(error) = renamed {
            // The first error is the one to tell of.
            let _ = engine.remove(&self.temporary);
            return Err(error);
        }
        if durable { engine.sync_folder(folder_of(&self.place)) } else { Ok(()) }
    }

    /// Closes and removes the file: what is at its place stays as it was.
    pub(crate) fn abandon(self, engine: &mut Engine) {
        // Called because of an error already, which is the one to tell of.
        let _ = engine.close_file(self.file);
        let _ = engine.remove(&self.temporary);
    }
}

/// A name beside `place` that nobody else makes: of this process, by number. Only a killed process
/// that had our number may have left it.
pub(crate) fn temporary_path(place: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = place.file_name().unwrap_or_default().as_bytes();
    let mut temporary = OsString::from(".");
    temporary.push(OsStr::from_bytes(&name[..name.len().min(NAME_BYTES_MAX)]));
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    temporary.push(format!(".wrote-{}-{number}", std::process::id()));
    folder_of(place).join(temporary)
}
