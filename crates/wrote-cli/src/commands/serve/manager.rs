//! Messages to the service manager, as sd_notify(3) describes; none if there is no manager.

use sd_notify::{NotifyState, notify};
use std::thread;
use std::time::{Duration, Instant};

/// How long the manager waits for the next message of a draining server.
const EXTENSION: Duration = Duration::from_secs(10);
/// The pause between two such messages.
const EXTENSION_PAUSE: Duration = Duration::from_secs(2);
/// The time that closing the logs may take after the grace. The manager handles a disk that hangs
/// longer.
const CLOSING: Duration = Duration::from_secs(60);

/// Reports that messages are accepted.
pub(super) fn ready(status: &str) {
    say(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// Reports that files are being reloaded, until [`ready`].
pub(super) fn reloading() {
    // From version 253 on systemd takes it only with the time.
    match NotifyState::monotonic_usec_now() {
        Ok(now) => say(&[NotifyState::Reloading, now]),
        Err(_) => say(&[NotifyState::Reloading]),
    }
}

/// Reports that the server drains, and requests as much time as that may take.
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
    // Without a thread the manager waits for its configured time. The thread ends with the program.
    let _ = thread::Builder::new().name("manager".into()).spawn(extend);
}

fn say(states: &[NotifyState<'_>]) {
    if let Err(error) = notify(states) {
        log::warn!("NOTIFY_SOCKET: {error}");
    }
}
