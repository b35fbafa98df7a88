//! Findings on what was asked of a row: its data, its offsets, its rate.

use super::{Evidence, rates};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use wrote_result::document::{Direction, Finding, Row, Severity};
use wrote_result::finding::{finding, listed, names};
use wrote_result::units::bytes;

pub(super) fn find(evidence: &Evidence) -> Vec<Finding> {
    let single = [
        compressible_data(evidence),
        unwritten_read(evidence),
        blocks_unknown(evidence),
        same_offsets(evidence),
        rates::not_reached(evidence),
    ];
    single.into_iter().flatten().collect()
}

/// Whether what lies under the path is known to compress what it is given: by its mount options, or
/// because that is what it is for.
pub(super) fn compresses(evidence: &Evidence) -> bool {
    let target = evidence.target;
    let by_option = |option: &String| {
        let option = option.strip_prefix("compress").filter(|rest| !rest.starts_with("=no"));
        option.is_some()
    };
    let is_zram = |device: &wrote_result::document::Device| {
        let mut disks = device.disks.iter().chain([&device.name]);
        disks.any(|disk| disk.starts_with("zram"))
    };
    target.filesystem == "zfs"
        || target.mount_options.iter().any(by_option)
        || target.device.as_ref().is_some_and(is_zram)
}

fn compressible_data(evidence: &Evidence) -> Option<Finding> {
    let told = |row: &&Row| row.settings.effective.data.is_some();
    let rows: Vec<&Row> = evidence.rows.iter().filter(told).collect();
    if rows.is_empty() {
        return None;
    }
    let data = |row: &&Row| row.settings.effective.data.clone().unwrap_or_default();
    let kinds: BTreeSet<String> = rows.iter().map(data).collect();
    let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
    let (severity, because) = if compresses(evidence) {
        let because =
            "this place compresses what it is given, so the number is not that of real data";
        (Severity::Warning, because)
    } else {
        let because = "some drives and file systems store that in less room, and are faster with it than \
                       with real data";
        (Severity::Info, because)
    };
    let text = format!(
        "{}: what was written is no real data ({}): {because}",
        names(&rows),
        kinds.join(", ")
    );
    let figures = rows.iter().map(|row| (row.name.clone(), json!(data(row))));
    let figures = [
        ("rows", listed(&rows)),
        ("data", Value::Object(figures.collect())),
        ("compresses", json!(compresses(evidence))),
    ];
    Some(finding("compressible-data", severity, text, figures))
}

/// Rows of reads of which so is known: `true` where bytes are known never to have been written.
fn unknown_reads<'a>(evidence: &'a Evidence, known: bool) -> Vec<&'a Row> {
    let is_read =
        |row: &&Row| row.direction == Direction::Read && row.settings.effective.blocks == "unknown";
    let unwritten = |row: &&Row| unwritten_bytes(row).is_some_and(|bytes| bytes > 0) == known;
    evidence.rows.iter().filter(is_read).filter(unwritten).collect()
}

/// Of the bytes that each run of a row is to read; the most of all runs.
fn unwritten_bytes(row: &Row) -> Option<u64> {
    row.runs.iter().filter_map(|run| run.unwritten_bytes).max()
}

fn unwritten_read(evidence: &Evidence) -> Option<Finding> {
    let rows = unknown_reads(evidence, true);
    if rows.is_empty() {
        return None;
    }
    let total: u64 = rows.iter().filter_map(|row| unwritten_bytes(row)).sum();
    let text = format!(
        "{}: {} of what is to be read were never written: a file system answers that with zeros, and no \
         device is asked",
        names(&rows),
        bytes(total),
    );
    let figures = [("rows", listed(&rows)), ("unwritten_bytes", json!(total))];
    Some(finding("unwritten-read", Severity::Warning, text, figures))
}

fn blocks_unknown(evidence: &Evidence) -> Option<Finding> {
    let rows = unknown_reads(evidence, false);
    if rows.is_empty() {
        return None;
    }
    let text = format!(
        "{}: whether what is read was ever written can't be told: a drive answers for blocks that were \
         never written, or were trimmed, without looking",
        names(&rows),
    );
    Some(finding("unwritten-read", Severity::Info, text, [("rows", listed(&rows))]))
}

