//! The task that ships the segments of one log, for as long as the server lives.

use super::Shipping;
use crate::channel::Channel;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use wrote_store::{SegmentStore, ShipProgress, Shipped, Shipper, StoreError};

/// The pause between two looks for sealed segments.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause after a failure; each doubles the one before.
const FAILURE_PAUSE_MAX: Duration = Duration::from_secs(30);

/// Ships the sealed segments of the channel's log, and lets its retention remove those that are in
/// the store. A store that fails, hangs or refuses delays this task alone.
pub(crate) async fn run(channel: Arc<Channel>) {
    let Some(url) = channel.config.store.clone() else { return };
    let (mut shipper, mut pause) = (None, LOOK_PAUSE);
    loop {
        sleep(pause).await;
        // A log that has failed may be read, too, but what is durable in it is not known.
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

/// Returns the shipper of before, or makes one.
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
    /// Notes a failure or the end of one, and says so when the first comes and when they end.
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
