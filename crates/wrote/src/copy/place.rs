//! The target of a copy, and the metadata of the file that it replaces.

use super::source::Source;
use crate::engine::{Found, Located};
use crate::error::Tried;
use crate::metadata::{Inherited, Metadata, MetadataParts};
use crate::{Action, Engine, Error};
use rustix::io::Errno;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

pub(super) struct Place {
    /// The final name, with symbolic links followed.
    pub path: PathBuf,
    /// The metadata of an existing file, which the copy of a stream keeps.
    pub replaced: Option<Inherited>,
}

impl Place {
    /// Fails with [`Error::Refused`] for a folder, a device, or the source itself, and with
    /// `EEXIST` for a file, unless `replace` is set (W7).
    pub(super) fn find(
        engine: &mut Engine,
        source: Option<&Source>,
        to: &Path,
        replace: bool,
    ) -> Result<Place, Error> {
        let Located { path, found } = engine.locate(to)?;
        let refused = |because| Err(Error::refused(to, because));
        match found {
            Found::Nothing if to.as_os_str().as_bytes().ends_with(b"/") => {
                refused("names a folder, and there is none")
            }
            Found::Nothing => Ok(Place { path, replaced: None }),
            Found::Folder => refused("is a folder"),
            Found::Other => {
                refused("is a device, a pipe or a socket: copies are made as files only")
            }
            Found::File => {
                if let Some(source) = source
                    && source.is_at(&path).map_err(|error| error.about(to))?
                {
                    let because = format!("is the same file as {}", source.named.display());
                    return Err(Error::refused(to, because));
                }
                if !replace {
                    return Err(Errno::EXIST).tried(to, Action::Open);
                }
                let replaced = Metadata::of_replaced(&path).map_err(|error| error.about(to))?;
                Ok(Place { path, replaced })
            }
        }
    }

    /// Returns the metadata for the copy: the source's times, plus its permissions and attributes
    /// unless a file is replaced, which keeps its owner and its own. With `preserve` everything is
    /// the source's.
    pub(super) fn into_inherited(self, source: Metadata, preserve: bool) -> Inherited {
        let times = source.is_file();
        match self.replaced {
            Some((old, parts)) if !preserve => {
                (old.with_times_of(&source), MetadataParts { times, ..parts })
            }
            _ => (source, MetadataParts { owner: preserve, times }),
        }
    }
}
