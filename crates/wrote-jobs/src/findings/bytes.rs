//! Findings on where a row's bytes went (to the device or to memory), and on foreign traffic.

use super::Evidence;
use crate::machine::watch::CachedLoop;
use std::collections::BTreeMap;
use wrote_result::document::{Device, Direction, Finding, Flush, Row, Run, View};
use wrote_result::units::{bytes, part, rate};

/// Foreign traffic is reported only above this share of the row's bytes, and above this number of
/// bytes.
const FOREIGN_SHARE_MIN: f64 = 0.1;
const FOREIGN_BYTES_MIN: u64 = 64_000_000;
/// A direct row is taken to have gone through the page cache if the cache holds this share of its
/// bytes afterwards, and at least this number of bytes.
const CACHED_SHARE_MIN: f64 = 0.5;
const CACHED_BYTES_MIN: u64 = 65_536;
/// Write amplification is reported only above this factor of the file's bytes, and above this
/// number of bytes.
const AMPLIFIED_MIN: f64 = 1.5;
const AMPLIFIED_BYTES_MIN: u64 = 4_000_000;

pub(super) fn ram_not_disk(evidence: &Evidence, direction: Direction) -> Option<Finding> {
    // Direct rows have a separate finding.
    let rows = evidence.rows_where(|row| {
        row.direction == direction
            && !row.settings.effective.direct
            && stayed_in_memory(evidence, row) == Some(true)
    })?;
    let moved: Vec<Moved> = rows.iter().filter_map(|row| Moved::of(row)).collect();
    let file_bytes: u64 = moved.iter().map(|moved| moved.file_bytes).sum();
    let unseen_bytes: u64 = moved.iter().map(Moved::unseen_bytes).sum();
    let (happened, device_bytes) = match direction {
        Direction::Write => ("had reached the device when the run ended", "device_written_bytes"),
        Direction::Read => ("came from the device", "device_read_bytes"),
    };
    let seen = match file_bytes - unseen_bytes {
        0 => format!("none of {}", bytes(file_bytes)),
        seen_bytes => format!("only {}", part(seen_bytes, file_bytes)),
    };
    let text = format!(
        "Memory speed, not disk speed: {seen} {happened}. Rows that flush, or that read more than \
         memory holds, show the disk's speed"
    );
    Finding::warning("ram-not-disk", text)
        .about(&rows)
        .with("file_bytes", file_bytes)
        .with(device_bytes, file_bytes - unseen_bytes)
        .with("memory_bytes", evidence.host.memory_bytes)
        .into()
}

/// Finds rows for which `O_DIRECT` was accepted although their bytes went through the page cache.
pub(super) fn direct_not_honoured(evidence: &Evidence) -> Option<Finding> {
    let below = cached_loop(evidence);
    let rows = evidence.rows_where(|row| {
        row.settings.effective.direct
            && (is_in_page_cache(row)
                || missed_the_device(evidence, row)
                || below.is_some() && is_unflushed_write(row))
    })?;
    let sum =
        |figure: fn(&Run) -> u64| rows.iter().flat_map(|row| &row.runs).map(figure).sum::<u64>();
    let file_bytes = sum(|run| run.bytes);
    let cached_bytes = sum(|run| run.page_cache_bytes.unwrap_or(0));
    let missed = rows.iter().filter(|row| missed_the_device(evidence, row));
    let unseen_bytes: u64 =
        missed.filter_map(|row| Moved::of(row)).map(|moved| moved.unseen_bytes()).sum();
    let mut signs = Vec::new();
    if rows.iter().any(|row| is_in_page_cache(row)) {
        signs.push(format!("the page cache held {} afterwards", part(cached_bytes, file_bytes)));
    }
    if unseen_bytes > 0 {
        signs.push(format!("{} stayed in memory during the run", part(unseen_bytes, file_bytes)));
    }
    let of_loop = below.filter(|_| rows.iter().any(|row| is_unflushed_write(row)));
    signs.extend(of_loop.map(|below| {
        format!("{} puts unflushed writes into the page cache of {}", below.disk, below.file)
    }));
    let text = format!(
        "O_DIRECT had no effect: {}. Treat these rows as cached I/O, for speed and for safety",
        signs.join(", and "),
    );
    Finding::warning("direct-not-honoured", text)
        .about(&rows)
        .with("file_bytes", file_bytes)
        .with("page_cache_bytes", cached_bytes)
        .with("unseen_bytes", unseen_bytes)
        .with("cached_loop", of_loop.map(|below| &below.disk))
        .into()
}

