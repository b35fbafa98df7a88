//! Latency as percentiles: the share of slower operations against the latency, both logarithmic.

use super::axis::{self, Axis};
use super::canvas::Canvas;
use super::plot::{Picture, field};
use wrote_result::units;

/// The latencies of a row.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The row.
    pub name: String,
    /// The class that colours it.
    pub class: String,
    /// Quantiles from 0 to below 1, and the latency at each in nanoseconds, both rising.
    pub points: Vec<(f64, u64)>,
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

/// Returns the place of a quantile: 10 %, 1 % and 0.1 % of slower operations are equally far from
/// each other.
fn place(quantile: f64) -> f64 {
    -(1.0 - quantile.min(1.0 - 1e-7)).log10()
}

/// Returns a quantile in words: `P99.9`.
fn word(quantile: f64) -> String {
    let percent = format!("{:.5}", quantile * 100.0);
    format!("P{}", percent.trim_end_matches('0').trim_end_matches('.'))
}

/// Draws a line for each row.
pub fn percentiles(label: &str, curves: &[Curve]) -> Picture {
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let most = points().map(|(quantile, _)| place(*quantile)).fold(1.0, f64::max);
    let ticks = TICKS.map(|(quantile, word)| (place(quantile), word.to_owned()));
    let ticks = ticks.into_iter().filter(|(at, _)| *at <= most).collect();
    let x = Axis { min: 0.0, max: most, ticks, title: "percentile".into() };
    let latencies = points().map(|(_, latency_ns)| *latency_ns as f64);
    let y = Axis::log(latencies, axis::nanoseconds, "latency, less is better");
    Picture::of(label, |layout| {
        let canvas = Canvas::new(layout.width(), layout.field_height());
        let area = canvas.area();
        let mut plot = field(&canvas, &area, &x, &y);
        for curve in curves {
            let at = |(quantile, latency_ns): &(f64, u64)| {
                (place(*quantile), (*latency_ns.max(&1) as f64).log10())
            };
            plot.mark(&format!("line {}", curve.class), curve.name.clone());
            plot.line(curve.points.iter().map(at).collect(), 2);
            for (quantile, latency_ns) in marked(&curve.points) {
                let (word, latency) = (word(quantile), units::nanoseconds(latency_ns));
                plot.mark(
                    &format!("dot {}", curve.class),
                    format!("{}: {word} {latency}", curve.name),
                );
                plot.dot(at(&(quantile, latency_ns)), 3);
            }
        }
        canvas
    })
}

/// Returns the points of a curve at the quantiles that have a tick, as far as the curve reaches.
fn marked(points: &[(f64, u64)]) -> Vec<(f64, u64)> {
    let nearest = |tick: f64| points.iter().copied().find(|(quantile, _)| *quantile >= tick);
    let is_near = |tick: f64, at: f64| (place(at) - place(tick)).abs() < 0.05;
    let near = |(tick, _): &(f64, &str)| nearest(*tick).filter(|(at, _)| is_near(*tick, *at));
    TICKS.iter().filter_map(near).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
