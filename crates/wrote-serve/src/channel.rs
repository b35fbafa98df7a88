//! A channel: one log or file of the server, monitored, and reopened after a failure. Senders take
//! turns while it has no room.

pub(crate) mod shipping;

use crate::config::settings::Settings;
use crate::config::{BUFFER_BYTES_MIN, LOG_MODE, LogConfig};
use crate::lock;
use crate::target::{Health, Target};
use rustix::fs::statvfs;
use shipping::Shipping;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::spawn_blocking;
use wrote::{Lines, Log};

/// The interval between checks of the log and its disk. Also the interval between attempts to
/// reopen the log.
const WATCH_PAUSE: Duration = Duration::from_secs(1);

/// The function that a channel calls to open its log.
pub(crate) type Opener = Arc<dyn Fn(&LogConfig) -> Result<Log, wrote::Error> + Send + Sync>;

/// One log or file of the server.
pub(crate) struct Channel {
    pub config: LogConfig,
    opener: Opener,
    target: Mutex<Option<Target>>,
    /// Held while the log is reopened, because reopening reads from the disk, and `target` must not
    /// be locked for so long.
    opening: Mutex<()>,
    /// The number of times that the log was opened. When it changes, connections switch to the new
    /// log.
    generation: AtomicU64,
    /// Whether the log has not failed and its disk has enough free space.
    takes_messages: AtomicBool,
    /// The reason why the channel does not accept messages.
    trouble: Mutex<Option<String>>,
    free_bytes: AtomicU64,
    /// The number of checks that found the channel accepting messages.
    good_looks: watch::Sender<u64>,
    is_closed: AtomicBool,
    pub shipping: Shipping,
    /// The turns of senders while the log has no room.
    pub turns: Turns,
}

impl Channel {
    /// Opens the log and runs the first check.
    pub(crate) fn open(
        config: LogConfig,
        opener: Opener,
        free_bytes_min: u64,
    ) -> Result<Channel, wrote::Error> {
        let target = open(&config, &opener)?;
        let channel = Channel {
            config,
            opener,
            target: Mutex::new(Some(target)),
            opening: Mutex::default(),
            generation: AtomicU64::new(0),
            takes_messages: AtomicBool::new(true),
            trouble: Mutex::new(None),
            free_bytes: AtomicU64::new(u64::MAX),
            good_looks: watch::Sender::new(0),
            is_closed: AtomicBool::new(false),
            shipping: Shipping::default(),
            turns: Turns::new(),
        };
        channel.look(free_bytes_min);
        Ok(channel)
    }

    /// Returns the log or file that receives the messages; `None` after a failure, until it is
    /// reopened.
    pub(crate) fn target(&self) -> Option<Target> {
        lock(&self.target).clone()
    }

    /// Returns the log to read from; `None` for a file, or while a failed log has not been
    /// reopened.
    pub(crate) fn log(&self) -> Option<Log> {
        self.target().and_then(Target::log)
    }

    /// Reopens the path of a file after another program has rotated it.
    pub(crate) fn reopen(&self) {
        if let Some(Err(error)) = self.target().map(|target| target.reopen()) {
            log::error!("{}: {error}", self.config.name);
        }
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Returns whether messages are currently accepted. If not, the log can still be read.
    pub(crate) fn takes_messages(&self) -> bool {
        self.takes_messages.load(Ordering::Relaxed)
    }

    /// Waits for the next check that finds that messages are accepted.
    pub(crate) fn next_good_look(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut looks = self.good_looks.subscribe();
        async move {
            // The sender is dropped only when the server shuts down.
            let _ = looks.changed().await;
        }
    }

    /// Returns why messages are not accepted, in one line; `None` if they are accepted.
    pub(crate) fn trouble(&self) -> Option<String> {
        lock(&self.trouble).clone()
    }

    /// Returns the free space at the last check, in bytes.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.free_bytes.load(Ordering::Relaxed)
    }

    /// Checks the log and its disk every second while the server runs. Refuses messages while less
    /// than the limit of free space (`free_bytes`) is free, and reopens a failed log.
    pub(crate) async fn watch(self: Arc<Self>, settings: watch::Receiver<Settings>) {
        loop {
            tokio::time::sleep(WATCH_PAUSE).await;
            let free_bytes_min = settings.borrow().limits.free_bytes;
            let channel = self.clone();
            // The check may block: it may reopen the log, which reads from the disk.
            let looked = spawn_blocking(move || channel.look(free_bytes_min)).await;
            if looked.is_err() {
                return;
            }
        }
    }

    fn look(&self, free_bytes_min: u64) {
        if let Ok(disk) = statvfs(&self.config.folder) {
            self.free_bytes.store(disk.f_bavail * disk.f_frsize, Ordering::Relaxed);
        }
        let trouble = match self.target() {
            Some(target) => match target.health() {
                Health::Well => self.lacks_space(free_bytes_min),
                // A full disk is not a failed flush (W2).
                Health::Waits(error) => Some(error.to_string()),
                Health::Failed(error) => {
                    // Closing the log releases its lock, so that the log can be opened again. The
                    // error is already known.
                    let _ = target.close();
                    *lock(&self.target) = None;
                    Some(error.to_string())
                }
            },
            None => self.open_again(),
        };
        self.say(trouble);
    }

    fn lacks_space(&self, free_bytes_min: u64) -> Option<String> {
        let free_bytes = self.free_bytes();
        let folder = self.config.folder.display();
        // Retention does not remove segments that have not been shipped.
        let unshipped = || match self.shipping.trouble() {
            Some(trouble) => format!("; segments wait to be shipped: {trouble}"),
            None => String::new(),
        };
        (free_bytes < free_bytes_min).then(|| {
            let unshipped = unshipped();
            format!("{folder}: {free_bytes} bytes are free, {free_bytes_min} must be{unshipped}")
        })
    }

