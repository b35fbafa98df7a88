//! Reads of a log that this process has open, up to its written frontier.

use super::super::damage;
use super::LogReader;
use crate::Error;

impl LogReader {
    /// Continues after a cut at record `cut`. Fails if this reader has read that record.
    pub(in crate::log) fn pass_cut(&mut self, cut: u64) -> Result<(), Error> {
        if self.from > cut {
            return Err(Error::Truncated { path: self.folder.clone(), sequence: cut });
        }
        self.cursor = None;
        self.seek(self.from)
    }

    /// Moves to the next record before `end`, up to which the log has written, and returns its
    /// sequence. Returns `None` if there is none, because its place stayed empty. Fails with
    /// [`Error::Damaged`] if it can't be read.
    pub(in crate::log) fn read_written(&mut self, end: u64) -> Result<Option<u64>, Error> {
        if self.from >= end {
            return Ok(None);
        }
        if let Some(cursor) = &mut self.cursor
            && let Some(sequence) = cursor.next(self.from)?
        {
            self.from = sequence + 1;
            return Ok(Some(sequence));
        }
        // It was written since the last look, or is in the next segment.
        if let Some(found) = self.look_again()? {
            return Ok(Some(found));
        }
        if let Some(cursor) = &self.cursor {
            let place = cursor.place();
            if place.sequence < end {
                let what = "a record that was written can't be read";
                return Err(damage::error(place.path, place.offset, what));
            }
        }
        self.from = end;
        Ok(None)
    }
}