/// Returns whether most of a row's bytes did not pass through the device, although the row read no
/// unwritten blocks. Reads of unwritten blocks never reach a device, and have a separate finding.
fn missed_the_device(evidence: &Evidence, row: &Row) -> bool {
    let is_unwritten = row.runs.iter().any(|run| run.unwritten_bytes > Some(0));
    !is_unwritten && stayed_in_memory(evidence, row) == Some(true)
}

/// Returns a loop device below the path that uses the page cache for its backing file; `None` if
/// there is none, or if the file system is in memory.
fn cached_loop<'a>(evidence: &'a Evidence) -> Option<&'a CachedLoop> {
    evidence.watched.before.cached_loops.first().filter(|_| !evidence.in_memory)
}

fn is_unflushed_write(row: &Row) -> bool {
    row.direction == Direction::Write && row.settings.effective.sync == Flush::None
}

/// Returns whether the page cache holds a large share of a row's bytes after its runs. A run that
/// repeats its offsets moves more bytes than the file contains.
fn is_in_page_cache(row: &Row) -> bool {
    let mut cached_bytes_total = 0;
    let mut moved_bytes_total = 0;
    for run in &row.runs {
        let Some(cached_bytes) = run.page_cache_bytes else { continue };
        cached_bytes_total += cached_bytes;
        moved_bytes_total += run.bytes.min(row.settings.effective.size_bytes.max(cached_bytes));
    }
    cached_bytes_total >= CACHED_BYTES_MIN
        && cached_bytes_total as f64 >= CACHED_SHARE_MIN * moved_bytes_total as f64
}

/// Finds direct reads on ZFS that might have come from its cache (ARC), because they cover less
/// than the machine's memory. `O_DIRECT` bypasses the ARC only since OpenZFS 2.3, and no system
/// call shows whether a read did.
pub(super) fn zfs_cache(evidence: &Evidence) -> Option<Finding> {
    let of = |row: &Row| {
        let settings = &row.settings.effective;
        let bytes = settings.size_bytes.saturating_mul(settings.numjobs.max(1).into());
        row.direction == Direction::Read && settings.direct && bytes < evidence.host.memory_bytes
    };
    let rows = evidence.rows_where(of).filter(|_| evidence.target.filesystem == "zfs")?;
    let text = "ZFS may have answered direct reads from memory: before OpenZFS 2.3, O_DIRECT does \
                not bypass its cache (ARC). Read more than memory, or set primarycache=metadata";
    Finding::warning("zfs-cache", text)
        .about(&rows)
        .with("memory_bytes", evidence.host.memory_bytes)
        .into()
}

pub(super) fn busy_neighbour(evidence: &Evidence) -> Option<Finding> {
    if let Some(finding) = disturbed(evidence) {
        return Some(finding);
    }
    let own = evidence.rows.iter().filter(|row| counts(evidence) && moves_its_own_bytes_alone(row));
    let (rows, moved): (Vec<&Row>, Vec<Moved>) = own
        .filter_map(|row| Some((row, Moved::of(row)?)))
        .filter(|(_, moved)| is_shared(moved))
        .unzip();
    if moved.is_empty() {
        return None;
    }
    let file_bytes: u64 = moved.iter().map(|moved| moved.file_bytes).sum();
    let foreign_bytes: u64 = moved.iter().map(Moved::foreign_bytes).sum();
    let elapsed_s: f64 = moved.iter().map(|moved| moved.elapsed_s).sum();
    let foreign_share = foreign_bytes as f64 / file_bytes as f64;
    let foreign_bytes_per_s = foreign_bytes as f64 / elapsed_s.max(f64::MIN_POSITIVE);
    let text = format!(
        "Another program was using this disk: {} of its traffic was not ours, which is {:.0} % of \
         our own. Find that program with iotop -o, stop it, and measure again. RAID or snapshots \
         can look the same",
        rate(foreign_bytes_per_s),
        foreign_share * 100.0,
    );
    Finding::warning("busy-neighbour", text)
        .about(&rows)
        .with("file_bytes", file_bytes)
        .with("foreign_bytes", foreign_bytes)
        .with("foreign_share", foreign_share)
        .with("foreign_bytes_per_s", foreign_bytes_per_s)
        .into()
}

