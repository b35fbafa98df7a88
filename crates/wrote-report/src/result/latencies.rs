//! The latencies of a group's rows as two charts: percentiles and histograms.

use crate::chart::{Axis, Line, Lines, Picture, Spot, Spread, lines, nanoseconds, spreads};
use crate::tree::Figure;
use wrote_result::document::{Latency, Row};
use wrote_result::{stats, units};

/// The maximum number of lines in a chart. More lines would hide each other.
pub const LINES_MAX: usize = 4;
/// The maximum number of rows in a chart of histograms, each of which has a lane.
const LANES_MAX: usize = 10;
/// The number of bins for each power of ten.
const BINS_PER_DECADE: u32 = 20;

/// Returns the charts of the latencies of the rows that have any. `name` returns the name of a row.
pub fn figures(
    workload: &str,
    rows: &[&Row],
    name: impl Fn(&Row) -> String,
    class: fn(&Row) -> String,
) -> Vec<Figure> {
    let timed: Vec<&Row> = rows.iter().copied().filter(|row| has_latency(row)).collect();
    let mut shown = timed.clone();
    // The safest rows come first, because their latency is a promise.
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
        shown.iter().map(|row| row.histogram_ns().and_then(stats::decode)).collect();
    let curve = |(number, row): (usize, &&Row)| {
        let points = match &histograms[number] {
            Some(histogram) => stats::quantiles(histogram),
            None => row.latency().map(points).unwrap_or_default(),
        };
        curve(name(row), format!("{} d{}", class(row), number + 1), &points)
    };
    let curves: Vec<Line> = shown.iter().take(LINES_MAX).enumerate().map(curve).collect();
    let legend = curves.iter().map(|curve| (curve.class.clone(), curve.title.clone())).collect();
    let mut figures = vec![Figure {
        question: "How long do the slowest operations take?".into(),
        picture: percentiles(&format!("Latency of {workload} by percentile"), curves),
        legend,
        note,
    }];
    let spread = |(number, row): (usize, &&Row)| {
        let bins = stats::bins(histograms[number].as_ref()?, BINS_PER_DECADE);
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

/// The quantiles that have a tick.
const TICKS: [(f64, &str); 8] = [
    (0.0, "min"),
    (0.5, "P50"),
    (0.9, "P90"),
    (0.99, "P99"),
    (0.999, "P99.9"),
    (0.9999, "P99.99"),
    (0.99999, "P99.999"),
    (0.999999, "P99.9999"),
];

/// Returns the position of a quantile on the axis. 10 %, 1 % and 0.1 % of slower operations are
/// equally far apart.
fn place(quantile: f64) -> f64 {
    -(1.0 - quantile.min(1.0 - 1e-7)).log10()
}

/// Returns a quantile as text: `P99.9`.
fn word(quantile: f64) -> String {
    let percent = format!("{:.5}", quantile * 100.0);
    format!("P{}", percent.trim_end_matches('0').trim_end_matches('.'))
}

/// Draws a line for each row: the latency over the share of slower operations, both logarithmic.
fn percentiles(label: &str, curves: Vec<Line>) -> Picture {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let most = points().map(|(at, _)| *at).fold(1.0, f64::max);
    let ticks = TICKS.map(|(quantile, word)| (place(quantile), word.to_owned()));
    let ticks = ticks.into_iter().filter(|(at, _)| *at <= most).collect();
    let x = Axis { min: 0.0, max: most, ticks, title: "percentile".into() };
    let latencies = points().map(|(_, logarithm)| 10f64.powf(*logarithm));
    let y = Axis::log(latencies, nanoseconds, "latency, less is better");
    let drawn = Lines { lines: curves, ..Lines::default() };
    lines(label, |_| (x.clone(), y.clone()), &drawn)
}

/// Returns the line of a row. `points` are quantiles from 0 to below 1 with their latencies in
/// nanoseconds, both ascending.
fn curve(name: String, class: String, points: &[(f64, u64)]) -> Line {
    let at = |(quantile, latency_ns): &(f64, u64)| {
        (place(*quantile), (*latency_ns.max(&1) as f64).log10())
    };
    let spot = |of: (f64, u64)| Spot {
        at: at(&of),
        class: class.clone(),
        title: format!("{name}: {} {}", word(of.0), units::nanoseconds(of.1)),
        ..Spot::default()
    };
    let dots = marked(points).into_iter().map(spot).collect();
    let points = points.iter().map(at).collect();
    Line { points, dots, radius: 3, class, title: name }
}

/// Returns the points of a curve at the quantiles that have a tick, as far as the curve reaches.
fn marked(points: &[(f64, u64)]) -> Vec<(f64, u64)> {
    let nearest = |tick: f64| points.iter().copied().find(|(quantile, _)| *quantile >= tick);
    let is_near = |tick: f64, at: f64| (place(at) - place(tick)).abs() < 0.05;
    let near = |(tick, _): &(f64, &str)| nearest(*tick).filter(|(at, _)| is_near(*tick, *at));
    TICKS.iter().filter_map(near).collect()
}

fn has_latency(row: &Row) -> bool {
    row.latency().is_some_and(|of| of.count > 0)
}

/// Returns the quantiles of a document without histograms.
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

    #[test]
    fn each_nine_is_as_far_from_the_next() {
        for (quantile, expected) in [(0.0, 0.0), (0.9, 1.0), (0.99, 2.0), (0.999, 3.0)] {
            assert!((place(quantile) - expected).abs() < 1e-9, "{quantile}");
        }
        assert!(place(1.0).is_finite());
        assert_eq!((word(0.5), word(0.999)), ("P50".into(), "P99.9".into()));
    }

    #[test]
    fn a_curve_is_marked_where_it_has_a_quantile_with_a_tick() {
        let points = [(0.5, 10), (0.9, 20), (0.97, 25), (0.99, 30)];
        assert_eq!(marked(&points), [(0.5, 10), (0.9, 20), (0.99, 30)]);
    }
}
