//! Progress of a copy, as its watcher receives it.

use crate::Error;
use std::ops::ControlFlow;

/// The progress of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyProgress {
    /// File bytes that are done, holes included. With `verify` each byte is done twice.
    pub bytes_done: u64,
    /// File bytes to do; `None` where the length is unknown before the end.
    pub bytes_total: Option<u64>,
}

impl CopyProgress {
    /// Returns the progress of `bytes_done` of `bytes_total`.
    pub const fn new(bytes_done: u64, bytes_total: Option<u64>) -> CopyProgress {
        CopyProgress { bytes_done, bytes_total }
    }
}

/// A callback that receives the progress of a copy, and may stop it.
pub type Watch<'a> = &'a mut dyn FnMut(CopyProgress) -> ControlFlow<()>;

pub(crate) struct Watcher<'w> {
    watch: Watch<'w>,
    now: CopyProgress,
}

impl<'w> Watcher<'w> {
    pub(crate) fn new(watch: Watch<'w>, bytes_total: Option<u64>) -> Watcher<'w> {
        Watcher { watch, now: CopyProgress { bytes_done: 0, bytes_total } }
    }

    /// Counts `bytes` as done. Fails with [`Error::Interrupted`] where the watcher asks to stop.
    pub(crate) fn add(&mut self, bytes: u64) -> Result<(), Error> {
        self.now.bytes_done += bytes;
        report(self.watch, self.now)
    }
}

/// Reports progress; [`Error::Interrupted`] where the watcher asks to stop.
pub(crate) fn report(watch: Watch, progress: CopyProgress) -> Result<(), Error> {
    match watch(progress) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Interrupted),
    }
}
