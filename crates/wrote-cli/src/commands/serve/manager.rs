//! Messages to the service manager, as sd_notify(3) describes; none where there is no manager.

use sd_notify::{NotifyState, notify};
use std::thread;
use std::time::{Duration, Instant};

/// How long the manager is to wait for the next message of a server that drains.
const EXTENSION: Duration = Duration::from_secs(10);
/// The pause between two such messages.
const EXTENSION_PAUSE: Duration = Duration::from_secs(2);
/// The time that closing the logs may take after the grace. A disk that hangs for longer is left to
/// the manager.
const CLOSING: Duration = Duration::from_secs(60);

/// Says that messages are taken.
pub(super) fn ready(status: &str) {
    say(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Says that files are read again, until [`ready`].
pub(super) fn reloading() {
    // From version 253 on systemd takes it only with the time.
    match NotifyState::monotonic_usec_now() {
        Ok(now) => say(&[NotifyState::Reloading, now]),
        Err(_) => say(&[NotifyState::Reloading]),
    }
}

/// Says that the server drains, and asks for time for as long as that may take.
pub(super) fn stopping(grace: Duration) {
    let extension = u32::try_from(EXTENSION.as_micros()).unwrap_or(u32::MAX);
    let extension = move || NotifyState::ExtendTimeoutUsec(extension);
    say(&[NotifyState::Stopping, NotifyState::Status("drains"), extension()]);
    let began = Instant::now();
    let extend = move || {
        while began.elapsed() < grace + CLOSING {
            thread::sleep(EXTENSION_PAUSE);
            say(&[extension()]);
        }
    };
    // Without a thread the manager waits for as long as it was configured to. It ends with the
    // program.
    let _ = thread::Builder::new().name("manager".into()).spawn(extend);
}

fn say(states: &[NotifyState<'_>]) {
    if let Err(error) = notify(states) {
        log::warn!("NOTIFY_SOCKET: {error}");
    }
}
