//! Bars: a figure for each row with its interval, coloured by a class.

use super::axis::Axis;
use super::plot::{Lanes, Picture};
use plotters::style::text_anchor::{HPos, VPos};

/// A bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// The row.
    pub name: String,
    /// The class that colours it.
    pub class: String,
    /// Its length.
    pub value: f64,
    /// The interval of the value, of several runs.
    pub interval: Option<(f64, f64)>,
    /// The value in words.
    pub figure: String,
    /// The text that a pointer shows.
    pub title: String,
}

/// A line across all bars: the drive's own rate.
#[derive(Clone, Debug)]
pub struct Reference {
    /// Its place.
    pub value: f64,
    /// Its meaning.
    pub title: String,
}

/// Draws bars from 0. `word` shows a value at a tick.
pub fn bars(
    label: &str,
    bars: &[Bar],
    word: fn(f64) -> String,
    axis: &str,
    reference: Option<&Reference>,
) -> Picture {
    let names: Vec<String> = bars.iter().map(|bar| bar.name.clone()).collect();
    let ends = bars.iter().map(|bar| bar.interval.map_or(bar.value, |(_, high)| high));
    let longest = bars.iter().map(|bar| bar.value).fold(0.0, f64::max);
    let longest = reference.map_or(longest, |line| longest.max(line.value));
    // An interval that reaches far beyond every value is cut, and has no end there: the figures
    // would vanish beside it.
    let most = ends.fold(longest, f64::max).min(1.6 * longest);
    Picture::of(label, |layout| {
        let axis = Axis::from_zero(most, layout.ticks(), word, axis);
        let lanes = Lanes::new(&names, axis, layout);
        let lanes = lanes.with_figures(bars.iter().map(|bar| bar.figure.as_str()));
        let canvas = lanes.canvas();
        let area = canvas.area();
        let mut plot = lanes.plot(&canvas, &area);
        for (lane, bar) in bars.iter().enumerate() {
            let (middle, half) = lanes.place(lane, 0);
            plot.mark(&format!("bar {}", bar.class), bar.title.clone());
            plot.rectangle((0.0, middle - half), (bar.value, middle + half), 1.0);
            let mut end = bar.value;
            if let Some((low, whole)) = bar.interval {
                let high = whole.min(most);
                plot.mark("whisker", bar.title.clone());
                plot.line(vec![(low.max(0.0), middle), (high, middle)], 1);
                let tip = half * 0.45;
                for at in [low.max(0.0), whole].into_iter().filter(|end| *end <= most) {
                    plot.line(vec![(at, middle - tip), (at, middle + tip)], 1);
                }
                end = end.max(high);
            }
            plot.class("figure");
            plot.text((end, middle), (8, 0), &*bar.figure, HPos::Left, VPos::Center);
        }
        if let Some(line) = reference {
            plot.mark("reference", line.title.clone());
            plot.line(vec![(line.value, 0.0), (line.value, bars.len() as f64)], 2);
        }
        canvas
    })
}
