//! Progress of long work, as the caller's watcher receives it. It is a separate file because copies
//! and logs are separate features.

use crate::Error;
use std::ops::ControlFlow;

/// A callback that receives the bytes done and the bytes to do, which are `None` where the length
/// is unknown before the end. It may stop the work, which then fails with [`Error::Interrupted`].
/// The documentation shows the function itself.
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

    /// Counts `bytes` as done. Fails with [`Error::Interrupted`] where the watcher asks to stop.
    pub(crate) fn add(&mut self, bytes: u64) -> Result<(), Error> {
        self.bytes_done += bytes;
        report(self.watch, self.bytes_done, self.bytes_total)
    }
}

/// Reports progress; [`Error::Interrupted`] where the watcher asks to stop.
pub(crate) fn report(watch: Watch, done: u64, total: Option<u64>) -> Result<(), Error> {
    match watch(done, total) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Interrupted),
    }
}

/// Continues: the watcher of a caller who has none.
pub(crate) fn unwatched(_: u64, _: Option<u64>) -> ControlFlow<()> {
    ControlFlow::Continue(())
}
