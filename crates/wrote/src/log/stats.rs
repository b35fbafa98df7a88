//! Figures of an open log.

use super::options::Prepare;
use crate::Durable;
use std::path::PathBuf;
use std::time::Duration;

/// The findings of a log's opening, and its figures since.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LogStats {
    /// Records found on opening, with the places that were skipped.
    pub found_records: u64,
    /// Whether the opening found that the log had been closed.
    pub found_closed: bool,
    /// Bytes found on opening after the last whole record, of a write interrupted by a crash.
    pub torn_bytes: u64,
    /// The files that keep these bytes.
    pub kept_aside: Vec<PathBuf>,
    /// The sequence of the first remaining record.
    pub first_sequence: u64,
    /// The sequence that the next record gets.
    pub next_sequence: u64,
    /// Every record before this one has been passed to the kernel.
    pub written_sequence: u64,
    /// Every record before this one survives power loss.
    pub durable_sequence: u64,
    /// Batches written.
    pub batches: u64,
    /// Batches that were held back so that earlier records become durable in time: the disk is
    /// slower than the producers, with `EverySec` or `Interval`.
    pub late_batches: u64,
    /// Flushes, and writes that were durable by themselves.
    pub flushes: u64,
    /// The time that they took; they never overlap.
    pub flush_time: Duration,
    /// Bytes written to segments, with the padding of blocks, without the preparation of segments.
    pub written_bytes: u64,
    /// The part of `written_bytes` that was flushed. The rest is in the kernel's memory or in the
    /// device's, and a power loss may take it.
    pub flushed_bytes: u64,
    /// Segments begun.
    pub segments: u64,
    /// Segments that retention removed.
    pub removed: u64,
    /// Segments begun in the file of a removed one.
    pub recycled: u64,
    /// How records are made durable here.
    pub durable: Durable,
    /// How segments are prepared; `None` for lines.
    pub prepare: Option<Prepare>,
}
