//! `Cursor`: a reader's position in a log, of either format.

use crate::Error;
use std::path::Path;

pub(super) type AnyCursor = Box<dyn Cursor>;

/// The place of a record.
pub(super) struct Place<'a> {
    pub sequence: u64,
    pub path: &'a Path,
    pub offset: u64,
}

/// A reader's position in a log of one format.
pub(super) trait Cursor {
    /// Moves to the next record, `from` or a later one, and returns its sequence; `None` at the end
    /// of the segment as read so far.
    fn next(&mut self, from: u64) -> Result<Option<u64>, Error>;

    /// Returns the bytes of the record just found by [`Cursor::next`].
    fn record(&self) -> &[u8];
    /// Returns when that record was written, in nanoseconds since 1970; 0 if unknown.
    fn written_at_ns(&self) -> u64;
    /// Returns the sequence of the first record written at this time or later; the next sequence if
    /// none was.
    fn find_time(&mut self, folder: &Path, at_ns: u64) -> Result<u64, Error>;

    /// Moves to record `from` or before it, and remembers positions for later searches. Returns
    /// whether the log has such a position.
    fn seek(&mut self, folder: &Path, from: u64) -> Result<bool, Error>;

    /// Moves to the next segment, if the log continues there. Returns whether it does.
    fn turn(&mut self, folder: &Path) -> Result<bool, Error>;

    /// Returns the place of the next record.
    fn place(&self) -> Place<'_>;

    /// Drops the bytes read ahead, because a writer may have changed them.
    fn look_again(&mut self) -> Result<(), Error>;

    /// Returns the error if the next record was durable and can't be read.
    fn lost(&mut self, folder: &Path) -> Result<Option<Error>, Error>;
}
