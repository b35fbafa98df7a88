//! One line for each run, for a spreadsheet or a data frame.

use crate::figures::text;
use std::io::{self, Write};
use wrote_result::document::{Direction, Document, Latency, Row, Run, Scenario};

/// A named value of one run.
type Field = (&'static str, String);

/// Writes comma-separated values as in RFC 4180, but with line feeds alone: a line of names, then a line
/// for each run. What does not apply is empty. The names that begin with `row_` are figures of the
/// row over all of its runs, repeated on each line.
pub fn write(document: &Document, out: &mut dyn Write) -> io::Result<()> {
    let mut lines = csv::Writer::from_writer(Vec::new());
    let mut is_first = true;
    for scenario in &document.scenarios {
        for row in &scenario.rows {
            for (index, run) in row.runs.iter().enumerate() {
                let fields = fields(scenario, row, index + 1, run);
                if is_first {
                    lines.write_record(fields.iter().map(|(name, _)| name))?;
                    is_first = false;
                }
                lines.write_record(fields.iter().map(|(_, value)| value))?;
            }
        }
    }
    // Through memory, because the csv crate's errors hide the kind of an I/O error, by which a
    // reader that has gone is told from a full disk.
    let text = lines.into_inner().map_err(|error| error.into_error())?;
    out.write_all(&text)
}

fn fields(scenario: &Scenario, row: &Row, number: usize, run: &Run) -> Vec<Field> {
    let head = [
        ("scenario", scenario.name.clone()),
        ("row", row.name.clone()),
        ("workload", row.workload.clone()),
        ("way", row.way.clone()),
        ("survives", text(row.survives)),
        ("run", number.to_string()),
    ];
    head.into_iter()
        .chain(run_fields(run))
        .chain(settings_fields(row))
        .chain(figures_fields(row))
        .collect()
}

fn run_fields(run: &Run) -> [Field; 11] {
    let optional = |bytes: Option<u64>| bytes.map(|bytes| bytes.to_string()).unwrap_or_default();
    [
        ("bytes", run.bytes.to_string()),
        ("elapsed_s", run.elapsed_s.to_string()),
        ("throughput_bytes_per_s", run.throughput_bytes_per_s.to_string()),
        ("iops", run.iops.to_string()),
        ("cpu_user_s", run.cpu_user_s.to_string()),
        ("cpu_system_s", run.cpu_system_s.to_string()),
        ("context_switches", run.context_switches.to_string()),
        ("device_written_bytes", optional(run.device_written_bytes)),
        ("device_read_bytes", optional(run.device_read_bytes)),
        ("max_rss_bytes", optional(run.max_rss_bytes)),
        ("iodepth_reached", run.iodepth_reached.to_string()),
    ]
}

fn settings_fields(row: &Row) -> [Field; 8] {
    let settings = &row.settings.effective;
    let direction = match row.direction {
        Direction::Read => "read",
        Direction::Write => "write",
    };
    [
        ("row_direction", direction.into()),
        ("row_rw", settings.rw.clone()),
        ("row_ioengine", settings.ioengine.to_string()),
        ("row_bs_bytes", settings.bs_bytes.to_string()),
        ("row_numjobs", settings.numjobs.to_string()),
        ("row_direct", settings.direct.to_string()),
        ("row_sync", settings.sync.to_string()),
        ("row_blocks", settings.blocks.to_string()),
    ]
}

fn figures_fields(row: &Row) -> [Field; 12] {
    let throughput = &row.throughput_bytes_per_s;
    let latency =
        |figure: fn(&Latency) -> String| row.latency_ns.as_ref().map(figure).unwrap_or_default();
    [
        ("row_throughput_bytes_per_s_median", throughput.median.to_string()),
        ("row_throughput_bytes_per_s_ci95_low", throughput.ci95_low.to_string()),
        ("row_throughput_bytes_per_s_ci95_high", throughput.ci95_high.to_string()),
        ("row_latency_ns_min", latency(|of| of.min.to_string())),
        ("row_latency_ns_mean", latency(|of| of.mean.to_string())),
        ("row_latency_ns_p50", latency(|of| of.p50.to_string())),
        ("row_latency_ns_p90", latency(|of| of.p90.to_string())),
        ("row_latency_ns_p95", latency(|of| of.p95.to_string())),
        ("row_latency_ns_p99", latency(|of| of.p99.to_string())),
        ("row_latency_ns_p99_9", latency(|of| of.p99_9.to_string())),
        ("row_latency_ns_max", latency(|of| of.max.to_string())),
        ("row_latency_count", latency(|of| of.count.to_string())),
    ]
}
