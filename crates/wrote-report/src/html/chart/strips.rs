//! Strips of percentiles: from the fastest save to the slowest, a lane for each way.

use super::axis::{self, Axis};
use super::plot::{Lanes, Picture};
use plotters::style::text_anchor::{HPos, VPos};
use wrote_result::document::Latency;
use wrote_result::units;

/// A way of saving.
#[derive(Clone, Debug)]
pub struct Strip {
    /// The way.
    pub name: String,
    /// The class that colours it.
    pub class: String,
    /// Its latencies.
    pub latency: Latency,
    /// The text that a pointer shows.
    pub title: String,
}

/// Draws a strip for each way: thin from the fastest to the slowest, thick from P50 to P99, with a
/// dot at P50 and its figure.
pub fn strips(label: &str, strips: &[Strip]) -> Picture {
    let names: Vec<String> = strips.iter().map(|strip| strip.name.clone()).collect();
    let figures: Vec<String> =
        strips.iter().map(|strip| units::nanoseconds(strip.latency.p50)).collect();
    let ends =
        || strips.iter().flat_map(|strip| [strip.latency.min.max(1), strip.latency.max.max(1)]);
    Picture::of(label, |layout| {
        let title = "time of a save, less is better";
        let axis = Axis::log(ends().map(|ns| ns as f64), axis::nanoseconds, title);
        let lanes = Lanes::new(&names, axis, layout);
        let lanes = lanes.with_figures(figures.iter().map(String::as_str));
        let canvas = lanes.canvas();
        let area = canvas.area();
        let mut plot = lanes.plot(&canvas, &area);
        for (lane, strip) in strips.iter().enumerate() {
            let (middle, half) = lanes.place(lane, 0);
            let at = |ns: u64| (ns.max(1) as f64).log10();
            let of = &strip.latency;
            plot.mark(&format!("line {}", strip.class), strip.title.clone());
            plot.line(vec![(at(of.min), middle), (at(of.max), middle)], 1);
            plot.mark(&format!("bar {}", strip.class), strip.title.clone());
            let thick = half * 0.5;
            plot.rectangle((at(of.p50), middle - thick), (at(of.p99), middle + thick), 0.55);
            for (name, ns) in [("P90", of.p90), ("P99", of.p99), ("P99.9", of.p99_9)] {
                let shown = units::nanoseconds(ns);
                let (way, class) = (&strip.name, &strip.class);
                plot.mark(&format!("line {class}"), format!("{way}: {name} {shown}"));
                plot.line(vec![(at(ns), middle - half), (at(ns), middle + half)], 2);
            }
            plot.mark(&format!("dot {}", strip.class), strip.title.clone());
            plot.dot((at(of.p50), middle), 5);
            plot.class("figure");
            plot.text((at(of.max), middle), (8, 0), &*figures[lane], HPos::Left, VPos::Center);
        }
        canvas
    })
}
