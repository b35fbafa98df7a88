//! A comparison for a spreadsheet or a data frame: one line for each row.

use super::verdict;
use crate::csv::write_records;
use crate::figures::text;
use std::io::{self, Write};
use wrote_result::compare::{Change, Comparison, Measure, RowComparison};

/// The end of a column's name, and the figure of a change under it.
type Figure = (&'static str, fn(&Change) -> String);

const FIGURES: [Figure; 8] = [
    ("old", |change| change.old.to_string()),
    ("new", |change| change.new.to_string()),
    ("ratio", |change| change.ratio.to_string()),
    ("ci95_low", |change| text(change.ci95_low)),
    ("ci95_high", |change| text(change.ci95_high)),
    ("p_value", |change| text(change.p_value)),
    ("old_runs", |change| change.old_runs.to_string()),
    ("new_runs", |change| change.new_runs.to_string()),
];

/// Writes the names, then a line for each row. A value that does not apply is empty.
pub fn write(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    let names = ["scenario", "row", "new_row", "workload", "verdict", "by"].map(str::to_owned);
    let of = |measure: &str| FIGURES.map(|(figure, _)| format!("{measure}_{figure}"));
    let names = [&names[..], &of("throughput_bytes_per_s"), &of("p99_latency_ns")].concat();
    write_records(std::iter::once(names).chain(comparison.rows.iter().map(values)), out)
}

fn values(row: &RowComparison) -> Vec<String> {
    let by = match row.by {
        Measure::Throughput => "throughput",
        Measure::P99LatencyNs => "p99_latency_ns",
    };
    let mut values = vec![
        row.scenario.clone(),
        row.name.clone(),
        text(row.new_name.as_ref()),
        row.workload.clone(),
        verdict(row.verdict).into(),
        by.into(),
    ];
    for change in [Some(&row.throughput_bytes_per_s), row.p99_latency_ns.as_ref()] {
        values.extend(FIGURES.iter().map(|(_, figure)| text(change.map(figure))));
    }
    values
}
