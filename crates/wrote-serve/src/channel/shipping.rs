//! Ships a log's sealed segments to an object store, without delaying messages.

use crate::lock;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

/// The figures about shipping one log.
#[derive(Debug, Default)]
pub(crate) struct Shipping {
    /// The sequence before which all records are in the store.
    pub shipped_sequence: AtomicU64,
    /// Notified when `shipped_sequence` changes.
    #[cfg(feature = "store")]
    moved: tokio::sync::Notify,
    /// The number of sealed segments that were not in the store at the last check.
    pub waiting_segments: AtomicU64,
    pub failures: AtomicU64,
    /// The reason why shipping makes no progress.
    trouble: Mutex<Option<String>>,
}

impl Shipping {
    /// Returns why shipping makes no progress, in one line; `None` if it makes progress.
    pub(crate) fn trouble(&self) -> Option<String> {
        lock(&self.trouble).clone()
    }

    /// Records a failure or recovery, and logs only the first of each.
    #[cfg(feature = "store")]
    fn say(&self, name: &str, error: Option<wrote_store::StoreError>) {
        let trouble = error.map(|error| error.to_string());
        if trouble.is_some() {
            crate::metrics::add(&self.failures, 1);
        }
        let mut last = lock(&self.trouble);
        match (&*last, &trouble) {
            (None, Some(trouble)) => log::warn!("{name} is not being shipped: {trouble}"),
            (Some(_), None) => log::warn!("{name} is being shipped again"),
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
    use crate::config::LogConfig;
    use crate::refusals::Throttle;
    use std::path::Path;
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use std::time::{Duration, SystemTime};
    use tokio::task::spawn_blocking;
    use tokio::time::{sleep, timeout};
    use wrote::log::Segment;
    use wrote::{Error, Log};
    use wrote_store::{SegmentStore, ShipProgress, Shipped, Shipper, StoreError};

    /// The interval between checks for sealed segments.
    const LOOK_PAUSE: Duration = Duration::from_secs(1);

    /// The longest pause after a failure. Pauses double up to this length.
    const FAILURE_PAUSE_MAX: Duration = Duration::from_secs(30);
    /// The interval between checks for old segments while none is shipped.
    const AGE_PAUSE: Duration = Duration::from_secs(60);

    /// Ships the sealed segments of the channel's log, and removes shipped segments from the folder
    /// if they exceed the retention limits. A store that fails or hangs delays only this task.
    pub(crate) async fn run(channel: Arc<Channel>) {
        if let Some(url) = &channel.config.store {
            tokio::join!(ship(&channel, url), retain(&channel));
        }
    }

    async fn ship(channel: &Channel, url: &str) {
        let (mut shipper, mut pause) = (None, LOOK_PAUSE);
        loop {
            sleep(pause).await;
            // A failed log could be read as well, but it is unknown which of its records are
            // durable.
            let Some(log) = channel.log() else { continue };
            let passed = match take(&mut shipper, url, &channel.config.folder).await {
                Ok(mut own) => {
                    let mut tell = |progress: ShipProgress| note(channel, &progress.shipped);
                    let passed = own.pass(log.durable_sequence(), &mut tell).await;
                    note(channel, &own.shipped());
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
        // The call is cancelled only if the runtime shuts down.
        made.await.unwrap_or(Err(StoreError::Interrupted))
    }

    fn note(channel: &Channel, shipped: &Shipped) {
        let all = &channel.shipping.shipped_sequence;
        if all.swap(shipped.end_sequence, Ordering::Relaxed) != shipped.end_sequence {
            channel.shipping.moved.notify_one();
        }
        channel.shipping.waiting_segments.store(shipped.waiting, Ordering::Relaxed);
    }

    /// Removes segments once they have been shipped or have grown old.
    async fn retain(channel: &Arc<Channel>) {
        let failures = Throttle::default();
        loop {
            let _ = timeout(AGE_PAUSE, channel.shipping.moved.notified()).await;
            let Some(log) = channel.log() else { continue };
            let shipped = channel.shipping.shipped_sequence.load(Ordering::Relaxed);
            let own = channel.clone();
            let removed = spawn_blocking(move || remove(&own.config, &log, shipped)).await;
            if let Ok(Err(error)) = removed {
                failures.warn(format_args!("{}: {error}", channel.config.name));
            }
        }
    }

    /// Removes the oldest sealed segments while they exceed a limit. Keeps all records from
    /// `shipped` on, because the store may not have them.
    fn remove(config: &LogConfig, log: &Log, shipped: u64) -> Result<(), Error> {
        let sealed = Segment::sealed(&config.folder, 1, log.durable_sequence())?;
        let oldest = config.retain_age.and_then(|age| SystemTime::now().checked_sub(age));
        let is_old = |segment: &Segment| {
            let written = segment.path.metadata().and_then(|file| file.modified());
            written.is_ok_and(|written| oldest.is_some_and(|oldest| written < oldest))
        };
        let mut bytes: u64 = sealed.iter().map(|segment| segment.file_bytes).sum();
        let mut end = 0;
        for segment in sealed.iter().take_while(|segment| segment.end_sequence <= shipped) {
            let is_over = config.retain_bytes.is_some_and(|most| bytes > most);
            if !is_over && !is_old(segment) {
                break;
            }
            (bytes, end) = (bytes - segment.file_bytes, segment.end_sequence);
        }
        if end > 0 { log.trim_before(end).map(drop) } else { Ok(()) }
    }
}
