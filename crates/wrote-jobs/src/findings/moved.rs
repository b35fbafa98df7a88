//! Bytes that a row moved, and bytes that the device moved during the row's runs.

use super::Evidence;
use wrote_result::document::{Device, Direction, Row, Run};

/// A row went to memory if the device moved less than this share of its file bytes.
const REACHED_SHARE_MIN: f64 = 0.9;

/// Returns whether most of a row's bytes stayed in memory while its clock ran; `None` where the
/// device's counters do not count.
pub fn stayed_in_memory(evidence: &Evidence, row: &Row) -> Option<bool> {
    // Bytes that were compressed on their way did arrive.
    let shrinks = row.settings.effective.data.is_some() && compresses(evidence);
    let moved = Moved::of(row).filter(|_| counts(evidence) && !shrinks)?;
    Some((moved.device_bytes as f64) < REACHED_SHARE_MIN * moved.file_bytes as f64)
}

/// Returns whether the counters of the target's device show how many bytes it moved.
pub fn counts(evidence: &Evidence) -> bool {
    evidence.device_counts && evidence.target.device.is_some() && !evidence.in_memory
}

/// Returns the bytes of its source that a row reads while its clock runs.
pub fn source_bytes(row: &Row) -> u64 {
    let copies = row.settings.effective.source_cache.is_some();
    if copies { row.runs.iter().map(|run| run.bytes).sum() } else { 0 }
}

/// Returns whether the target is known to compress: by a mount option, as ZFS or as zram.
pub(super) fn compresses(evidence: &Evidence) -> bool {
    let target = evidence.target;
    let compresses = |option: &String| {
        option.strip_prefix("compress").is_some_and(|rest| !rest.starts_with("=no"))
    };
    let is_zram = |device: &Device| {
        device.disks.iter().chain([&device.name]).any(|disk| disk.starts_with("zram"))
    };
    target.filesystem == "zfs"
        || target.mount_options.iter().any(compresses)
        || target.device.as_ref().is_some_and(is_zram)
}

/// Sums over the runs of a row whose device counters were read.
pub(super) struct Moved {
    pub(super) file_bytes: u64,
    /// Device bytes in the row's own direction.
    pub(super) device_bytes: u64,
    /// Device bytes in the other direction, beyond a copy's source.
    contrary_bytes: u64,
    pub(super) elapsed_s: f64,
}

impl Moved {
    /// Returns the sums; `None` where no run has counters, or none moved a byte.
    pub(super) fn of(row: &Row) -> Option<Moved> {
        let own = |run: &&Run| match row.direction {
            Direction::Write => run.device_written_bytes.is_some(),
            Direction::Read => run.device_read_bytes.is_some(),
        };
        let counted: Vec<&Run> = row.runs.iter().filter(own).collect();
        let sum = |figure: fn(&Run) -> u64| counted.iter().map(|run| figure(run)).sum::<u64>();
        let written_bytes = sum(|run| run.device_written_bytes.unwrap_or(0));
        let read_bytes = sum(|run| run.device_read_bytes.unwrap_or(0));
        let (device_bytes, contrary_bytes) = match row.direction {
            Direction::Write => (written_bytes, read_bytes),
            Direction::Read => (read_bytes, written_bytes),
        };
        let moved = Moved {
            file_bytes: sum(|run| run.bytes),
            device_bytes,
            contrary_bytes: contrary_bytes.saturating_sub(source_bytes(row)),
            elapsed_s: counted.iter().map(|run| run.elapsed_s).sum(),
        };
        (moved.file_bytes > 0).then_some(moved)
    }

    /// Returns the device bytes beyond the file's, in both directions.
    pub(super) fn foreign_bytes(&self) -> u64 {
        self.device_bytes.saturating_sub(self.file_bytes) + self.contrary_bytes
    }

    /// Returns the file bytes that the device did not move.
    pub(super) fn unseen_bytes(&self) -> u64 {
        self.file_bytes.saturating_sub(self.device_bytes)
    }
}
