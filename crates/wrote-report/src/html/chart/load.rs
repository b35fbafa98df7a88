//! A workload at rising rates: its latency against the load, and the bend.

use super::axis::{self, Axis};
use super::canvas::{Canvas, text_width};
use super::plot::{Picture, field};
use plotters::style::text_anchor::{HPos, VPos};
use wrote_result::units;

/// A rate.
#[derive(Clone, Debug)]
pub struct Rate {
    /// Operations per second that were due.
    pub iops: f64,
    /// The latencies of each line, in nanoseconds.
    pub latencies_ns: Vec<u64>,
    /// The text that a pointer shows.
    pub title: String,
}

/// Draws a line for each percentile. `lines` are their names and classes; `knee` is the place of
/// the bend, in operations per second.
pub fn load(label: &str, lines: &[(&str, String)], rates: &[Rate], knee: Option<f64>) -> Picture {
    let most = rates.iter().map(|rate| rate.iops).fold(0.0, f64::max);
    let latencies = || rates.iter().flat_map(|rate| &rate.latencies_ns);
    let y = Axis::log(
        latencies().map(|latency_ns| *latency_ns as f64),
        axis::nanoseconds,
        "latency, less is better",
    );
    Picture::of(label, |layout| {
        let ticks = layout.ticks();
        let x = Axis::from_zero(most * 1.04, ticks, axis::per_second, "operations due per second");
        let canvas = Canvas::new(layout.width(), layout.field_height());
        let area = canvas.area();
        let mut plot = field(&canvas, &area, &x, &y);
        if let Some(knee) = knee {
            plot.mark("reference", format!("the knee: {}", crate::figures::per_second(knee)));
            plot.line(vec![(knee, y.min), (knee, y.max)], 2);
            plot.class("figure");
            let is_right =
                plot.pixel((knee, y.max)).0 + text_width("knee") + 12 < canvas.width as i32;
            let (offset, side) = if is_right { (6, HPos::Left) } else { (-6, HPos::Right) };
            plot.text((knee, y.max), (offset, 2), "knee", side, VPos::Top);
        }
        for (line, (name, class)) in lines.iter().enumerate() {
            let at = |rate: &Rate| {
                let latency_ns = rate.latencies_ns.get(line).copied().unwrap_or(1).max(1);
                (rate.iops, (latency_ns as f64).log10())
            };
            plot.mark(&format!("line {class}"), *name);
            plot.line(rates.iter().map(at).collect(), 2);
            for rate in rates {
                let latency_ns = rate.latencies_ns.get(line).copied().unwrap_or(0);
                let latency = units::nanoseconds(latency_ns);
                plot.mark(&format!("dot {class}"), format!("{}: {name} {latency}", rate.title));
                plot.dot(at(rate), 4);
            }
        }
        canvas
    })
}
