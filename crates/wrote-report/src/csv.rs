//! Comma-separated values, for a spreadsheet or a data frame.

use crate::figures::text;
use crate::text::plain;
use std::borrow::Cow;
use std::io::{self, Write};
use wrote_result::document::{Document, Latency, Row, Run, Scenario};

/// The name of a column, and a value in it.
type Field = (Cow<'static, str>, String);

/// Writes a line of names, followed by a line for each run; nothing if there are no runs. All views
/// have the same columns, so that one file can contain them all. A value that does not apply is
/// empty, as is the P99 of too few operations. Columns whose names begin with `row_` contain
/// figures of the row over all its runs, and repeat them on each line.
pub fn write(document: &Document, out: &mut dyn Write) -> io::Result<()> {
    let rows = document
        .scenarios
        .iter()
        .flat_map(|scenario| scenario.rows.iter().map(move |row| (scenario, row)));
    let runs = rows.flat_map(|(scenario, row)| {
        row.runs.iter().enumerate().map(move |(index, run)| fields(scenario, row, index + 1, run))
    });
    let mut records = runs.peekable();
    let names = |fields: &Vec<Field>| fields.iter().map(|(name, _)| name.to_string()).collect();
    let names: Option<Vec<String>> = records.peek().map(names);
    let values = records.map(|fields| fields.into_iter().map(|(_, value)| value).collect());
    write_records(names.into_iter().chain(values), out)
}

/// Writes records as RFC 4180 specifies, but with line feeds only, and with spaces instead of
/// control characters.
pub fn write_records(
    records: impl Iterator<Item = Vec<String>>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut lines = csv::Writer::from_writer(Vec::new());
    for record in records {
        lines.write_record(record.iter().map(|field| plain(field)))?;
    }
    // The text is built in memory, because the errors of the crate csv hide the kind of an I/O
    // error, which distinguishes a closed pipe from a full disk.
    let text = lines.into_inner().map_err(|error| error.into_error())?;
    out.write_all(&text)
}

fn fields(scenario: &Scenario, row: &Row, number: usize, run: &Run) -> Vec<Field> {
    let settings = &row.settings.effective;
    let throughput = &row.throughput_bytes_per_s;
    let fields = [
        ("scenario", scenario.name.clone()),
        ("row", row.name.clone()),
        ("workload", row.workload.clone()),
        ("way", row.way.clone()),
        ("survives", text(row.survives)),
        ("torn", text(row.torn)),
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
    let of_all = ["min", "mean", "p50", "p90", "p95", "p99", "p99_9", "max", "count"];
    let of_flush = ["p50", "p99", "max", "count"];
    let of_durable = ["p50", "p95", "p99", "p99_9", "max"];
    let fields = fields.map(|(name, value)| (name.into(), value)).into_iter();
    let fields = fields.chain(latencies("row_latency", row.latency_ns.as_ref(), &of_all));
    let fields = fields.chain(latencies("row_flush", row.flush_latency_ns.as_ref(), &of_flush));
    let durable = latencies("row_durable", row.durable_latency_ns.as_ref(), &of_durable);
    fields.chain(durable).collect()
}

/// Returns the columns `NAME_ns_FIGURE` for these figures of a latency, and `NAME_count`. The
/// values are empty if there is no latency.
fn latencies(name: &str, latency: Option<&Latency>, figures: &[&str]) -> Vec<Field> {
    let value = |of: &Latency, figure: &str| match figure {
        "min" => of.min.to_string(),
        "mean" => of.mean.to_string(),
        "p50" => of.p50.to_string(),
        "p90" => of.p90.to_string(),
        "p95" => of.p95.to_string(),
        "p99" => text(of.known_p99()),
        "p99_9" => text(of.known_p99_9()),
        "max" => of.max.to_string(),
        "count" => of.count.to_string(),
        _ => unreachable!("a latency has no figure {figure}"),
    };
    let field = |figure: &&str| {
        let unit = if *figure == "count" { "" } else { "_ns" };
        (format!("{name}{unit}_{figure}").into(), text(latency.map(|of| value(of, figure))))
    };
    figures.iter().map(field).collect()
}
