//! `wrote log stat`: prints the segments of a log as a table or as JSON.

use crate::args::LogStatArgs;
use crate::output;
use serde::Serialize;
use serde_with::skip_serializing_none;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use unicode_width::UnicodeWidthStr;
use wrote::log::{LogSummary, Segment, summary};
use wrote_report::{plain, write_json};
use wrote_result::units::counted;
use wrote_result::{Error, units};

const GAP: &str = "  ";

/// The maximum number of gaps listed in text; JSON lists all of them.
const GAPS_NAMED: usize = 10;

pub(super) fn run(arguments: &LogStatArgs) -> Result<(), Error> {
    let folder = &arguments.folder;
    let summary = summary(folder).map_err(|error| crate::stdio::of_library(&error))?;
    output::to_stdout(|out| {
        if arguments.json {
            write_json(&JsonSummary::of(folder, &summary), out)
        } else {
            write_table(folder, &summary, out)
        }
    })
}

#[skip_serializing_none]
#[derive(Serialize)]
pub(super) struct JsonSummary {
    path: String,
    /// Whether the log was closed after its last record.
    closed: bool,
    /// The process that has the log open for writing; omitted if there is none, or if that process
    /// is not visible to this one.
    writer_process: Option<u32>,
    first_sequence: u64,
    next_sequence: u64,
    records: u64,
    used_bytes: u64,
    file_bytes: u64,
    segments: Vec<JsonSegment>,
    gaps: Vec<JsonGap>,
}

/// Sequences without a record.
#[derive(Serialize)]
struct JsonGap {
    first_sequence: u64,
    records: u64,
}

#[derive(Serialize)]
struct JsonSegment {
    path: String,
    first_sequence: u64,
    records: u64,
    used_bytes: u64,
    file_bytes: u64,
}

impl JsonSummary {
    pub(super) fn of(folder: &Path, summary: &LogSummary) -> JsonSummary {
        let segments = summary.segments.iter().map(|segment| JsonSegment {
            path: segment.path.to_string_lossy().into_owned(),
            first_sequence: segment.first_sequence,
            records: segment.records,
            used_bytes: segment.bytes,
            file_bytes: segment.file_bytes,
        });
        let gaps = summary
            .gaps
            .iter()
            .map(|gap| JsonGap { first_sequence: gap.start, records: gap.end - gap.start });
        JsonSummary {
            path: folder.to_string_lossy().into_owned(),
            closed: summary.closed,
            writer_process: summary.writer,
            first_sequence: summary.first_sequence,
            next_sequence: summary.next_sequence,
            records: total(summary, |segment| segment.records),
            used_bytes: total(summary, |segment| segment.bytes),
            file_bytes: total(summary, |segment| segment.file_bytes),
            segments: segments.collect(),
            gaps: gaps.collect(),
        }
    }
}

fn total(summary: &LogSummary, of: fn(&Segment) -> u64) -> u64 {
    summary.segments.iter().map(of).sum()
}

fn write_table(folder: &Path, summary: &LogSummary, out: &mut dyn Write) -> io::Result<()> {
    let records = total(summary, |segment| segment.records);
    let segments = counted(summary.segments.len() as u64, "segment");
    let shown = plain(&folder.to_string_lossy());
    writeln!(out, "{shown}: {} in {segments}", counted(records, "record"))?;
    writeln!(out, "{}; the next record is {}", state(summary), summary.next_sequence)?;
    write_gaps(&summary.gaps, out)?;
    if summary.segments.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    write_rows(&rows(summary), out)
}

/// Writes rows in columns. The first column is aligned to the left, the others to the right.
pub(super) fn write_rows<const N: usize>(
    rows: &[[String; N]],
    out: &mut dyn Write,
) -> io::Result<()> {
    let width = |column: usize| rows.iter().map(|row| row[column].width()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    for row in rows {
        let mut line = format!("{}{}", row[0], " ".repeat(widths[0] - row[0].width()));
        for (cell, width) in row.iter().zip(widths).skip(1) {
            line = line + GAP + &" ".repeat(width - cell.width()) + cell;
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Writes text such as `24 sequences have no record: 100 to 122, 300`.
pub(super) fn write_gaps(gaps: &[Range<u64>], out: &mut dyn Write) -> io::Result<()> {
    if gaps.is_empty() {
        return Ok(());
    }
    let all = gaps.iter().map(|gap| gap.end - gap.start).sum();
    let have = if all == 1 { "has" } else { "have" };
    let named = gaps.iter().take(GAPS_NAMED).map(|gap| match gap.end - gap.start {
        1 => gap.start.to_string(),
        _ => format!("{} to {}", gap.start, gap.end - 1),
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let others = match gaps.len().saturating_sub(GAPS_NAMED) as u64 {
        0 => String::new(),
        others => format!(", and {}", counted(others, "more gap")),
    };
    writeln!(out, "{} {have} no record: {named}{others}", counted(all, "sequence"))
}

/// Returns a description of the log's writer, or of how the last writer left the log.
fn state(summary: &LogSummary) -> String {
    match summary.writer {
        Some(process) => format!("open for writing by process {process}"),
        None if summary.closed => "closed".into(),
        None => "not closed by its writer; wrote log verify checks whether it is intact".into(),
    }
}

/// Returns the titles, a row for each segment, and the sums if there are several segments.
fn rows(summary: &LogSummary) -> Vec<[String; 5]> {
    let titles = ["SEGMENT", "FIRST", "RECORDS", "USED", "FILE"].map(str::to_owned);
    let mut rows = vec![titles];
    rows.extend(summary.segments.iter().map(|segment| {
        let name = segment.path.file_name().unwrap_or(segment.path.as_os_str());
        [
            plain(&name.to_string_lossy()),
            segment.first_sequence.to_string(),
            segment.records.to_string(),
            units::bytes(segment.bytes),
            units::bytes(segment.file_bytes),
        ]
    }));
    if summary.segments.len() > 1 {
        rows.push([
            "all".into(),
            String::new(),
            total(summary, |segment| segment.records).to_string(),
            units::bytes(total(summary, |segment| segment.bytes)),
            units::bytes(total(summary, |segment| segment.file_bytes)),
        ]);
    }
    rows
}
