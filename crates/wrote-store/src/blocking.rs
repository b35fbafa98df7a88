//! Work that blocks beside work that awaits, and the flag that ends both.

use crate::error::StoreError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// Threads of a program's runtime: one sends while another receives.
const THREADS: usize = 2;

/// The interval between two checks of a flag.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// Makes a runtime for a program that has none.
///
/// Fails with [`StoreError::Local`] if the kernel creates no thread.
pub fn runtime() -> Result<Runtime, StoreError> {
    let built = Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("wrote-store")
        .enable_all()
        .build();
    built.map_err(|error| StoreError::local("a runtime", error))
}

/// Awaits `work`, or ends with [`StoreError::Interrupted`] once `stop` is set. The work is then
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

/// Does work that blocks on a separate thread.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(StoreError::local("a thread", std::io::Error::other(error))))
}
