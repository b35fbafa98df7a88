//! The spare file of a log: that of a segment which was removed, and which a later one gets.
//!
//! A durable record goes into blocks that were written before, since the file system then has
//! nothing to note of them. In a new file these blocks are zeros, and the disk writes as many as it
//! writes records. In the file of a removed segment they are the records of that one. Nothing in
//! it is valid in a segment of another number.

use super::super::format::Format;
use super::super::options::Prepare;
use super::super::prepare::{self, Preparation};
use super::super::state::{LogState, Terms};
use super::Flusher;
use crate::staged::beside;
use crate::{Error, FileId, FileOptions};
use std::path::{Path, PathBuf};

/// A file under a temporary name.
pub(super) struct Spare {
    path: PathBuf,
    bytes: u64,
}

impl Flusher {
    /// Removes the file of a segment, or keeps it as the spare one.
    pub(super) fn remove_segment(
        &mut self,
        terms: &Terms,
        path: &Path,
        bytes: u64,
    ) -> Result<(), Error> {
        let is_wanted = terms.prepare == Prepare::Write && terms.layout.format == Format::Framed;
        if is_wanted
            && self.spare.is_none()
            && let Ok((spare, ())) = beside(path, |name| self.engine.rename(path, name, false))
        {
            self.spare = Some(Spare { path: spare, bytes });
            self.is_folder_dirty = true;
            return Ok(());
        }
        self.engine.remove(path)
    }

    /// Begins to prepare the segment `number`, up to `end`, in the spare file. Returns `None` if
    /// there is none, if it is longer, or if a reader or a backup still has it.
    pub(super) fn recycle(
        &mut self,
        state: &LogState,
        place: &Path,
        number: u64,
        end: u64,
    ) -> Result<Option<Preparation>, Error> {
        let Some(spare) = self.spare.take_if(|spare| spare.bytes <= end) else { return Ok(None) };
        // A power loss must not give the file the name back by which it is a segment.
        if std::mem::take(&mut self.is_folder_dirty) {
            self.engine.sync_folder(&state.terms.folder)?;
        }
        let Some(file) = self.open_unshared(&spare.path) else {
            // A new file serves as well.
            let _ = self.engine.remove(&spare.path);
            return Ok(None);
        };
        let from = spare.bytes - spare.bytes % state.terms.layout.block_bytes;
        let rest = Preparation::rest_of(file, &spare.path, number, state.terms.prepare, from, end);
        Ok(Some(rest.in_spare_for(place)))
    }

    fn open_unshared(&mut self, path: &Path) -> Option<FileId> {
        let options = FileOptions::new().write(true).direct(true);
        let file = prepare::open(&mut self.engine, path, &options).ok()?;
        let is_shared = self.engine.is_shared(file).unwrap_or(true);
        if is_shared {
            let _ = self.engine.close_file(file);
        }
        (!is_shared).then_some(file)
    }

    /// Removes the spare file, which no segment will get.
    pub(super) fn discard_spare(&mut self) {
        if let Some(spare) = self.spare.take() {
            // One that stays is removed by the next opening.
            let _ = self.engine.remove(&spare.path);
        }
    }
}
