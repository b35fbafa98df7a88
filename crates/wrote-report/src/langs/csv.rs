//! A comparison of languages for a spreadsheet or a data frame: one line for each language in each
//! workload and path.

use crate::csv::{Field, latencies, write_lines};
use crate::figures::text;
use std::io::{self, Write};
use wrote_result::document::Interval;
use wrote_result::langs::{Document, Failure, Language, Place, Row, Workload};

/// Writes the lines. A value that does not apply is empty; a language that failed has no figures.
pub fn write(document: &Document, out: &mut dyn Write) -> io::Result<()> {
    let mut lines = Vec::new();
    for place in &document.places {
        for workload in &place.workloads {
            let done = workload.rows.iter().map(|row| (&*row.language, Some(row), None));
            let failed = workload.failures.iter().map(|of| (&*of.language, None, Some(of)));
            for (id, row, failure) in done.chain(failed) {
                let language = document.languages.iter().find(|language| language.id == id);
                lines.push(fields(place, workload, id, language, row, failure));
            }
        }
    }
    write_lines(lines.into_iter(), out)
}

fn fields(
    place: &Place,
    workload: &Workload,
    id: &str,
    language: Option<&Language>,
    row: Option<&Row>,
    failure: Option<&Failure>,
) -> Vec<Field> {
    let counted = |row: &Row| row.runs.iter().filter(|run| !run.dropped).count();
    let interval =
        |end: fn(&Interval) -> f64| text(row.map(|row| end(&row.throughput_bytes_per_s)));
    let drive = place.drive.as_ref();
    let fields = [
        ("path", place.target.path.clone()),
        ("filesystem", place.target.filesystem.clone()),
        ("device", text(place.target.device.as_ref().map(|device| &device.name))),
        ("workload", workload.name.clone()),
        ("bytes", workload.bytes.to_string()),
        ("cache", workload.cache.to_string()),
        ("survives", text(workload.survives)),
        ("language", id.to_owned()),
        ("name", text(language.map(|language| &language.name))),
        ("way", text(language.map(|language| language.way_of(&workload.name)))),
        ("runs", text(row.map(|row| row.runs.len()))),
        ("runs_counted", text(row.map(counted))),
        ("bytes_per_run", text(row.and_then(Row::run_bytes))),
        ("throughput_bytes_per_s_median", interval(|of| of.median)),
        ("throughput_bytes_per_s_ci95_low", interval(|of| of.ci95_low)),
        ("throughput_bytes_per_s_ci95_high", interval(|of| of.ci95_high)),
        ("throughput_mean_bytes_per_s", text(row.map(|row| row.throughput_mean_bytes_per_s))),
        ("cpu_s_per_gb", text(row.map(|row| row.cpu_s_per_gb))),
        ("max_rss_bytes", text(row.and_then(|row| row.max_rss_bytes))),
        // The drive's own rates are the same on each line of a path.
        ("drive_write_bytes_per_s", text(drive.map(|drive| drive.write_bytes_per_s.median))),
        ("drive_read_bytes_per_s", text(drive.map(|drive| drive.read_bytes_per_s.median))),
    ];
    let of_saves = ["min", "mean", "p50", "p90", "p95", "p99", "p99_9", "max", "total", "count"];
    let latency = row.and_then(|row| row.latency_ns.as_ref());
    let because = ("failed_because".into(), text(failure.map(|failure| &failure.because)));
    let fields = fields.map(|(name, value)| (name.into(), value)).into_iter();
    fields.chain(latencies("latency", latency, &of_saves)).chain([because]).collect()
}
