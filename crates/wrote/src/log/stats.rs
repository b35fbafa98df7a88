//! Counters of an open log.

use super::options::Prepare;
use crate::Durable;
use std::sync::atomic::{AtomicU64, Ordering};

/// Figures of a log since it was opened.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LogStats {
    /// The sequence of the first record that is there.
    pub first_sequence: u64,
    /// The sequence that the next record gets.
    pub next_sequence: u64,
    /// Every record before this one has been handed to the kernel.
    pub written_sequence: u64,
    /// Every record before this one survives a power loss.
    pub durable_sequence: u64,
    /// Batches written.
    pub batches: u64,
    /// Flushes, and writes that were durable by themselves.
    pub flushes: u64,
    /// Bytes written to segments, with the padding of blocks; without those that prepare segments.
    pub written_bytes: u64,
    /// Segments begun.
    pub segments: u64,
    /// Segments that retention removed.
    pub removed: u64,
    /// How records are made durable here.
    pub durable: Durable,
    /// How segments are prepared; `None` for lines.
    pub prepare: Option<Prepare>,
}

/// The counters behind [`LogStats`].
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub first_sequence: AtomicU64,
    pub batches: AtomicU64,
    pub flushes: AtomicU64,
    pub written_bytes: AtomicU64,
    pub segments: AtomicU64,
    pub removed: AtomicU64,
}

impl Counters {
    /// Returns the figures that are counted; the others keep their defaults.
    pub(super) fn stats(&self) -> LogStats {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LogStats {
            first_sequence: count(&self.first_sequence),
            batches: count(&self.batches),
            flushes: count(&self.flushes),
            written_bytes: count(&self.written_bytes),
            segments: count(&self.segments),
            removed: count(&self.removed),
            ..LogStats::default()
        }
    }
}

/// Adds to a counter.
pub(super) fn add(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}
