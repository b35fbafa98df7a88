//! A comparison of languages for a spreadsheet or a data frame: one line for each language in each workload
//! and path.

use crate::figures::text;
use std::io::{self, Write};
use wrote_result::document::{Interval, Latency};
use wrote_result::langs::{Document, Failure, Language, Place, Row, Workload};

/// A named value of a line.
type Field = (&'static str, String);

/// Comma-separated values as in RFC 4180, but with line feeds alone. What does not apply is empty; of a
/// language that failed that is every figure.
pub fn write(document: &Document, out: &mut dyn Write) -> io::Result<()> {
    let mut lines = csv::Writer::from_writer(Vec::new());
    let mut is_first = true;
    for place in &document.places {
        for workload in &place.workloads {
            let done = workload.rows.iter().map(|row| (&*row.language, Some(row), None));
            let failed = workload.failures.iter().map(|of| (&*of.language, None, Some(of)));
            for (id, row, failure) in done.chain(failed) {
                let language = document.languages.iter().find(|language| language.id == id);
                let fields = [
                    head(place, workload, id, language).to_vec(),
                    figures(row).to_vec(),
                    rates(place),
                    latencies(row).to_vec(),
                    vec![("failed_because", because(failure))],
                ]
                .concat();
                if is_first {
                    lines.write_record(fields.iter().map(|(name, _)| name))?;
                    is_first = false;
                }
                lines.write_record(fields.iter().map(|(_, value)| value))?;
            }
        }
    }
    // Through memory, because the csv crate's errors hide the kind of an I/O error.
    let text = lines.into_inner().map_err(|error| error.into_error())?;
    out.write_all(&text)
}

fn head(place: &Place, workload: &Workload, id: &str, language: Option<&Language>) -> [Field; 10] {
    let of = |text: fn(&Language) -> &str| language.map(text).unwrap_or_default().to_owned();
    let device = place.target.device.as_ref().map(|device| device.name.clone());
    [
        ("path", place.target.path.clone()),
        ("filesystem", place.target.filesystem.clone()),
        ("device", device.unwrap_or_default()),
        ("workload", workload.name.clone()),
        ("bytes", workload.bytes.to_string()),
        ("cache", workload.cache.to_string()),
        ("survives", text(workload.survives)),
        ("language", id.to_owned()),
        ("name", of(|language| &language.name)),
        ("way", language.map(|of| of.way_of(&workload.name)).unwrap_or_default().to_owned()),
    ]
}

fn figures(row: Option<&Row>) -> [Field; 8] {
    let figure = |text: &dyn Fn(&Row) -> String| row.map(text).unwrap_or_default();
    let counted = |row: &Row| row.runs.iter().filter(|run| !run.dropped).count().to_string();
    let throughput =
        |of: fn(&Interval) -> f64| figure(&|row: &Row| of(&row.throughput_bytes_per_s).to_string());
    let memory = |row: &Row| row.max_rss_bytes.map(|bytes| bytes.to_string()).unwrap_or_default();
    [
        ("runs", figure(&|row| row.runs.len().to_string())),
        ("runs_counted", figure(&counted)),
        ("throughput_bytes_per_s_median", throughput(|of| of.median)),
        ("throughput_bytes_per_s_ci95_low", throughput(|of| of.ci95_low)),
        ("throughput_bytes_per_s_ci95_high", throughput(|of| of.ci95_high)),
        ("throughput_mean_bytes_per_s", figure(&|row| row.throughput_mean_bytes_per_s.to_string())),
        ("cpu_s_per_gb", figure(&|row| row.cpu_s_per_gb.to_string())),
        ("max_rss_bytes", figure(&memory)),
    ]
}

/// The drive's own, the same on each line of a path.
fn rates(place: &Place) -> Vec<Field> {
    let rate = |of: Option<&Interval>| of.map(|of| of.median.to_string()).unwrap_or_default();
    let drive = place.drive.as_ref();
    vec![
        ("drive_write_bytes_per_s", rate(drive.map(|drive| &drive.write_bytes_per_s))),
        ("drive_read_bytes_per_s", rate(drive.map(|drive| &drive.read_bytes_per_s))),
    ]
}

fn latencies(row: Option<&Row>) -> [Field; 10] {
    let latency = |figure: fn(&Latency) -> String| {
        row.and_then(|row| row.latency_ns.as_ref()).map(figure).unwrap_or_default()
    };
    [
        ("latency_ns_min", latency(|of| of.min.to_string())),
        ("latency_ns_mean", latency(|of| of.mean.to_string())),
        ("latency_ns_p50", latency(|of| of.p50.to_string())),
        ("latency_ns_p90", latency(|of| of.p90.to_string())),
        ("latency_ns_p95", latency(|of| of.p95.to_string())),
        ("latency_ns_p99", latency(|of| of.p99.to_string())),
        ("latency_ns_p99_9", latency(|of| of.p99_9.to_string())),
        ("latency_ns_max", latency(|of| of.max.to_string())),
        ("latency_ns_total", latency(|of| of.total.to_string())),
        ("latency_count", latency(|of| of.count.to_string())),
    ]
}

fn because(failure: Option<&Failure>) -> String {
    failure.map(|failure| failure.because.clone()).unwrap_or_default()
}
