//! How far a copy has come, told to whoever watches it.

use super::{CopyProgress, Watch};
use crate::Error;

/// What is done, of how much.
pub(crate) struct Progress<'w> {
    watch: Watch<'w>,
    now: CopyProgress,
}

impl<'w> Progress<'w> {
    pub(crate) fn new(watch: Watch<'w>, bytes_total: Option<u64>) -> Progress<'w> {
        Progress { watch, now: CopyProgress { bytes_done: 0, bytes_total } }
    }

    /// So many bytes more are done.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`], where who watches asks to stop.
    pub(crate) fn add(&mut self, bytes: u64) -> Result<(), Error> {
        self.now.bytes_done += bytes;
        match (self.watch)(self.now) {
            std::ops::ControlFlow::Continue(()) => Ok(()),
            std::ops::ControlFlow::Break(()) => Err(Error::Interrupted),
        }
    }
}
