//! Work that blocks beside work that awaits, and the flag that ends both.

use crate::error::StoreError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The pause between two looks at a flag.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Awaits `work`, or ends with [`StoreError::Interrupted`] once `stop` is set. What `work` had
/// begun is then dropped: no object is left in part.
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

/// Does work that blocks on a thread of its own.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(StoreError::local("a thread", std::io::Error::other(error))))
}
