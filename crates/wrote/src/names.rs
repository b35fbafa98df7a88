//! Durable names: renames, and the entries of a folder.

use crate::engine::{Options, folder_of};
use crate::{Engine, Error, Ioengine};
use std::path::Path;

/// Renames a file or folder like `std::fs::rename`. When this returns, the change survives power
/// loss.
///
/// It is atomic: at every moment, and after a crash at any moment, `to` is the old file or the new
/// one. If the two are in different folders, `from` may still be there too after a power loss
/// before this returns. The file's content is not flushed: flush it before
/// ([`Writer::sync_data`](crate::Writer::sync_data), `File::sync_all`), or the new name may outlive
/// it.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let (part, done) = (folder.path().join("data.part"), folder.path().join("data"));
/// # std::fs::write(&part, b"precious")?;
/// std::fs::File::open(&part)?.sync_all()?;
/// wrote::rename(&part, &done)?;
/// # assert_eq!(std::fs::read(&done)?, b"precious");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Error::File`] with the kernel's message: `ENOENT`, `EACCES`, `EXDEV` for another file system,
/// `ENOTEMPTY` for a non-empty folder. Nothing was renamed then, unless the action is
/// [`SyncFolder`](crate::Action::SyncFolder): every process sees the new name, and power loss may
/// restore the old one.
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<(), Error> {
    let (from, to) = (from.as_ref(), to.as_ref());
    let mut engine = engine()?;
    engine.rename(from, to, true).map_err(|error| {
        let is_missing = error.errno() == libc::ENOENT && std::fs::symlink_metadata(from).is_err();
        if is_missing { error.about(from) } else { error }
    })?;
    let (old, new) = (folder_of(from), folder_of(to));
    engine.sync_folder(new)?;
    if old == new { Ok(()) } else { engine.sync_folder(old) }
}

/// Makes the names in a folder durable: of files created, renamed or removed there. Flushing a new
/// file does not make its name durable (`fsync(2)`).
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// std::fs::File::create(folder.join("lock"))?.sync_all()?;
/// wrote::sync_folder(folder)?; // the name survives, too
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`Error::File`] with the kernel's message. A file system with nothing to flush for a folder is
/// not an error.
pub fn sync_folder(folder: impl AsRef<Path>) -> Result<(), Error> {
    engine()?.sync_folder(folder)
}

fn engine() -> Result<Engine, Error> {
    Engine::open(&Options::new(Ioengine::Psync, 1, rustix::param::page_size()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Action;
    use std::fs;

    #[test]
    fn a_rename_replaces_what_is_there_and_names_what_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        fs::create_dir(place("inner")).unwrap();
        fs::write(place("new"), b"new").unwrap();
        fs::write(place("inner/old"), b"old").unwrap();
        rename(place("new"), place("inner/old")).unwrap();
        assert_eq!(fs::read(place("inner/old")).unwrap(), b"new");
        rename(place("inner"), place("outer")).unwrap();
        for (from, to, about) in [("new", "other", "new"), ("outer/old", "no/file", "no/file")] {
            let error = rename(place(from), place(to)).unwrap_err();
            assert!(matches!(&error, Error::File { action: Action::Rename, .. }), "{error}");
            assert_eq!((error.errno(), error.path()), (libc::ENOENT, Some(&*place(about))));
        }
        assert_eq!(fs::read(place("outer/old")).unwrap(), b"new");
    }

    #[test]
    fn a_folder_is_flushed_and_one_that_is_missing_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        sync_folder(folder.path()).unwrap();
        assert_eq!(sync_folder(folder.path().join("no")).unwrap_err().errno(), libc::ENOENT);
    }
}
