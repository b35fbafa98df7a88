//! A flag that ends a run early and cleanly.

use crate::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks a run to end early: it stops within one batch of writes and removes its files.
///
/// Clones share one flag, for a signal handler and the run.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Makes a flag that is not raised.
    pub fn new() -> Stop {
        Stop::default()
    }

    /// Asks the run to end.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether the run was asked to end.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns [`Error::Interrupted`] if the run was asked to end.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_requested() { Err(Error::Interrupted) } else { Ok(()) }
    }
}
