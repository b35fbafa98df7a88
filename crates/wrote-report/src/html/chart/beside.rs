//! Results side by side: in each row's lane a dot with its interval for each result.

use super::axis::Axis;
use super::plot::{Lanes, Picture};

/// The figure of a row in one result.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The row, by its place among the names.
    pub row: usize,
    /// The result, by its place among the results.
    pub result: usize,
    /// The class that colours the result.
    pub class: String,
    /// The figure.
    pub value: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// The text that a pointer shows.
    pub title: String,
}

/// Draws the marks of `results` results over a logarithmic axis.
pub fn beside(
    label: &str,
    names: &[String],
    results: usize,
    marks: &[Mark],
    word: fn(f64) -> String,
    axis: &str,
) -> Picture {
    let within = |mark: &Mark| {
        let (low, high) = mark.interval.unwrap_or((mark.value, mark.value));
        (low.max(mark.value / 3.0), high.min(mark.value * 3.0))
    };
    let ends = marks.iter().flat_map(|mark| <[f64; 2]>::from(within(mark)));
    let ends: Vec<f64> = ends.collect();
    Picture::of(label, |layout| {
        let axis = Axis::log(ends.iter().copied(), word, axis);
        let lines = u32::try_from(results).unwrap_or(1);
        let lanes = Lanes::new(names, axis, layout).with_lines(lines);
        let canvas = lanes.canvas();
        let area = canvas.area();
        let mut plot = lanes.plot(&canvas, &area);
        for mark in marks.iter().filter(|mark| mark.value > 0.0) {
            let (middle, _) = lanes.place(mark.row, mark.result as u32);
            let (low, high) = within(mark);
            plot.mark(&format!("line {}", mark.class), mark.title.clone());
            plot.line(vec![(low.log10(), middle), (high.log10(), middle)], 2);
            plot.mark(&format!("dot {}", mark.class), mark.title.clone());
            plot.dot((mark.value.log10(), middle), 4);
        }
        canvas
    })
}
