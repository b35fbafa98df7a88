//! The latencies of a group's rows as two charts: percentiles and histograms.

use super::chart::{Curve, Spread, percentiles, spreads};
use crate::tree::Figure;
use wrote_result::document::{Latency, Row};
use wrote_result::histogram;

/// More lines in one chart hide each other.
pub const LINES_MAX: usize = 4;
/// A chart has histograms of at most this many rows, each in its own lane.
const LANES_MAX: usize = 10;
/// Bins to each power of ten.
const BINS_PER_DECADE: u32 = 20;

/// Returns the charts of latencies, as far as the rows have them. `name` names a row.
pub fn figures(
    workload: &str,
    rows: &[&Row],
    name: impl Fn(&Row) -> String,
    class: fn(&Row) -> String,
) -> Vec<Figure> {
    let timed: Vec<&Row> = rows.iter().copied().filter(|row| has_latency(row)).collect();
    let mut shown = timed.clone();
    // The safest first: of them a latency is a promise.
    shown.sort_by_key(|row| std::cmp::Reverse(row.survives));
    shown.truncate(LANES_MAX);
    if shown.is_empty() {
        return Vec::new();
    }
    let note = match timed.len().saturating_sub(LINES_MAX) {
        0 => String::new(),
        more => format!("{LINES_MAX} rows, the safest first; the table has the other {more}."),
    };
    let histograms: Vec<_> =
        shown.iter().map(|row| row.histogram_ns().and_then(histogram::decode)).collect();
    let curve = |(number, row): (usize, &&Row)| Curve {
        name: name(row),
        class: format!("{} d{}", class(row), number + 1),
        points: match &histograms[number] {
            Some(histogram) => histogram::quantiles(histogram),
            None => row.latency().map(points).unwrap_or_default(),
        },
    };
    let curves: Vec<Curve> = shown.iter().take(LINES_MAX).enumerate().map(curve).collect();
    let legend = curves.iter().map(|curve| (curve.class.clone(), curve.name.clone())).collect();
    let mut figures = vec![Figure {
        question: "How long do the slowest operations take?".into(),
        picture: percentiles(&format!("Latency of {workload} by percentile"), &curves),
        legend,
        note,
    }];
    let spread = |(number, row): (usize, &&Row)| {
        let bins = histogram::bins(histograms[number].as_ref()?, BINS_PER_DECADE);
        Some(Spread { name: name(row), class: class(row), bins })
    };
    let counted: Vec<Spread> = shown.iter().enumerate().filter_map(spread).collect();
    if !counted.is_empty() {
        figures.push(Figure {
            question: "Latency distribution".into(),
            picture: spreads(&format!("Histogram of the latency of {workload}"), &counted),
            legend: Vec::new(),
            note: "Bars are scaled to each row's tallest bin.".into(),
        });
    }
    figures
}

fn has_latency(row: &Row) -> bool {
    row.latency().is_some_and(|of| of.count > 0)
}

/// Returns the quantiles that a document without a histogram has.
fn points(of: &Latency) -> Vec<(f64, u64)> {
    let known = [(0.0, of.min), (0.5, of.p50), (0.9, of.p90), (0.95, of.p95), (0.99, of.p99)];
    let last = 1.0 - 1.0 / (of.count as f64).max(2.0);
    let known = known.into_iter().chain([(0.999, of.p99_9)]);
    known.filter(|(quantile, _)| *quantile < last).chain([(last, of.max)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_without_histograms_has_the_percentiles_that_its_count_allows() {
        let of = Latency {
            min: 1,
            p50: 2,
            p90: 3,
            p95: 4,
            p99: 5,
            p99_9: 6,
            max: 7,
            count: 200,
            ..Latency::default()
        };
        assert_eq!(points(&of), [(0.0, 1), (0.5, 2), (0.9, 3), (0.95, 4), (0.99, 5), (0.995, 7)]);
    }
}
