//! Findings on the target as it was before the run (its file system, the device below it, leftovers
//! of earlier runs), and on the build of the program.

use super::Evidence;
use crate::machine::target::{self, USED_SHARE_MAX};
use wrote_result::document::{Finding, Row, Severity, Survives, Target};
use wrote_result::quoted;
use wrote_result::units::{bytes, exact};

/// The size that a drive's fast cache may have. Small drives have about 4 GB, large ones hundreds.
const CACHE_BYTES: u64 = 16_000_000_000;

/// The number of bytes whose write shows, on most drives, whether the disk slows down.
const LONG_BYTES: u64 = 100_000_000_000;
/// The minimum size of a longer write, as a multiple of what the measurement wrote.
const LONGER_TIMES: u64 = 2;
/// The divisor of the free space that yields the part left for the file's metadata.
const SPARE_PART: u64 = 50;

/// A command that writes more than the measurement did.
#[derive(Clone, Debug, PartialEq)]
pub struct Longer {
    /// The command, quoted for a shell.
    pub command: String,
    /// The number of bytes that the command writes to one file.
    pub size_bytes: u64,
}

/// Returns a command that writes enough to the target to show whether the disk slows down; `None`
/// if there is no room for its file.
pub fn longer(target: &Target, written_bytes: u64) -> Option<Longer> {
    let room_bytes = match target.capacity_bytes {
        0 => u64::MAX,
        capacity => target::budget(capacity, target.free_bytes),
    };
    let size_bytes = target::rounded_down(room_bytes - room_bytes / SPARE_PART).min(LONG_BYTES);
    let size = exact(size_bytes);
    let words = ["wrote", "bench", &target.path, "--only", "sustained", "--size", &size];
    let command = quoted(&words);
    (size_bytes >= written_bytes * LONGER_TIMES).then_some(Longer { command, size_bytes })
}

pub(super) fn no_block_device(evidence: &Evidence) -> Option<Finding> {
    let target = evidence.target;
    if target.device.is_some() && !evidence.in_memory {
        return None;
    }
    let because = target.no_device_because.as_deref().unwrap_or("the kernel names none");
    let (severity, text) = if evidence.in_memory {
        let what = target.device.as_ref().map_or(&target.filesystem, |device| &device.name);
        let text = format!(
            "{what} is in memory: no figure here is a disk's, and nothing survives a power loss. \
             Name a folder on the disk to measure"
        );
        (Severity::Warning, text)
    } else {
        let text = format!(
            "No block device is known ({because}): whether the bytes reached a disk cannot be \
             measured. Measure on the machine that has the disk"
        );
        (Severity::Info, text)
    };
    Finding::new("no-block-device", severity, text)
        .with("filesystem", &target.filesystem)
        .with("because", because)
        .with("in_memory", evidence.in_memory)
        .into()
}

/// Finds a file system without a journal, where the levels of survival do not hold
/// (`docs/durability.md`).
pub(super) fn no_journal(evidence: &Evidence) -> Option<Finding> {
    let target = evidence.target;
    if target.has_journal != Some(false) && target.filesystem != "ext2" {
        return None;
    }
    let rows = evidence.rows_where(|row: &Row| row.survives == Some(Survives::PowerLoss))?;
    let text = format!(
        "A power loss may lose flushed files: {} has no journal here, and its repair (fsck) may \
         drop files in new folders. Keep data that must last on a file system with a journal",
        target.filesystem
    );
    Finding::warning("no-journal", text).about(&rows).with("filesystem", &target.filesystem).into()
}

pub(super) fn counters_off(evidence: &Evidence) -> Option<Finding> {
    let device = evidence.target.device.as_ref().filter(|_| !evidence.device_counts)?;
    let text = format!(
        "{} keeps no statistics: whether the bytes reached the disk or stayed in memory cannot be \
         measured. Write 1 to its queue/iostats (in /sys/block), and measure again",
        device.name
    );
    Finding::info("counters-off", text).with("device", &device.name).into()
}

pub(super) fn nearly_full(evidence: &Evidence) -> Option<Finding> {
    let Target { capacity_bytes, free_bytes, .. } = *evidence.target;
    // A device without a file system cannot be full.
    if capacity_bytes == 0 || evidence.target.filesystem == "none" {
        return None;
    }
    let used_share = 1.0 - free_bytes as f64 / capacity_bytes as f64;
    if used_share <= USED_SHARE_MAX {
        return None;
    }
    let text = format!(
        "The file system is {:.0} % full ({} free of {}), and full disks are slower. Free space, \
         and measure again",
        used_share * 100.0,
        bytes(free_bytes),
        bytes(capacity_bytes),
    );
    Finding::warning("nearly-full", text)
        .with("used_share", used_share)
        .with("free_bytes", free_bytes)
        .with("capacity_bytes", capacity_bytes)
        .into()
}

pub(super) fn within_drive_cache(evidence: &Evidence) -> Option<Finding> {
    let device = evidence.target.device.as_ref().filter(|device| !device.rotational)?;
    let written_bytes = evidence.written_bytes_total;
    // A sustained row has a separate finding.
    let long = evidence.rows.iter().any(|row| row.sustained.is_some());
    if long || evidence.in_memory || written_bytes == 0 || written_bytes >= CACHE_BYTES {
        return None;
    }
    let measure = match longer(evidence.target, written_bytes) {
        Some(Longer { command, .. }) => format!("`{command}` shows the lasting rate"),
        None => "Free space to measure the lasting rate".into(),
    };
    let text = format!(
        "This may be a burst: the run wrote {}, and many SSDs have a fast cache of 4 to 700 GB. \
         {measure}",
        bytes(written_bytes)
    );
    Finding::info("within-drive-cache", text)
        .with("device", &device.name)
        .with("written_bytes_total", written_bytes)
        .with("threshold_bytes", CACHE_BYTES)
        .into()
}

pub(super) fn debug_build(evidence: &Evidence) -> Option<Finding> {
    let text = "This program was built without optimisation, so its CPU figures and fastest rows \
                mean little. Build it with --release";
    let finding = || Finding::warning("debug-build", text).with("debug_build", true);
    evidence.debug_build.then(finding)
}

pub(super) fn leftovers(evidence: &Evidence) -> Option<Finding> {
    if evidence.leftovers.is_empty() {
        return None;
    }
    let text = format!(
        "An earlier run was killed and left {}. `{}` removes it",
        evidence.leftovers.join(", "),
        quoted(&["wrote", "clean", &evidence.target.path])
    );
    Finding::info("leftovers", text).with("folders", &evidence.leftovers).into()
}
