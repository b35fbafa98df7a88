//! Reports the progress of long work to the caller's watcher. It is a separate file because copies
//! and logs are separate features.

use crate::Error;
use std::ops::ControlFlow;

/// A callback that receives the number of bytes done and the total number of bytes, which is `None`
/// if it is not known in advance. The callback may stop the work, which then fails with
/// [`Error::Interrupted`]. The type is private, so that the documentation shows the function type
/// itself.
pub(crate) type Watch<'a> = &'a mut dyn FnMut(u64, Option<u64>) -> ControlFlow<()>;

pub(crate) struct Watcher<'w> {
    watch: Watch<'w>,
    bytes_done: u64,
    bytes_total: Option<u64>,
}

impl<'w> Watcher<'w> {
    pub(crate) fn new(watch: Watch<'w>, bytes_total: Option<u64>) -> Watcher<'w> {
        Watcher { watch, bytes_done: 0, bytes_total }
    }

    /// Adds `bytes` to those done, and reports the progress. Fails with [`Error::Interrupted`] if
    /// the watcher requests a stop.
    pub(crate) fn add(&mut self, bytes: u64) -> Result<(), Error> {
        self.bytes_done += bytes;
        report(self.watch, self.bytes_done, self.bytes_total)
    }
}

/// Reports progress. Fails with [`Error::Interrupted`] if the watcher requests a stop.
pub(crate) fn report(watch: Watch, done: u64, total: Option<u64>) -> Result<(), Error> {
    match watch(done, total) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Interrupted),
    }
}

/// Always continues; the watcher for a caller that has none.
pub(crate) fn unwatched(_: u64, _: Option<u64>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}
