//! Findings on the jobs of a run: their data, offsets and rates.

use super::Evidence;
use super::bytes::compresses;
use std::collections::{BTreeMap, BTreeSet};
use wrote_result::document::{Blocks, Direction, Finding, Ioengine, Row, Severity};
use wrote_result::finding::NAMES_MAX;
use wrote_result::units::{bytes, some_of};

/// Finds rows of fio's `ioengine=null`, which measure no disk.
pub fn no_io(rows: &[Row]) -> Option<Finding> {
    let rows: Vec<&Row> = rows
        .iter()
        .filter(|row| row.settings.effective.ioengine == Ioengine::from("null"))
        .collect();
    if rows.is_empty() {
        return None;
    }
    let text = "No disk was used: ioengine=null ends each operation without I/O, so the figures \
                are the cost of the loop alone. Use another engine to measure the disk";
    Some(Finding::warning("no-io", text).about(&rows))
}

pub(super) fn compressible_data<'a>(evidence: &Evidence<'a>) -> Option<Finding> {
    let with_data = |row: &'a Row| Some((row, row.settings.effective.data.as_deref()?));
    let (rows, data): (Vec<&Row>, Vec<&str>) = evidence.rows.iter().filter_map(with_data).unzip();
    if rows.is_empty() {
        return None;
    }
    let kinds: Vec<&str> = data.iter().copied().collect::<BTreeSet<_>>().into_iter().collect();
    let (severity, because) = if compresses(evidence) {
        (Severity::Warning, "the file system or device compresses, so real data has another speed")
    } else {
        (Severity::Info, "some drives and file systems store such data in less space, and faster")
    };
    let text =
        format!("Data was not random: {}; {because}. Measure with random data", kinds.join(", "));
    let each: BTreeMap<_, _> = rows.iter().map(|row| &row.name).zip(data).collect();
    Finding::new("compressible-data", severity, text)
        .about(&rows)
        .with("data", each)
        .with("compresses", compresses(evidence))
        .into()
}

/// Returns the read rows whose blocks are in an unknown state; `None` if there are none. With
/// `known`, returns only rows that read bytes known to be unwritten; otherwise, only the remaining
/// rows.
fn unknown_reads<'a>(evidence: &Evidence<'a>, known: bool) -> Option<Vec<&'a Row>> {
    evidence.rows_where(|row| {
        row.direction == Direction::Read
            && row.settings.effective.blocks == Blocks::Unknown
            && unwritten_bytes(row).is_some_and(|bytes| bytes > 0) == known
    })
}

/// Returns the maximum number of unwritten bytes that a run of the row had to read; `None` if it is
/// unknown for all runs.
fn unwritten_bytes(row: &Row) -> Option<u64> {
    row.runs.iter().filter_map(|run| run.unwritten_bytes).max()
}

pub(super) fn unwritten_read(evidence: &Evidence) -> Option<Finding> {
    let rows = unknown_reads(evidence, true)?;
    let total: u64 = rows.iter().filter_map(|row| unwritten_bytes(row)).sum();
    let text = format!(
        "Reads of unwritten blocks: {} were never written, so the file system answered with zeros \
         and asked no device. Write the file first",
        bytes(total),
    );
    Finding::warning("unwritten-read", text).about(&rows).with("unwritten_bytes", total).into()
}

pub(super) fn blocks_unknown(evidence: &Evidence) -> Option<Finding> {
    let rows = unknown_reads(evidence, false)?;
    let text = "The blocks to read may never have been written. A drive answers for unwritten and \
                trimmed blocks without reading them. Write them first";
    Finding::info("unwritten-read", text).about(&rows).into()
}

pub(super) fn same_offsets(evidence: &Evidence) -> Option<Finding> {
    let mut users: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for overlap in &evidence.overlaps {
        let jobs = users.entry(overlap.file.display().to_string()).or_default();
        jobs.extend(overlap.jobs.iter().map(String::as_str));
    }
    if users.is_empty() {
        return None;
    }
    let shown = |(file, jobs): (&String, &BTreeSet<&str>)| {
        let jobs: Vec<&str> = jobs.iter().copied().collect();
        format!("{file} ({})", some_of(&jobs, NAMES_MAX))
    };
    let text = format!(
        "Jobs used the same bytes at once, and at least one job wrote them. They wait for each \
         other, and overwrite blocks in flight. Give each job its own file or offset. Files: {}",
        some_of(&users.iter().map(shown).collect::<Vec<_>>(), NAMES_MAX),
    );
    Finding::warning("same-offsets", text).with("files", &users).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::tests::{cached, direct, each_run, found, with_device_bytes};
    use crate::jobs::Overlap;
    use crate::sample::{evidence, target};
    use serde_json::json;
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
        assert!(info.text.contains(": compressible 50 %; some"), "{}", info.text);
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
        let read = |blocks, unwritten_bytes| {
            let mut row = with_device_bytes(cached(), 0, 1_000_000_000);
            row.direction = Direction::Read;
            row.settings.effective.blocks = blocks;
            each_run(row, |run| run.unwritten_bytes = unwritten_bytes)
        };
        let rows = [read(Blocks::Unknown, Some(250_000_000))];
        let finding = found(&evidence(&target, &rows), "unwritten-read").unwrap();
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.evidence["unwritten_bytes"], json!(250_000_000));
        // A device does not report which of its blocks have been written.
        let finding =
            found(&evidence(&target, &[read(Blocks::Unknown, None)]), "unwritten-read").unwrap();
        assert_eq!(finding.severity, Severity::Info);
        assert!(
            found(&evidence(&target, &[read(Blocks::Written, Some(0))]), "unwritten-read")
                .is_none()
        );
        let mut written = cached();
        written.settings.effective.blocks = Blocks::Unknown;
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
            finding.text.ends_with("Files: /data/x (a, a (1), b), /data/y (c, d)"),
            "{}",
            finding.text
        );
        assert!(found(&evidence(&target, &[]), "same-offsets").is_none());
    }
}