fn same_offsets(evidence: &Evidence) -> Option<Finding> {
    let mut users: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for overlap in &evidence.overlaps {
        let jobs = users.entry(overlap.file.display().to_string()).or_default();
        jobs.extend(overlap.jobs.iter().map(String::as_str));
    }
    if users.is_empty() {
        return None;
    }
    let shown = |(file, jobs): (&String, &BTreeSet<&str>)| {
        format!("{} of {file}", jobs.iter().copied().collect::<Vec<_>>().join(", "))
    };
    let text = format!(
        "jobs used the same bytes at once, and not only to read them: {}: they waited for each other, or \
         what one wrote another one did not have to",
        users.iter().map(shown).collect::<Vec<_>>().join("; "),
    );
    let files = users.iter().map(|(file, jobs)| (file.clone(), json!(jobs)));
    let figures = [("files", Value::Object(files.collect()))];
    Some(finding("same-offsets", Severity::Warning, text, figures))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cached, direct, each_run, found, with_device_bytes};
    use super::*;
    use crate::jobs::Overlap;
    use crate::sample::{evidence, target};
    use wrote_result::document::{Device, Target};

    #[test]
    fn data_that_is_not_random_is_told_and_a_warning_where_the_place_compresses() {
        let plain = target();
        let mut rows = [direct(), cached()];
        assert!(found(&evidence(&plain, &rows), "compressible-data").is_none());
        rows[0].settings.effective.data = Some("compressible 50 %".into());
        let info = found(&evidence(&plain, &rows), "compressible-data").unwrap();
        assert_eq!(info.severity, Severity::Info);
        assert_eq!(info.evidence["rows"], json!(["stream/direct-psync"]));
        assert!(info.text.contains("(compressible 50 %)"), "{}", info.text);
        let zram = Device { name: "zram0".into(), ..Device::default() };
        let on_zram = Target { device: Some(zram), ..target() };
        let option = |option: &str| Target { mount_options: vec![option.into()], ..target() };
        let severity = |target: &Target| {
            found(&evidence(target, &rows), "compressible-data").unwrap().severity
        };
        for squeezing in [on_zram, option("compress-force=zstd"), option("compress")] {
            assert_eq!(severity(&squeezing), Severity::Warning);
        }
        assert_eq!(severity(&option("compress=no")), Severity::Info);
    }

    #[test]
    fn reads_of_what_was_never_written_are_told_with_how_much_that_is() {
        let target = target();
        let read = |blocks: &str, unwritten_bytes| {
            let mut row = with_device_bytes(cached(), 0, 1_000_000_000);
            row.direction = Direction::Read;
            row.settings.effective.blocks = blocks.into();
            each_run(row, |run| run.unwritten_bytes = unwritten_bytes)
        };
        let rows = [read("unknown", Some(250_000_000))];
        let finding = found(&evidence(&target, &rows), "unwritten-read").unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.evidence["unwritten_bytes"], json!(250_000_000));
        // Of a device nobody can tell.
        let finding =
            found(&evidence(&target, &[read("unknown", None)]), "unwritten-read").unwrap();
        assert_eq!(finding.severity, Severity::Info);
        assert!(found(&evidence(&target, &[read("written", Some(0))]), "unwritten-read").is_none());
        let mut written = cached();
        written.settings.effective.blocks = "unknown".into();
        assert!(
            found(&evidence(&target, &[written]), "unwritten-read").is_none(),
            "a row of writes"
        );
    }

    #[test]
    fn jobs_that_use_the_same_bytes_at_once_are_told_file_by_file() {
        let target = target();
        let overlap = |file: &str, jobs: [&str; 2]| Overlap {
            file: file.into(),
            jobs: jobs.map(String::from),
        };
        let overlaps = vec![
            overlap("/data/x", ["a", "a (1)"]),
            overlap("/data/x", ["a", "b"]),
            overlap("/data/y", ["c", "d"]),
        ];
        let finding =
            found(&Evidence { overlaps, ..evidence(&target, &[]) }, "same-offsets").unwrap();
        assert_eq!(
            finding.evidence["files"],
            json!({ "/data/x": ["a", "a (1)", "b"], "/data/y": ["c", "d"] })
        );
        assert!(
            finding.text.contains("a, a (1), b of /data/x; c, d of /data/y"),
            "{}",
            finding.text
        );
        assert!(found(&evidence(&target, &[]), "same-offsets").is_none());
    }
}
