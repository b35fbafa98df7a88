//! The place of a copy, and whether the copy may have it.

use super::source::Source;
use crate::error::Tried;
use crate::{Action, Engine, Error, Found, Located};
use rustix::io::Errno;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Finds the name that the copy will have: `to` with its symbolic links followed. Fails with
/// [`Error::Refused`] for a folder, a device, or the source itself, and with `EEXIST` for a file,
/// unless `replace` is set (W7).
pub(super) fn find(
    engine: &mut Engine,
    source: Option<&Source>,
    to: &Path,
    replace: bool,
) -> Result<Located, Error> {
    let located = engine.locate(to)?;
    let refused = |because| Err(Error::refused(to, because));
    match located.found {
        Found::Nothing if to.as_os_str().as_bytes().ends_with(b"/") => {
            refused("names a folder, and there is none")
        }
        Found::Folder => refused("is a folder"),
        Found::Other => refused("is a device, a pipe or a socket: copies are made as files only"),
        Found::File => {
            if let Some(source) = source
                && source.is_at(&located.path).map_err(|error| error.about(to))?
            {
                let because = format!("is the same file as {}", source.named.display());
                return Err(Error::refused(to, because));
            }
            if !replace {
                return Err(Errno::EXIST).tried(to, Action::Open);
            }
            Ok(located)
        }
        Found::Nothing => Ok(located),
    }
}