/// Returns the finding on rows whose runs other programs disturbed; `None` unless more than a tenth
/// of all runs were disturbed.
fn disturbed(evidence: &Evidence) -> Option<Finding> {
    let rows = evidence.rows_where(|row| row.runs.iter().any(Run::is_disturbed))?;
    let all: usize = evidence.rows.iter().map(|row| row.runs.len()).sum();
    let runs = || rows.iter().flat_map(|row| &row.runs).filter(|run| run.is_disturbed());
    let disturbed = runs().count();
    if disturbed as f64 <= FOREIGN_SHARE_MIN * all as f64 {
        return None;
    }
    let most = runs().filter_map(|run| run.foreign_share).fold(0.0, f64::max);
    let text = format!(
        "Other programs used the disk or the CPUs during {disturbed} of {all} runs, up to {:.0} % \
         of the time. Find them with iotop -o and top, stop them, and measure again",
        most * 100.0,
    );
    Finding::warning("busy-neighbour", text)
        .about(&rows)
        .with("disturbed_runs", disturbed)
        .with("foreign_share_max", most)
        .into()
}

/// Returns whether the device should move little more than a row's bytes as long as no other
/// process uses it. That holds for a direct row with few flushes, since each flush may commit a
/// journal.
fn moves_its_own_bytes_alone(row: &Row) -> bool {
    let settings = &row.settings.effective;
    // A log adds a frame to each message, which may be large compared with a short message.
    row.view() != View::Messages && settings.direct && settings.sync.is_seldom()
}

fn is_shared(moved: &Moved) -> bool {
    let foreign_bytes = moved.foreign_bytes();
    foreign_bytes > FOREIGN_BYTES_MIN
        && foreign_bytes as f64 > FOREIGN_SHARE_MIN * moved.file_bytes as f64
}

/// Finds rows whose frequent flushes make the device write much more than the file's bytes. If
/// another program was using the disk, the cause is unknown, and there is no finding.
pub(super) fn write_amplification(evidence: &Evidence) -> Option<Finding> {
    if busy_neighbour(evidence).is_some() || !counts(evidence) {
        return None;
    }
    let flushes = |row: &&Row| {
        let sync = row.settings.effective.sync;
        let often = !sync.is_seldom() && sync != Flush::Everysec;
        row.direction == Direction::Write && often
    };
    let (rows, amplified): (Vec<&Row>, Vec<Moved>) = evidence
        .rows
        .iter()
        .filter(flushes)
        .filter_map(|row| Some((row, Moved::of(row)?)))
        .filter(|(_, moved)| is_amplified(moved))
        .unzip();
    let factor = |moved: &Moved| moved.device_bytes as f64 / moved.file_bytes as f64;
    let each = || rows.iter().zip(amplified.iter().map(factor));
    let factor_max = each().map(|(_, factor)| factor).max_by(f64::total_cmp)?;
    let doubt = match device_was_ours(evidence) {
        true => "",
        false => ". Caution: if another program was writing, its bytes are included",
    };
    let text = format!(
        "Each flushed byte cost up to {factor_max:.1} bytes on the device, as journal, metadata \
         and partly filled blocks, so flash wears {factor_max:.1} times as fast. Put more records \
         into each flush{doubt}"
    );
    let factors: BTreeMap<_, _> = each().map(|(row, factor)| (&row.name, factor)).collect();
    let sum = |figure: fn(&Moved) -> u64| amplified.iter().map(figure).sum::<u64>();
    Finding::info("write-amplification", text)
        .about(&rows)
        .with("file_bytes", sum(|moved| moved.file_bytes))
        .with("device_written_bytes", sum(|moved| moved.device_bytes))
        .with("device_bytes_per_file_byte", factors)
        .into()
}

