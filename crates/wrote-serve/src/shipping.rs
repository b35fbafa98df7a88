//! Ships a log's sealed segments to an object store, without delaying messages.

#[cfg(feature = "store")]
mod task;

use crate::config::LogConfig;
use crate::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
#[cfg(feature = "store")]
pub(crate) use task::run;

/// The shipping figures of one log.
#[derive(Debug, Default)]
pub(crate) struct Shipping {
    /// All records before it are in the store.
    shipped_sequence: AtomicU64,
    /// Sealed segments that were not in the store at the last check.
    waiting_segments: AtomicU64,
    failures: AtomicU64,
    /// Why shipping does not progress.
    trouble: Mutex<Option<String>>,
}

impl Shipping {
    pub(crate) fn shipped_sequence(&self) -> u64 {
        self.shipped_sequence.load(Ordering::Relaxed)
    }

    pub(crate) fn waiting_segments(&self) -> u64 {
        self.waiting_segments.load(Ordering::Relaxed)
    }

    pub(crate) fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Returns why shipping does not progress, in one line.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

pub(crate) fn check(log: &LogConfig) -> Result<(), Error> {
    let Some(url) = &log.store else { return Ok(()) };
    check_url(url).map_err(Error::Config)
}

#[cfg(feature = "store")]
pub(crate) fn check_url(url: &str) -> Result<(), String> {
    wrote_store::SegmentStore::check(url).map_err(|error| error.to_string())
}

#[cfg(not(feature = "store"))]
pub(crate) fn check_url(url: &str) -> Result<(), String> {
    let _ = url;
    Err("this program was built without object stores (the feature store)".to_owned())
}
