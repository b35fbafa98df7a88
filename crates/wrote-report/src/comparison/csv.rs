//! A comparison for a spreadsheet or a data frame: one line for each row.

use super::verdict;
use std::io::{self, Write};
use wrote_result::compare::{Change, Comparison, Measure, RowComparison};

/// What of a change has a column, and its text.
type Figure = (&'static str, fn(&Change) -> String);

const FIGURES: [Figure; 8] = [
    ("old", |change| change.old.to_string()),
    ("new", |change| change.new.to_string()),
    ("ratio", |change| change.ratio.to_string()),
    ("ci95_low", |change| optional(change.ci95_low)),
    ("ci95_high", |change| optional(change.ci95_high)),
    ("p_value", |change| optional(change.p_value)),
    ("old_runs", |change| change.old_runs.to_string()),
    ("new_runs", |change| change.new_runs.to_string()),
];

/// Comma-separated values as in RFC 4180, but with line feeds alone. What does not apply is empty.
pub fn write(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let mut lines = csv::Writer::from_writer(Vec::new());
    let names = ["scenario", "row", "new_row", "workload", "verdict", "by"].map(str::to_owned);
    let figures = |of: &str| FIGURES.map(|(figure, _)| format!("{of}_{figure}"));
    let figures = figures("throughput_bytes_per_s").into_iter().chain(figures("p99_latency_ns"));
    lines.write_record(names.into_iter().chain(figures))?;
    for row in &comparison.rows {
        lines.write_record(fields(row))?;
    }
    // Through memory, because the csv crate's errors hide the kind of an I/O error.
    let text = lines.into_inner().map_err(|error| error.into_error())?;
    out.write_all(&text)
}

fn fields(row: &RowComparison) -> Vec<String> {
    let by = match row.by {
        Measure::Throughput => "throughput",
        Measure::P99LatencyNs => "p99_latency_ns",
    };
    let mut fields = vec![
        row.scenario.clone(),
        row.name.clone(),
        row.new_name.clone().unwrap_or_default(),
        row.workload.clone(),
        verdict(row.verdict).into(),
        by.into(),
    ];
    for change in [Some(&row.throughput_bytes_per_s), row.p99_latency_ns.as_ref()] {
        let text = |(_, figure): &Figure| change.map(figure).unwrap_or_default();
        fields.extend(FIGURES.iter().map(text));
    }
    fields
}

fn optional(number: Option<f64>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}
