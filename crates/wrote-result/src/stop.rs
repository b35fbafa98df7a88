//! A flag that ends a run early and cleanly.

use crate::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks a run to end early: it stops within one batch of writes and removes what it made.
///
/// Clones share one flag, so a signal handler can hold one and the run another.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// A flag that nobody has raised.
    pub fn new() -> Stop {
        Stop::default()
    }

    /// Asks the run to end.
    pub fn request(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the run was asked to end.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// [`Error::Interrupted`] if the run was asked to end.
    pub fn check(&self) -> Result<(), Error> {
        if self.is_requested() { Err(Error::Interrupted) } else { Ok(()) }
    }
}
