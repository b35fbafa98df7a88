//! Findings on a device that contradicts its description, or that prefers different writes.

use super::{Evidence, FirstTouch};
use std::collections::BTreeMap;
use wrote_result::document::{Direction, Finding, Row, Severity, View};
use wrote_result::units::{block_size, nanoseconds, rate, significant};

/// A flash chip takes longer than this to store a page: typically 300 us (patent EP 1850348,
/// according to Micron's data sheets), and less in the fastest chips.
const STORED_NS_MIN: u64 = 50_000;
/// Half a rotation of the fastest hard disks (15,000 rpm). On average, a write waits at least this
/// long for its sector.
const TURNED_NS_MIN: u64 = 2_000_000;
/// The minimum number of writes for a meaningful median.
const WRITES_MIN: u64 = 20;

/// Finds durable writes that are too fast for flash memory on a device that reports a volatile
/// cache. Either the device has capacitors, or a flush returns before the data is safe.
pub(super) fn implausible_flush(evidence: &Evidence) -> Option<Finding> {
    let device = evidence.target.device.as_ref()?;
    if evidence.in_memory || device.write_cache != "write back" {
        return None;
    }
    // The disk of a virtual machine often reports that it is rotational.
    let turns = device.rotational && evidence.host.virtualization == "none";
    let (stored_ns_min, needs) = match turns {
        true => (TURNED_NS_MIN, "half a turn of a hard disk"),
        false => (STORED_NS_MIN, "flash memory needs"),
    };
    let p50_ns = |row: &Row| row.latency().filter(|of| of.count >= WRITES_MIN).map(|of| of.p50);
    let rows = evidence.rows_where(|row| {
        row.is_durable()
            && row.view() == View::Operations
            && row.settings.effective.sync.is_each()
            && p50_ns(row).is_some_and(|ns| ns < stored_ns_min)
    })?;
    let fastest_ns = rows.iter().filter_map(|row| p50_ns(row)).min()?;
    let text = format!(
        "Implausible flush: a durable write takes {}, less than {needs}. Either the cache of {} has \
         capacitors, or a flush returns before the bytes are safe. Test a power loss before you \
         rely on it",
        nanoseconds(fastest_ns),
        device.name,
    );
    Finding::warning("implausible-flush", text)
        .about(&rows)
        .with("p50_ns", fastest_ns)
        .with("stored_ns_min", stored_ns_min)
        .into()
}

/// The block size from which a stream can be expected to fill the device's preferred transfer.
const STREAM_BS_BYTES_MIN: u64 = 64 << 10;
/// A larger preferred transfer is an error of a USB bridge: many report 65,535 sectors.
const OPTIMAL_BYTES_MAX: u64 = 16 << 20;

/// Finds writes that are not multiples of the size that the device prefers.
pub(super) fn preferred_larger(evidence: &Evidence) -> Option<Finding> {
    let mut preferred: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let mut severity = Severity::Info;
    for row in evidence.rows.iter().filter(|row| reaches_device(row)) {
        let Some((bytes, is_slower)) = preferred_bytes(evidence, row) else { continue };
        preferred.insert(&row.name, (row.settings.effective.bs_bytes, bytes));
        severity = severity.max(if is_slower { Severity::Warning } else { Severity::Info });
    }
    let rows = evidence.rows_where(|row| preferred.contains_key(row.name.as_str()))?;
    let (bs_bytes, bytes) = *preferred.get(rows[0].name.as_str())?;
    let text = format!(
        "Writes of {} do not fill the {} that {} prefers, so it may have to read, change and \
         rewrite a block. Write multiples of {1}",
        block_size(bs_bytes),
        block_size(bytes),
        evidence.target.device.as_ref().map_or("the device", |device| &device.name),
    );
    Finding::new("preferred-larger", severity, text)
        .about(&rows)
        .with("bs_bytes", bs_bytes)
        .with("preferred_bytes", bytes)
        .into()
}

/// Returns whether the device receives each write of the row as a single write.
fn reaches_device(row: &Row) -> bool {
    let settings = &row.settings.effective;
    row.direction == Direction::Write
        && row.view() == View::Operations
        && settings.bs_bytes > 0
        && settings.direct
        // A database writes a page in several writes.
        && row.torn.is_none()
}

/// Returns the device's preferred size if the row's writes are not multiples of it, and whether the
/// row must be slower for that reason. A stream that does not fill a stripe may be as fast.
fn preferred_bytes(evidence: &Evidence, row: &Row) -> Option<(u64, bool)> {
    let bs_bytes = row.settings.effective.bs_bytes;
    let device = evidence.target.device.as_ref();
    let unit = |bytes: u32| u64::from(bytes.max(1));
    let physical = device.map_or(1, |device| unit(device.physical_block_bytes));
    if !bs_bytes.is_multiple_of(physical) {
        return Some((physical, true));
    }
    let optimal = device.map_or(1, |device| unit(device.optimal_io_bytes.unwrap_or(1)));
    let is_stream = !row.is_random() && bs_bytes >= STREAM_BS_BYTES_MIN;
    let is_unit = optimal.is_multiple_of(4096) && optimal <= OPTIMAL_BYTES_MAX;
    (is_stream && is_unit && !bs_bytes.is_multiple_of(optimal)).then_some((optimal, false))
}

