//! Throughput against P99: a numbered dot for each row.

use super::axis::{self, Axis};
use super::canvas::{Anchor, Canvas, MIDDLE, TEXT_PX, text_width};
use super::plot::{Picture, Plot, field};

/// A row.
#[derive(Clone, Debug)]
pub struct Point {
    /// The number that the legend explains.
    pub number: usize,
    /// The class that colours the dot.
    pub class: String,
    /// Operations per second: the median.
    pub iops: f64,
    /// The interval of the operations per second.
    pub interval: Option<(f64, f64)>,
    /// The 99th percentile of the latency, in nanoseconds.
    pub p99_ns: u64,
    /// The tooltip.
    pub title: String,
}

/// Draws a dot for each row, with the interval of its throughput. The best corner is at the lower
/// right.
pub fn scatter(label: &str, dots: &[Point]) -> Picture {
    let ends = |dot: &Point| {
        let (low, high) = dot.interval.unwrap_or((dot.iops, dot.iops));
        // A very wide interval must not squeeze the dots together.
        [low.max(dot.iops / 3.0), dot.iops, high.min(dot.iops * 3.0)]
    };
    let throughputs = dots.iter().flat_map(ends);
    let x = Axis::log(throughputs, axis::per_second, "operations per second, more is better");
    let latencies = dots.iter().map(|dot| dot.p99_ns as f64);
    let y = Axis::log(latencies, axis::nanoseconds, "P99 latency, less is better");
    Picture::of(label, |layout| {
        let mut plot = field(Canvas::new(layout.width, layout.field_height), &x, &y, true);
        let at = |dot: &Point| {
            (dot.iops.max(f64::MIN_POSITIVE).log10(), (dot.p99_ns.max(1) as f64).log10())
        };
        for dot in dots.iter().filter(|dot| dot.iops > 0.0) {
            let [low, _, high] = ends(dot).map(f64::log10);
            plot.mark(&format!("line {}", dot.class), dot.title.clone());
            plot.line(vec![(low, at(dot).1), (high, at(dot).1)], 1);
            plot.mark(&format!("dot {}", dot.class), dot.title.clone());
            plot.dot(at(dot), 5);
        }
        number(&mut plot, dots, at);
        plot
    })
}

/// A rectangle of pixels: left, top, right, bottom.
type Box = (i32, i32, i32, i32);

/// Writes each dot's number at a free place next to it. In a crowd there is none; the tooltip and
/// the table name the dot.
fn number(plot: &mut Plot, dots: &[Point], at: impl Fn(&Point) -> (f64, f64)) {
    let around = |(x, y): (i32, i32), reach: i32| (x - reach, y - reach, x + reach, y + reach);
    let mut taken: Vec<Box> = dots.iter().map(|dot| around(plot.pixel(at(dot)), 5)).collect();
    let frame = plot.frame;
    let is_inside = |place: Box| {
        place.0 >= frame.0 && place.1 >= frame.1 && place.2 <= frame.2 && place.3 <= frame.3
    };
    plot.class("number");
    for dot in dots.iter().filter(|dot| dot.iops > 0.0) {
        let text = dot.number.to_string();
        let (x, y) = plot.pixel(at(dot));
        let half = (text_width(&text) / 2, TEXT_PX / 2 + 1);
        let sides =
            [(0, -15), (14, 0), (0, 15), (-14, 0), (12, -12), (12, 12), (-12, -12), (-12, 12)];
        let place = sides.into_iter().find_map(|(right, down)| {
            let (x, y) = (x + right, y + down);
            let place = (x - half.0, y - half.1, x + half.0, y + half.1);
            let is_free = is_inside(place) && !taken.iter().any(|other| overlap(place, *other));
            is_free.then_some(((right, down), place))
        });
        if let Some((offset, place)) = place {
            taken.push(place);
            plot.text(at(dot), offset, text, Anchor::MIDDLE, MIDDLE);
        }
    }
}

fn overlap(one: Box, other: Box) -> bool {
    one.0 < other.2 && other.0 < one.2 && one.1 < other.3 && other.1 < one.3
}
