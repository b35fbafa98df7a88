//! Sealed segments of a log in an object store: they are shipped there once, and read from there.
//! This module declares the other modules, and provides the runtime that they share.
//!
//! A [`Shipper`] puts the sealed segments of a folder into a [`SegmentStore`]. Each segment becomes
//! one object, which is created once and never replaced. A [`StoreReader`] reads the records from
//! the store by sequence. It finds them by the names of the objects alone, so there is no manifest
//! that could be lost or wrong.
//!
//! The crate does not use a terminal. Its network code is async, in tokio.

#![forbid(unsafe_code)]

mod error;
mod place;
mod reader;
mod segment;
mod ship;
mod store;
mod summary;

pub use error::StoreError;
pub use reader::StoreReader;
pub use ship::{SEGMENT_BYTES_MAX, ShipProgress, Shipped, Shipper};
pub use store::SegmentStore;
pub use summary::{StoreDamage, StoreSummary, StoreVerified, StoredSummary, summary, verify};

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// The number of threads in a program's runtime: one can send while another receives.
const THREADS: usize = 2;

/// The interval between two checks of a flag.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Creates a runtime for a program that has none.
///
/// Fails with [`StoreError::Local`] if the kernel can't create a thread.
pub fn runtime() -> Result<Runtime, StoreError> {
    let built = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("wrote-store")
        .enable_all()
        .build();
    built.map_err(|error| StoreError::local("a runtime", error))
}

/// Awaits `work`, but fails with [`StoreError::Interrupted`] once `stop` is set. The work is then
/// dropped, and leaves no partial object.
pub async fn until<T>(
    stop: &AtomicBool,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let stopped = async {
        while !stop.load(Ordering::Relaxed) {
            tokio::time::sleep(LOOK_PAUSE).await;
        }
    };
    tokio::select! {
        done = work => done,
        () = stopped => Err(StoreError::Interrupted),
    }
}

/// Runs blocking work on a separate thread, and returns its result.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(StoreError::local("a thread", std::io::Error::other(error))))
}
