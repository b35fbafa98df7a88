//! Ships a log's sealed segments to an object store, without delaying messages.

use crate::lock;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

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
        lock(&self.trouble).clone()
    }

    /// Records a failure or recovery, and logs the first of each.
    #[cfg(feature = "store")]
    fn say(&self, name: &str, error: Option<wrote_store::StoreError>) {
        let trouble = error.map(|error| error.to_string());
        if trouble.is_some() {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        let mut last = lock(&self.trouble);
        match (&*last, &trouble) {
            (None, Some(trouble)) => log::warn!("{name} is not shipped: {trouble}"),
            (Some(_), None) => log::warn!("{name} is shipped again"),
            _ => {}
        }
        *last = trouble;
    }
}

#[cfg(feature = "store")]
pub(crate) use task::run;

#[cfg(feature = "store")]
mod task {
    use crate::channel::Channel;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use std::time::Duration;
    use tokio::task::spawn_blocking;
    use tokio::time::sleep;
    use wrote_store::{SegmentStore, ShipProgress, Shipped, Shipper, StoreError};

    /// The interval of checking for sealed segments.
    const LOOK_PAUSE: Duration = Duration::from_secs(1);

    /// The longest pause after a failure; pauses double up to it.
    const FAILURE_PAUSE_MAX: Duration = Duration::from_secs(30);

    /// Ships the sealed segments of the channel's log, and lets retention remove those in the
    /// store. A store that fails or hangs delays only this task.
    pub(crate) async fn run(channel: Arc<Channel>) {
        let Some(url) = channel.config.store.clone() else { return };
        let (mut shipper, mut pause) = (None, LOOK_PAUSE);
        loop {
            sleep(pause).await;
            // A failed log could be read too, but it is unknown what is durable in it.
            let Some(durable_sequence) = channel.log().map(|log| log.durable_sequence()) else {
                continue;
            };
            let passed = match take(&mut shipper, &url, &channel.config.folder).await {
                Ok(mut own) => {
                    let mut tell = |progress: ShipProgress| note(&channel, &progress.shipped);
                    let passed = own.pass(durable_sequence, &mut tell).await;
                    note(&channel, &own.shipped());
                    shipper = Some(own);
                    passed
                }
                Err(error) => Err(error),
            };
            pause = match passed {
                Ok(()) => LOOK_PAUSE,
                Err(_) => (pause * 2).min(FAILURE_PAUSE_MAX),
            };
            channel.shipping.say(&channel.config.name, passed.err());
        }
    }

    /// Returns the existing shipper, or creates one.
    async fn take(
        shipper: &mut Option<Shipper>,
        url: &str,
        folder: &Path,
    ) -> Result<Shipper, StoreError> {
        if let Some(shipper) = shipper.take() {
            return Ok(shipper);
        }
        let (url, folder) = (url.to_owned(), folder.to_owned());
        let made = spawn_blocking(move || Shipper::new(SegmentStore::open_or_make(&url)?, folder));
        // Only the end of the runtime cancels it.
        made.await.unwrap_or(Err(StoreError::Interrupted))
    }

    fn note(channel: &Channel, shipped: &Shipped) {
        channel.shipping.shipped_sequence.store(shipped.end_sequence, Ordering::Relaxed);
        channel.shipping.waiting_segments.store(shipped.waiting, Ordering::Relaxed);
        if let Some(log) = channel.log() {
            log.release(shipped.end_sequence);
        }
    }
}