    fn open_again(&self) -> Option<String> {
        let _opening = lock(&self.opening);
        if self.is_closed.load(Ordering::SeqCst) {
            return None;
        }
        match open(&self.config, &self.opener) {
            Ok(opened) => {
                *lock(&self.target) = Some(opened);
                self.generation.fetch_add(1, Ordering::Release);
                None
            }
            Err(error) => Some(error.to_string()),
        }
    }

    fn say(&self, trouble: Option<String>) {
        let mut last = lock(&self.trouble);
        self.takes_messages.store(trouble.is_none(), Ordering::Relaxed);
        if trouble.is_none() {
            self.good_looks.send_modify(|looks| *looks += 1);
        }
        let is_new = !is_same_but_for_figures(last.as_deref(), trouble.as_deref());
        let name = &self.config.name;
        match &trouble {
            Some(trouble) if is_new => log::error!("{name} accepts no messages: {trouble}"),
            None if is_new => log::warn!("{name} accepts messages again"),
            _ => {}
        }
        *last = trouble;
    }

    /// Makes everything appended durable, and closes the log.
    pub(crate) fn close(&self) -> Result<(), wrote::Error> {
        self.is_closed.store(true, Ordering::SeqCst);
        let _opening = lock(&self.opening);
        let target = lock(&self.target).take();
        target.map_or(Ok(()), |target| target.close())
    }
}

fn open(config: &LogConfig, opener: &Opener) -> Result<Target, wrote::Error> {
    if !config.is_file {
        return opener(config).map(Target::Log);
    }
    let buffer_bytes = config.buffer_bytes.unwrap_or(BUFFER_BYTES_MIN);
    let options = Lines::options().sync(config.sync).mode(LOG_MODE);
    let lines = options.buffer_bytes(buffer_bytes).open(&config.folder)?;
    if let Some(torn) = lines.torn() {
        let (path, torn) = (config.folder.display(), torn.display());
        log::warn!("{path}: the end of an interrupted write is kept in {torn}");
    }
    Ok(Target::File(Arc::new(lines)))
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Returns whether two messages differ only in their digits: on a full disk, the number of free
/// bytes varies from check to check.
fn is_same_but_for_figures(one: Option<&str>, other: Option<&str>) -> bool {
    let words =
        |text: Option<&str>| text.map(|text| text.replace(|c: char| c.is_ascii_digit(), ""));
    words(one) == words(other)
}

/// The senders of one log that wait for room, in order of arrival. Later senders queue after them,
/// so that none starves.
///
/// Only the sender whose turn it is waits for the log itself. A turn covers only what its sender
/// has already read, so it never waits for a client.
#[derive(Debug)]
pub(crate) struct Turns(Arc<Semaphore>);

/// The right to append before all other senders. Dropping it passes the right on.
pub(crate) type Turn = OwnedSemaphorePermit;

impl Turns {
    pub(crate) fn new() -> Turns {
        Turns(Arc::new(Semaphore::new(1)))
    }

    /// Returns whether a sender waits for room, so that others have to queue.
    pub(crate) fn are_taken(&self) -> bool {
        self.0.available_permits() == 0
    }

    /// Waits for a turn, in order of arrival.
    pub(crate) fn next(&self) -> impl Future<Output = Turn> + Send + use<> {
        let turns = Arc::clone(&self.0);
        async move { turns.acquire_owned().await.expect("it is never closed") }
    }

    /// Returns whether a sender may append now: either it has the turn, or no sender waits.
    pub(crate) fn lets(&self, turn: Option<&Turn>) -> bool {
        turn.is_some() || !self.are_taken()
    }

    /// Waits for a turn for a sender that could not append, and then for room in the log.
    pub(crate) async fn wait(
        &self,
        turn: &mut Option<Turn>,
        target: &Target,
    ) -> Result<(), wrote::Error> {
        match turn {
            Some(_) => target.room().await,
            None => {
                *turn = Some(self.next().await);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn a_disk_that_stays_full_is_the_same_trouble_whatever_its_free_bytes() {
        let full = |bytes| format!("/log: {bytes} bytes are free, 900 must be");
        assert!(is_same_but_for_figures(Some(&full(12)), Some(&full(3456))));
        assert!(is_same_but_for_figures(None, None));
        for other in [None, Some("/log: fsync: Input/output error (os error 5)")] {
            assert!(!is_same_but_for_figures(Some(&full(12)), other));
        }
    }

    #[test]
    fn turns_are_taken_in_the_order_in_which_they_were_asked_for() {
        let context = &mut Context::from_waker(Waker::noop());
        let turns = Turns::new();
        assert!(!turns.are_taken());
        let (mut first, mut second) = (pin!(turns.next()), pin!(turns.next()));
        let Poll::Ready(turn) = first.as_mut().poll(context) else { panic!("it waits") };
        assert!(turns.are_taken() && second.as_mut().poll(context).is_pending());
        {
            // A sender that stops waiting is skipped.
            let mut third = pin!(turns.next());
            assert!(third.as_mut().poll(context).is_pending());
        }
        let mut last = pin!(turns.next());
        assert!(last.as_mut().poll(context).is_pending());
        drop(turn);
        let Poll::Ready(turn) = second.as_mut().poll(context) else { panic!("it was next") };
        assert!(last.as_mut().poll(context).is_pending());
        drop(turn);
        assert!(last.as_mut().poll(context).is_ready());
        assert!(!turns.are_taken());
    }
}
