//! Throttles warnings about clients, so that no client can fill a disk with them.

use std::fmt::Display;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_secs(5);

/// Warnings of one kind, at most one every five seconds.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    /// When the last was logged, and how many were suppressed since.
    last: Mutex<(Option<Instant>, u64)>,
}

impl Throttle {
    /// Logs the warning, or counts it for the next one.
    pub(crate) fn warn(&self, text: impl Display) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, left_out) = *last;
        if before.is_some_and(|before| before.elapsed() < PAUSE) {
            last.1 += 1;
            return;
        }
        *last = (Some(Instant::now()), 0);
        drop(last);
        match left_out {
            0 => log::warn!("{text}"),
            _ => log::warn!("{text} (and {left_out} more before)"),
        }
    }
}
