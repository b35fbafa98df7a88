//! Findings on whole files: whether a copy's source was in memory, and how much memory a method
//! takes.

use wrote_jobs::findings::{Evidence, counts, source_bytes};
use wrote_result::document::{Finding, Row, Run, Severity, SourceCache, View};
use wrote_result::stats::median;
use wrote_result::units::{bytes, part};

/// A copy's source was in memory if the device read less than this fraction of it.
const READ_SHARE_MIN: f64 = 0.9;
/// A copy takes constant memory if its peak is less than this fraction of the file.
const CONSTANT_SHARE_MAX: f64 = 0.5;

pub(crate) fn find(evidence: &Evidence) -> [Option<Finding>; 3] {
    [same_device(evidence), read_from_memory(evidence), memory_grows(evidence)]
}

fn total(row: &Row, figure: fn(&Run) -> u64) -> u64 {
    row.runs.iter().map(figure).sum()
}

/// Returns the copies that have counters, each with the size of its source and the number of bytes
/// that the device read.
fn copies<'a>(evidence: &'a Evidence) -> Vec<(&'a Row, u64, u64)> {
    // Rows of small files are left out, because many small files are read for other reasons.
    let counted = |row: &&'a Row| {
        row.view() == View::Files
            && counts(evidence)
            && row.runs.iter().all(|run| run.device_read_bytes.is_some())
    };
    let figures = |row: &'a Row| {
        let read = total(row, |run| run.device_read_bytes.unwrap_or(0).min(run.bytes));
        (row, source_bytes(row), read)
    };
    evidence.rows.iter().filter(counted).map(figures).filter(|(_, source, _)| *source > 0).collect()
}

fn is_read(source_bytes: u64, device_read_bytes: u64) -> bool {
    device_read_bytes as f64 >= READ_SHARE_MIN * source_bytes as f64
}

fn same_device(evidence: &Evidence) -> Option<Finding> {
    let device = evidence.target.device.as_ref()?;
    let mut copies = copies(evidence);
    copies.retain(|(_, source, read)| is_read(*source, *read));
    let (rows, file_bytes, read_bytes) = together(&copies)?;
    let written = |row: &&Row| total(row, |run| run.device_written_bytes.unwrap_or(0));
    let written_bytes: u64 = rows.iter().map(written).sum();
    let text = format!(
        "Source and target share {}: each byte passes it twice, read and written. A copy between \
         two devices may be faster",
        device.name,
    );
    Finding::info("same-device", text)
        .about(&rows)
        .with("device", &device.name)
        .with("file_bytes", file_bytes)
        .with("device_read_bytes", read_bytes)
        .with("device_written_bytes", written_bytes)
        .into()
}

fn read_from_memory(evidence: &Evidence) -> Option<Finding> {
    let mut copies = copies(evidence);
    copies.retain(|(_, source, read)| !is_read(*source, *read));
    let (rows, file_bytes, read_bytes) = together(&copies)?;
    let text = format!(
        "Copies from memory: {} of the source were not read from the device. Rows with a dropped \
         cache show the speed for a file that is not in memory",
        part(file_bytes - read_bytes, file_bytes),
    );
    // A warm source is supposed to be read from memory.
    let wanted = |row: &&Row| row.settings.asked.source_cache == Some(SourceCache::Warm);
    let severity = if rows.iter().all(wanted) { Severity::Info } else { Severity::Warning };
    Finding::new("read-from-memory", severity, text)
        .about(&rows)
        .with("file_bytes", file_bytes)
        .with("device_read_bytes", read_bytes)
        .with("memory_bytes", evidence.host.memory_bytes)
        .into()
}

/// Returns the rows and the sums of their figures; `None` if there are no copies.
fn together<'a>(copies: &[(&'a Row, u64, u64)]) -> Option<(Vec<&'a Row>, u64, u64)> {
    if copies.is_empty() {
        return None;
    }
    let rows = copies.iter().map(|(row, ..)| *row).collect();
    let source = copies.iter().map(|(_, source, _)| source).sum();
    Some((rows, source, copies.iter().map(|(.., read)| read).sum()))
}

/// Returns the median memory peak of a whole-file row; `None` for other rows, which have only the
/// peak of the process, and for a row without peaks.
fn peak_bytes(row: &Row) -> Option<u64> {
    let peaks = row.runs.iter().filter_map(|run| run.max_rss_bytes);
    let peaks: Vec<f64> = peaks.map(|bytes| bytes as f64).collect();
    (row.view() == View::Files && !peaks.is_empty()).then(|| median(&peaks) as u64)
}

