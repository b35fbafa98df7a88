//! A forest plot: the ratio of each row with its interval, around the line of no change.

use super::axis::{self, Axis};
use super::plot::{Lanes, Picture};
use plotters::style::text_anchor::{HPos, VPos};

/// The ratio of a row.
#[derive(Clone, Debug)]
pub struct Ratio {
    /// The row.
    pub name: String,
    /// The class that colours it.
    pub class: String,
    /// The ratio.
    pub ratio: f64,
    /// Its 95 % interval.
    pub interval: Option<(f64, f64)>,
    /// The ratio in words.
    pub figure: String,
    /// The text that a pointer shows.
    pub title: String,
}

/// An interval is drawn as far as this factor around 1 and all ratios. An end that lies farther is
/// not drawn.
const REACH: f64 = 3.0;

/// Draws a ratio in each lane. The axis is logarithmic: twice and half are equally far from 1.
pub fn forest(label: &str, ratios: &[Ratio], axis: &str) -> Picture {
    let names: Vec<String> = ratios.iter().map(|ratio| ratio.name.clone()).collect();
    let fold = |start: f64, of: fn(f64, f64) -> f64| {
        ratios.iter().map(|ratio| ratio.ratio).fold(start, of)
    };
    let (least, most) = (fold(1.0, f64::min) / REACH, fold(1.0, f64::max) * REACH);
    let within = |(low, high): (f64, f64)| (low.max(least), high.min(most));
    let ends = |ratio: &Ratio| {
        let (low, high) = within(ratio.interval.unwrap_or((ratio.ratio, ratio.ratio)));
        [low, high, ratio.ratio, 1.0]
    };
    let values: Vec<f64> = ratios.iter().flat_map(ends).collect();
    Picture::of(label, |layout| {
        let axis = Axis::log(values.iter().copied(), axis::ratio, axis);
        let lanes = Lanes::new(&names, axis, layout);
        let lanes = lanes.with_figures(ratios.iter().map(|ratio| ratio.figure.as_str()));
        let canvas = lanes.canvas();
        let area = canvas.area();
        let mut plot = lanes.plot(&canvas, &area);
        plot.mark("reference", "no change: a ratio of 1");
        plot.line(vec![(0.0, 0.0), (0.0, ratios.len() as f64)], 2);
        for (lane, ratio) in ratios.iter().enumerate() {
            let (middle, half) = lanes.place(lane, 0);
            let mut end = ratio.ratio;
            if let Some((low, high)) = ratio.interval.map(within) {
                plot.mark(&format!("line {}", ratio.class), ratio.title.clone());
                plot.line(vec![(low.log10(), middle), (high.log10(), middle)], 2);
                let ends = ratio.interval.into_iter().flat_map(<[f64; 2]>::from);
                for at in ends.filter(|end| (low..=high).contains(end)) {
                    let tip = half * 0.4;
                    plot.line(vec![(at.log10(), middle - tip), (at.log10(), middle + tip)], 2);
                }
                end = end.max(high);
            }
            plot.mark(&format!("dot {}", ratio.class), ratio.title.clone());
            plot.dot((ratio.ratio.log10(), middle), 5);
            plot.class("figure");
            let at = (end.max(1.0).log10(), middle);
            plot.text(at, (10, 0), &*ratio.figure, HPos::Left, VPos::Center);
        }
        canvas
    })
}