/// The minimum ratio of the second write's rate to the first's, for a finding.
const AGAIN_MIN: f64 = 2.0;

/// Finds a volume on which the first write to a block is slow: a volume created from a snapshot, a
/// thin volume, or a loop device on a sparse file.
pub(super) fn first_touch(evidence: &Evidence) -> Option<Finding> {
    let FirstTouch { first_bytes_per_s, again_bytes_per_s } = evidence.first_touch?;
    let times = again_bytes_per_s / first_bytes_per_s.max(f64::MIN_POSITIVE);
    let text = format!(
        "First writes are slower: new blocks took {}, the same blocks again {} ({} times as much). \
         Rows depend on which blocks their files get. Write all free space once, and measure again",
        rate(first_bytes_per_s),
        rate(again_bytes_per_s),
        significant(times),
    );
    (times >= AGAIN_MIN).then(|| {
        Finding::warning("first-touch", text)
            .with("first_bytes_per_s", first_bytes_per_s)
            .with("again_bytes_per_s", again_bytes_per_s)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::tests::found;
    use crate::sample::{evidence, row, target};
    use wrote_result::document::{Device, Latency, Target};

    fn on(device: Device) -> Target {
        Target { device: Some(Device { name: "sda".into(), ..device }), ..target() }
    }

    #[test]
    fn a_durable_write_that_no_flash_can_store_is_implausible_behind_a_volatile_cache_alone() {
        let durable = |p50, count, name: &str| Row {
            latency_ns: Some(Latency { p50, count, ..Latency::default() }),
            ..row(name, "power-loss", &[20e6, 20e6])
        };
        let with = |cache: &str, row: Row| {
            let target = on(Device { write_cache: cache.into(), ..Device::default() });
            let rows = [row];
            let of = evidence(&target, &rows);
            let in_memory = Evidence { in_memory: true, ..of.clone() };
            assert!(found(&in_memory, "implausible-flush").is_none());
            found(&of, "implausible-flush")
        };
        let finding = with("write back", durable(31_000, 5000, "small/o_dsync-each")).unwrap();
        assert!(
            finding.text.starts_with("Implausible flush: a durable write takes 31.0 us, less"),
            "{}",
            finding.text
        );
        assert!(with("write through", durable(31_000, 5000, "small/o_dsync-each")).is_none());
        assert!(with("write back", durable(90_000, 5000, "small/o_dsync-each")).is_none());
        assert!(with("write back", durable(31_000, 5, "small/o_dsync-each")).is_none());
        assert!(with("write back", durable(31_000, 5000, "small/fdatasync-at-end")).is_none());
    }

    fn sized(name: &str, bs_bytes: u64, iops: f64) -> Row {
        let mut row = row(name, "process-crash", &[iops * bs_bytes as f64, iops * bs_bytes as f64]);
        row.settings.effective.bs_bytes = bs_bytes;
        row.runs.iter_mut().for_each(|run| run.iops = iops);
        row
    }

    #[test]
    fn blocks_below_the_reported_size_are_too_small_and_a_stripe_is_good_to_know() {
        let with = |bs_bytes, physical, optimal| {
            let device = Device {
                physical_block_bytes: physical,
                optimal_io_bytes: optimal,
                ..Device::default()
            };
            let (target, rows) = (on(device), [sized("a/direct-psync", bs_bytes, 1000.0)]);
            let found = found(&evidence(&target, &rows), "preferred-larger");
            found.map(|found| (found.severity, found.evidence["preferred_bytes"].clone()))
        };
        assert_eq!(with(512, 4096, None), Some((Severity::Warning, 4096.into())));
        assert_eq!(with(4096, 4096, None), None);
        assert_eq!(with(1 << 20, 512, Some(1_572_864)), Some((Severity::Info, 1_572_864.into())));
        // Small writes, and a bridge that reports a wrong size.
        assert_eq!(with(4096, 512, Some(1_572_864)), None);
        assert_eq!(with(1 << 20, 512, Some(33_553_920)), None);
    }

    #[test]
    fn blocks_that_are_slow_once_are_told_with_both_rates() {
        let target = target();
        let with = |first_bytes_per_s, again_bytes_per_s| {
            let first_touch = Some(FirstTouch { first_bytes_per_s, again_bytes_per_s });
            found(&Evidence { first_touch, ..evidence(&target, &[]) }, "first-touch")
        };
        let finding = with(20e6, 200e6).unwrap();
        assert!(finding.text.contains("took 20.0 MB/s, the same blocks again 200 MB/s (10"));
        assert!(with(150e6, 200e6).is_none() && with(300e6, 200e6).is_none());
    }
}
