//! The task that ships one log's segments.

use super::Shipping;
use crate::channel::Channel;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use wrote_store::{SegmentStore, ShipProgress, Shipped, Shipper, StoreError};

/// The interval of checking for sealed segments.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause after a failure; pauses double up to it.
const FAILURE_PAUSE_MAX: Duration = Duration::from_secs(30);

/// Ships the sealed segments of the channel's log, and lets retention remove those in the store. A
/// store that fails or hangs delays only this task.
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

impl Shipping {
    /// Records a failure or recovery, and logs the first of each.
    fn say(&self, name: &str, error: Option<StoreError>) {
        let trouble = error.map(|error| error.to_string());
        if trouble.is_some() {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
        let mut last = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*last, &trouble) {
            (None, Some(trouble)) => log::warn!("{name} is not shipped: {trouble}"),
            (Some(_), None) => log::warn!("{name} is shipped again"),
            _ => {}
        }
        *last = trouble;
    }
}
