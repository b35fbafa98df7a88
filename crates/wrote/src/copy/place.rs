//! Where a copy goes, and whether it may.

use super::source::Source;
use crate::{Action, Engine, Error, Found, Located};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The name that the copy is going to have: `to` with its symbolic links followed.
///
/// # Errors
///
/// [`Error::Refused`] where there is a folder, a device, or the source itself; `EEXIST` where there
/// is a file, and `replace` was not said (W7).
pub(super) fn find(
    engine: &mut Engine,
    source: &Source,
    to: &Path,
    replace: bool,
) -> Result<PathBuf, Error> {
    let Located { path, found } = engine.locate(to)?;
    let refused = |because: String| Err(Error::Refused { path: to.to_owned(), because });
    match found {
        Found::Nothing if to.as_os_str().as_bytes().ends_with(b"/") => {
            refused("names a folder, and there is none".into())
        }
        Found::Nothing => Ok(path),
        Found::Folder => refused("is a folder".into()),
        Found::Other => {
            refused("is a device, a pipe or a socket: copies are made as files only".into())
        }
        Found::File if source.is_at(&path).map_err(|error| error.about(to))? => {
            refused(format!("is the same file as {}", source.named.display()))
        }
        Found::File if !replace => Err(Error::File {
            path: to.to_owned(),
            action: Action::Open,
            offset: None,
            errno: libc::EEXIST,
        }),
        Found::File => Ok(path),
    }
}