/// Returns whether there are rows that move little more than their file bytes, and none of them saw
/// foreign traffic.
fn device_was_ours(evidence: &Evidence) -> bool {
    let is_alone =
        |moved: Moved| moved.foreign_bytes() as f64 <= FOREIGN_SHARE_MIN * moved.file_bytes as f64;
    let witnesses = evidence.rows.iter().filter(|row| moves_its_own_bytes_alone(row));
    let mut seen = witnesses.filter_map(Moved::of).peekable();
    seen.peek().is_some() && seen.all(is_alone)
}

fn is_amplified(moved: &Moved) -> bool {
    moved.device_bytes as f64 > AMPLIFIED_MIN * moved.file_bytes as f64
        && moved.device_bytes - moved.file_bytes >= AMPLIFIED_BYTES_MIN
}

/// A row is taken to have gone to memory if the device moved less than this share of its file
/// bytes.
const REACHED_SHARE_MIN: f64 = 0.9;

/// Returns whether most of a row's bytes stayed in memory while its clock ran; `None` if the
/// device's counters do not show it.
pub fn stayed_in_memory(evidence: &Evidence, row: &Row) -> Option<bool> {
    // Data that was compressed on its way to the device has reached it, although the counters show
    // fewer bytes.
    let shrinks = row.settings.effective.data.is_some() && compresses(evidence);
    let moved = Moved::of(row).filter(|_| counts(evidence) && !shrinks)?;
    Some((moved.device_bytes as f64) < REACHED_SHARE_MIN * moved.file_bytes as f64)
}

/// Returns whether the counters of the target's device show how many bytes it moved.
pub fn counts(evidence: &Evidence) -> bool {
    evidence.device_counts && evidence.target.device.is_some() && !evidence.in_memory
}

/// Returns the number of bytes that a row reads from its source while its clock runs.
pub fn source_bytes(row: &Row) -> u64 {
    let copies = row.settings.effective.source_cache.is_some();
    if copies { row.runs.iter().map(|run| run.bytes).sum() } else { 0 }
}

/// Returns whether the target is known to compress data: it has a mount option for that, or it is
/// ZFS or zram.
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

/// The sums over those runs of a row whose device counters were read.
pub(super) struct Moved {
    pub(super) file_bytes: u64,
    /// The device's bytes in the row's direction.
    pub(super) device_bytes: u64,
    /// The device's bytes in the other direction. A copy's reads of its source are not included.
    contrary_bytes: u64,
    pub(super) elapsed_s: f64,
}

impl Moved {
    /// Returns the sums; `None` if no run has counters, or if the runs moved no bytes.
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

    /// Returns the number of bytes that the device moved in addition to the file's bytes, in both
    /// directions.
    pub(super) fn foreign_bytes(&self) -> u64 {
        self.device_bytes.saturating_sub(self.file_bytes) + self.contrary_bytes
    }

    /// Returns the number of file bytes that the device did not move.
    pub(super) fn unseen_bytes(&self) -> u64 {
        self.file_bytes.saturating_sub(self.device_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::tests::{direct, found};
    use crate::sample::{evidence, target};
    use wrote_result::document::Target;

    #[test]
    fn direct_reads_of_less_than_memory_are_doubted_on_zfs_alone() {
        let with = |filesystem: &str, change: fn(&mut Row)| {
            let target = Target { filesystem: filesystem.into(), ..target() };
            let mut row = Row { direction: Direction::Read, ..direct() };
            change(&mut row);
            found(&evidence(&target, &[row]), "zfs-cache")
        };
        let finding = with("zfs", |_| {}).unwrap();
        assert!(finding.text.contains("from memory: before OpenZFS"), "{}", finding.text);
        assert!(finding.text.ends_with(". Row: stream/direct-psync"), "{}", finding.text);
        assert!(with("ext4", |_| {}).is_none());
        assert!(with("zfs", |row| row.direction = Direction::Write).is_none());
        assert!(with("zfs", |row| row.settings.effective.direct = false).is_none());
        assert!(with("zfs", |row| row.settings.effective.size_bytes = 1 << 40).is_none());
    }
}
