//! Latency histograms, a lane for each row.

use super::axis::{self, Axis};
use super::plot::{Lanes, Picture};
use wrote_result::units;

/// The latencies of a row, counted.
#[derive(Clone, Debug)]
pub struct Spread {
    /// The row.
    pub name: String,
    /// The class that colours it.
    pub class: String,
    /// Bins in their order: the least latency and its end, in nanoseconds, and the operations.
    pub bins: Vec<(f64, f64, u64)>,
}

/// Draws a histogram for each row over one axis. A bin's height is its share of the row's fullest.
pub fn spreads(label: &str, spreads: &[Spread]) -> Picture {
    let names: Vec<String> = spreads.iter().map(|spread| spread.name.clone()).collect();
    let ends = || spreads.iter().flat_map(|spread| &spread.bins).flat_map(|bin| [bin.0, bin.1]);
    Picture::of(label, |layout| {
        let axis = Axis::log(ends(), axis::nanoseconds, "latency, less is better");
        let lanes = Lanes::new(&names, axis, layout).with_lines(2);
        let canvas = lanes.canvas();
        let area = canvas.area();
        let mut plot = lanes.plot(&canvas, &area);
        for (lane, spread) in spreads.iter().enumerate() {
            let (last, half) = lanes.place(lane, 1);
            let (first, _) = lanes.place(lane, 0);
            let (top, bottom) = (first - half, last + half);
            let all: u64 = spread.bins.iter().map(|bin| bin.2).sum();
            let fullest = spread.bins.iter().map(|bin| bin.2).max().unwrap_or(1).max(1);
            for (from, to, count) in &spread.bins {
                let share = *count as f64 / fullest as f64;
                let percent = *count as f64 / all.max(1) as f64 * 100.0;
                let [low, high] = [from, to].map(|ns| units::nanoseconds(ns.round() as u64));
                let name = &spread.name;
                plot.mark(
                    &format!("bin {}", spread.class),
                    format!("{name}: {percent:.2} % from {low} to {high} ({count})"),
                );
                // A single slow operation stays visible.
                let height = (bottom - top) * share.max(0.04);
                plot.rectangle((from.log10(), bottom - height), (to.log10(), bottom), 1.0);
            }
        }
        canvas
    })
}