fn memory_grows(evidence: &Evidence) -> Option<Finding> {
    let peaks = || evidence.rows.iter().filter_map(|row| Some((row, peak_bytes(row)?)));
    let grows = |(row, peak): &(&Row, u64)| *peak >= row.bytes_per_run && source_bytes(row) == 0;
    let constant = |(row, peak): &(&Row, u64)| {
        source_bytes(row) > 0 && (*peak as f64) < CONSTANT_SHARE_MAX * row.bytes_per_run as f64
    };
    let (copy, copy_peak_bytes) = peaks().filter(constant).min_by_key(|(_, peak)| *peak)?;
    // Files that are shorter than the copy's file take little memory anyway.
    let growing: Vec<(&Row, u64)> =
        peaks().filter(grows).filter(|(row, _)| row.bytes_per_run >= copy.bytes_per_run).collect();
    let (largest, peak_bytes) = growing.iter().max_by_key(|(_, peak)| *peak)?;
    let rows: Vec<&Row> = growing.iter().map(|(row, _)| *row).collect();
    let text = format!(
        "Memory grows with the file where it is read whole before it is written: {} for {}, while \
         {} took {}. A file larger than memory kills such a program. Read and write in pieces",
        bytes(*peak_bytes),
        bytes(largest.bytes_per_run),
        copy.name,
        bytes(copy_peak_bytes),
    );
    Finding::info("memory-grows", text)
        .about(&rows)
        .with("file_bytes", largest.bytes_per_run)
        .with("max_rss_bytes", peak_bytes)
        .with("copy", &copy.name)
        .with("copy_max_rss_bytes", copy_peak_bytes)
        .with("memory_bytes", evidence.host.memory_bytes)
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{evidence, row, target};
    use serde_json::json;
    use wrote_result::document::Target;
    use wrote_result::finding::IDS;

    const GB: u64 = 1_000_000_000;
    const RATES: [f64; 3] = [1.0e9, 1.01e9, 1.02e9];

    /// Returns a row of a whole file of 1 GB with this memory peak.
    fn way(name: &str, max_rss_bytes: u64) -> Row {
        let mut row = row(&format!("ways/{name}"), "power-loss", &RATES);
        (row.latency_ns, row.view) = (None, Some(View::Files));
        row.runs.iter_mut().for_each(|run| run.max_rss_bytes = Some(max_rss_bytes));
        row
    }

    /// Returns a copy that takes constant memory. The device read `device_read_bytes` of its source
    /// in each run.
    fn copy(name: &str, device_read_bytes: u64) -> Row {
        let mut row = way(name, 20_000_000);
        row.settings.effective.source_cache = Some(SourceCache::Warm);
        for run in &mut row.runs {
            run.device_read_bytes = Some(device_read_bytes);
        }
        row
    }

    fn found(evidence: &Evidence, id: &str) -> Option<Finding> {
        assert!(IDS.contains(&id));
        find(evidence).into_iter().flatten().find(|finding| finding.id == id)
    }

    #[test]
    fn a_copy_that_the_device_read_and_wrote_passed_it_twice() {
        let target = target();
        let rows = [copy("stream", 0), copy("stream-dropped", GB)];
        let finding = found(&evidence(&target, &rows), "same-device").unwrap();
        assert_eq!(finding.evidence["rows"], json!(["ways/stream-dropped"]));
        assert_eq!(finding.evidence["device_read_bytes"], json!(3 * GB));
        assert_eq!(finding.evidence["device_written_bytes"], json!(3 * GB));
        assert!(finding.text.contains("share sda: each byte passes it twice"), "{}", finding.text);
        assert!(found(&evidence(&target, &rows[..1]), "same-device").is_none());
    }

    #[test]
    fn a_source_that_the_device_never_read_came_from_memory() {
        let target = target();
        let rows = [copy("stream", GB / 10), copy("stream-dropped", GB), way("fs-write", GB)];
        let finding = found(&evidence(&target, &rows), "read-from-memory").unwrap();
        assert_eq!(finding.evidence["rows"], json!(["ways/stream"]));
        assert!(finding.text.contains("2.70 of 3.00 GB of the source"), "{}", finding.text);
        assert_eq!(finding.severity, Severity::Warning);
        assert!(found(&evidence(&target, &rows[1..]), "read-from-memory").is_none());
        let mut warm = rows;
        warm[0].settings.asked.source_cache = Some(SourceCache::Warm);
        let finding = found(&evidence(&target, &warm), "read-from-memory").unwrap();
        assert_eq!(finding.severity, Severity::Info, "as it was asked for");
    }

    #[test]
    fn without_counters_nothing_is_said_of_where_a_source_came_from() {
        let target = target();
        let rows = [copy("stream", 0), copy("stream-dropped", GB)];
        let off = Evidence { device_counts: false, ..evidence(&target, &rows) };
        let none = Target { device: None, ..target.clone() };
        let mut unread = rows.clone();
        unread
            .iter_mut()
            .flat_map(|row| &mut row.runs)
            .for_each(|run| run.device_read_bytes = None);
        for evidence in [off, evidence(&none, &rows), evidence(&target, &unread)] {
            assert!(found(&evidence, "same-device").is_none());
            assert!(found(&evidence, "read-from-memory").is_none());
        }
    }

    #[test]
    fn a_way_that_holds_the_file_beside_a_copy_that_does_not_is_named() {
        let target = target();
        let rows =
            [way("fs-write", GB + 5_000_000), copy("stream", 0), way("constant", 15_000_000)];
        let finding = found(&evidence(&target, &rows), "memory-grows").unwrap();
        assert_eq!(finding.evidence["rows"], json!(["ways/fs-write"]));
        assert_eq!(finding.evidence["copy_max_rss_bytes"], json!(20_000_000));
        assert!(finding.text.contains("1.00 GB for 1.00 GB"), "{}", finding.text);
        // Three cases without a finding: only the copy, a peak of the whole process, and no figure
        // for the peak.
        assert!(found(&evidence(&target, &rows[1..]), "memory-grows").is_none());
        let mut of_process = rows.clone();
        (of_process[0].latency_ns, of_process[0].view) = (Some(Default::default()), None);
        assert!(found(&evidence(&target, &of_process), "memory-grows").is_none());
        let mut untold = rows;
        untold.iter_mut().flat_map(|row| &mut row.runs).for_each(|run| run.max_rss_bytes = None);
        assert!(found(&evidence(&target, &untold), "memory-grows").is_none());
    }

    #[test]
    fn a_file_so_small_that_any_program_is_larger_grows_nothing() {
        let mut rows = [way("fs-write", 15_000_000), copy("stream", 0)];
        rows.iter_mut().for_each(|row| row.bytes_per_run = 2_000_000);
        assert!(found(&evidence(&target(), &rows), "memory-grows").is_none());
    }
}
