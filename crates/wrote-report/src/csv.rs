//! Comma-separated values, for a spreadsheet or a data frame.

use crate::figures::text;
use crate::text::plain;
use std::io::{self, Write};
use wrote_result::document::{Document, Latency, Row, Run, Scenario};

/// The name of a column, and its value.
pub type Field = (&'static str, String);

/// Writes a line for each run. All views have the same columns, so that one file can hold them all.
/// A value that does not apply is empty, as is a P99 of too few operations. Names that begin with
/// `row_` are figures of the row over all of its runs, repeated on each line.
pub fn write(document: &Document, out: &mut dyn Write) -> io::Result<()> {
    let rows = document
        .scenarios
        .iter()
        .flat_map(|scenario| scenario.rows.iter().map(move |row| (scenario, row)));
    let runs = rows.flat_map(|(scenario, row)| {
        row.runs.iter().enumerate().map(move |(index, run)| fields(scenario, row, index + 1, run))
    });
    write_lines(runs, out)
}

/// Writes a line of names, then a line for each record. Without records there is no line at all.
pub fn write_lines(
    records: impl Iterator<Item = Vec<Field>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut records = records.peekable();
    let names = |fields: &Vec<Field>| fields.iter().map(|(name, _)| (*name).into()).collect();
    let names: Option<Vec<String>> = records.peek().map(names);
    let values = records.map(|fields| fields.into_iter().map(|(_, value)| value).collect());
    write_records(names.into_iter().chain(values), out)
}

/// Writes records as in RFC 4180, but with line feeds only, and with spaces in place of control
/// characters.
pub fn write_records(
    records: impl Iterator<Item = Vec<String>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut lines = csv::Writer::from_writer(Vec::new());
    for record in records {
        lines.write_record(record.iter().map(|field| plain(field)))?;
    }
    // Through memory, because the errors of the crate csv hide the kind of an I/O error, which
    // distinguishes a closed pipe from a full disk.
    let text = lines.into_inner().map_err(|error| error.into_error())?;
    out.write_all(&text)
}

fn fields(scenario: &Scenario, row: &Row, number: usize, run: &Run) -> Vec<Field> {
    let settings = &row.settings.effective;
    let throughput = &row.throughput_bytes_per_s;
    let mut fields = vec![
        ("scenario", scenario.name.clone()),
        ("row", row.name.clone()),
        ("workload", row.workload.clone()),
        ("way", row.way.clone()),
        ("survives", text(row.survives)),
        ("run", number.to_string()),
        ("bytes", run.bytes.to_string()),
        ("elapsed_s", run.elapsed_s.to_string()),
        ("throughput_bytes_per_s", run.throughput_bytes_per_s.to_string()),
        ("iops", run.iops.to_string()),
        ("cpu_user_s", run.cpu_user_s.to_string()),
        ("cpu_system_s", run.cpu_system_s.to_string()),
        ("context_switches", run.context_switches.to_string()),
        ("device_written_bytes", text(run.device_written_bytes)),
        ("device_read_bytes", text(run.device_read_bytes)),
        ("max_rss_bytes", text(run.max_rss_bytes)),
        ("iodepth_reached", run.iodepth_reached.to_string()),
        ("row_direction", row.direction.to_string()),
        ("row_rw", settings.rw.clone()),
        ("row_ioengine", settings.ioengine.to_string()),
        ("row_bs_bytes", settings.bs_bytes.to_string()),
        ("row_numjobs", settings.numjobs.to_string()),
        ("row_direct", settings.direct.to_string()),
        ("row_sync", settings.sync.to_string()),
        ("row_blocks", settings.blocks.to_string()),
        ("row_throughput_bytes_per_s_median", throughput.median.to_string()),
        ("row_throughput_bytes_per_s_ci95_low", throughput.ci95_low.to_string()),
        ("row_throughput_bytes_per_s_ci95_high", throughput.ci95_high.to_string()),
    ];
    fields.extend(latencies(row.latency_ns.as_ref(), &ROW_LATENCIES));
    fields.extend(latencies(row.flush_latency_ns.as_ref(), &ROW_FLUSHES));
    fields.extend(latencies(row.durable_latency_ns.as_ref(), &ROW_DURABLE));
    fields
}

/// The name of a latency's column, and its value.
pub type LatencyField = (&'static str, fn(&Latency) -> String);

const ROW_LATENCIES: [LatencyField; 9] = [
    ("row_latency_ns_min", |of| of.min.to_string()),
    ("row_latency_ns_mean", |of| of.mean.to_string()),
    ("row_latency_ns_p50", |of| of.p50.to_string()),
    ("row_latency_ns_p90", |of| of.p90.to_string()),
    ("row_latency_ns_p95", |of| of.p95.to_string()),
    ("row_latency_ns_p99", |of| text(of.known_p99())),
    ("row_latency_ns_p99_9", |of| text(of.known_p99_9())),
    ("row_latency_ns_max", |of| of.max.to_string()),
    ("row_latency_count", |of| of.count.to_string()),
];

const ROW_FLUSHES: [LatencyField; 4] = [
    ("row_flush_ns_p50", |of| of.p50.to_string()),
    ("row_flush_ns_p99", |of| text(of.known_p99())),
    ("row_flush_ns_max", |of| of.max.to_string()),
    ("row_flush_count", |of| of.count.to_string()),
];

const ROW_DURABLE: [LatencyField; 5] = [
    ("row_durable_ns_p50", |of| of.p50.to_string()),
    ("row_durable_ns_p95", |of| of.p95.to_string()),
    ("row_durable_ns_p99", |of| text(of.known_p99())),
    ("row_durable_ns_p99_9", |of| text(of.known_p99_9())),
    ("row_durable_ns_max", |of| of.max.to_string()),
];

/// Returns the fields of a latency; empty if there is none.
pub fn latencies(latency: Option<&Latency>, fields: &[LatencyField]) -> Vec<Field> {
    fields.iter().map(|(name, value)| (*name, text(latency.map(value)))).collect()
}
