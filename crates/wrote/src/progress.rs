//! Progress of long work, as the caller's watcher receives it. Apart, because copies and logs are
//! separate features.

use crate::Error;
use std::ops::ControlFlow;

/// The progress of a copy or a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// File bytes done, including holes. A copy with `verify` counts each byte twice.
    pub bytes_done: u64,
    /// File bytes to do; `None` where the length is unknown before the end.
    pub bytes_total: Option<u64>,
}

impl Progress {
    /// Returns the progress of `bytes_done` of `bytes_total`.
    pub const fn new(bytes_done: u64, bytes_total: Option<u64>) -> Progress {
        Progress { bytes_done, bytes_total }
    }
}

/// A callback that receives the progress, and may stop the work, which then fails with
/// [`Error::Interrupted`]. The documentation shows the function itself.
pub(crate) type Watch<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

pub(crate) struct Watcher<'w> {
    watch: Watch<'w>,
    now: Progress,
}

impl<'w> Watcher<'w> {
    pub(crate) fn new(watch: Watch<'w>, bytes_total: Option<u64>) -> Watcher<'w> {
        Watcher { watch, now: Progress { bytes_done: 0, bytes_total } }
    }

    /// Counts `bytes` as done. Fails with [`Error::Interrupted`] where the watcher asks to stop.
    pub(crate) fn add(&mut self, bytes: u64) -> Result<(), Error> {
        self.now.bytes_done += bytes;
        report(self.watch, self.now)
    }
}

/// Reports progress; [`Error::Interrupted`] where the watcher asks to stop.
pub(crate) fn report(watch: Watch, progress: Progress) -> Result<(), Error> {
    match watch(progress) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Interrupted),
    }
}

/// Continues: the watcher of a caller who has none.
pub(crate) fn unwatched(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}
