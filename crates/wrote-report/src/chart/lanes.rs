//! Charts with a lane for each row: figures with intervals or percentiles over a logarithmic axis,
//! histograms of latencies, and marks over an axis of time.

use super::axis::{self, Axis, nanoseconds};
use super::canvas::{Anchor, MIDDLE};
use super::plot::{Lanes, Picture, Plot, Reference};
use wrote_result::document::Latency;
use wrote_result::units;

/// The figure of a row.
#[derive(Clone, Debug, Default)]
pub struct Dot {
    /// The index of the row's name.
    pub row: usize,
    /// The line within the row's lane: the number of the result, if several are shown side by side.
    pub line: usize,
    /// The class: the level of safety, or a shape.
    pub class: String,
    /// The figure.
    pub value: f64,
    /// The interval of the figure, if there are several runs.
    pub interval: Option<(f64, f64)>,
    /// The percentiles, instead of an interval.
    pub latency: Option<Latency>,
    /// The figure as text; empty to omit it.
    pub figure: String,
    /// The tooltip.
    pub title: String,
}

/// The frame around the dots.
pub struct Frame<'a> {
    /// The name of the chart for screen readers.
    pub label: &'a str,
    /// The names of the lanes.
    pub names: &'a [String],
    /// The function that formats the value at a tick.
    pub word: fn(f64) -> String,
    /// The quantity and its direction.
    pub axis: &'a str,
    /// A line across all lanes, if there is one.
    pub reference: Option<&'a Reference>,
}

/// The explanation of the percentiles of saves.
pub const READING: &str = "From the fastest save to the slowest; thick from P50 (the dot and the \
    figure) to P99; strokes at P90, P99 and P99.9.";

/// The maximum factor between a figure and a drawn end of its interval. An arrow shows that the
/// interval continues.
const REACH: f64 = 3.0;

/// Returns the mark for a method of saving, with its latencies.
pub fn saved(row: usize, of: Latency, class: String, title: String) -> Dot {
    let (value, figure) = (of.p50.max(1) as f64, units::nanoseconds(of.p50));
    Dot { row, value, latency: Some(of), figure, class, title, ..Dot::default() }
}

/// Draws a dot in the lane of each row. The axis is logarithmic, so double and half a figure are
/// equally far from it.
pub fn dots(frame: &Frame, dots: &[Dot]) -> Picture {
    let marks: Vec<&Dot> = dots.iter().filter(|dot| dot.value > 0.0).collect();
    let ends = marks.iter().flat_map(|dot| <[f64; 2]>::from(within(dot)));
    let values: Vec<f64> = ends.chain(frame.reference.map(|line| line.value)).collect();
    let lines = dots.iter().map(|dot| dot.line + 1).max().unwrap_or(1) as u32;
    Picture::of(frame.label, |layout| {
        let axis = Axis::log(values.iter().copied(), frame.word, frame.axis);
        let lanes = Lanes::new(frame.names, axis, layout).with_lines(lines);
        let lanes = lanes.with_figures(marks.iter().map(|dot| dot.figure.as_str()));
        let mut plot = lanes.plot();
        if let Some(line) = frame.reference {
            lanes.cross(&mut plot, line.value.log10(), &line.title);
        }
        for dot in &marks {
            put(&mut plot, &frame.names[dot.row], dot, lanes.place(dot.row, dot.line as u32));
        }
        plot
    })
}

/// Returns the ends between which a dot's interval or percentiles are drawn.
fn within(dot: &Dot) -> (f64, f64) {
    if let Some(of) = &dot.latency {
        return (of.min.max(1) as f64, of.max.max(1) as f64);
    }
    let (low, high) = dot.interval.unwrap_or((dot.value, dot.value));
    (low.max(dot.value / REACH), high.min(dot.value * REACH))
}

fn put(plot: &mut Plot, name: &str, dot: &Dot, (middle, half): (f64, f64)) {
    let (low, high) = within(dot);
    if let Some(whole) = dot.interval {
        plot.mark(&format!("line {}", dot.class), dot.title.clone());
        plot.line(vec![(low.log10(), middle), (high.log10(), middle)], 2);
        plot.end((low.log10(), middle), half * 0.4, if whole.0 < low { -1 } else { 0 });
        plot.end((high.log10(), middle), half * 0.4, if whole.1 > high { 1 } else { 0 });
    }
    if let Some(of) = &dot.latency {
        strip(plot, name, dot, of, (middle, half));
    }
    plot.mark(&format!("dot {}", dot.class), dot.title.clone());
    plot.dot((dot.value.log10(), middle), 5);
    if !dot.figure.is_empty() {
        plot.class("figure");
        let at = (high.max(dot.value).log10(), middle);
        plot.text(at, (10, 0), &*dot.figure, Anchor::LEFT, MIDDLE);
    }
}

/// Draws percentiles: a thin line from the minimum to the maximum, and a thick one from P50 to P99
/// if there are enough operations for a P99.
fn strip(plot: &mut Plot, name: &str, dot: &Dot, of: &Latency, (middle, half): (f64, f64)) {
    let at = |ns: u64| (ns.max(1) as f64).log10();
    let class = format!("line {}", dot.class);
    plot.mark(&class, dot.title.clone());
    plot.line(vec![(at(of.min), middle), (at(of.max), middle)], 1);
    if let Some(p99) = of.known_p99() {
        plot.mark(&format!("bar {}", dot.class), dot.title.clone());
        let thick = half * 0.5;
        plot.rectangle((at(of.p50), middle - thick), (at(p99), middle + thick), 0.55);
    }
    let strokes = [("P90", Some(of.p90)), ("P99", of.known_p99()), ("P99.9", of.known_p99_9())];
    for (percentile, ns) in strokes.into_iter().filter_map(|(name, ns)| Some((name, ns?))) {
        plot.mark(&class, format!("{name}: {percentile} {}", units::nanoseconds(ns)));
        plot.line(vec![(at(ns), middle - half), (at(ns), middle + half)], 2);
    }
}

/// Draws a dot in the first lane, a bar between the ends of a range in each further lane, and a
/// line through the dot across all lanes.
pub fn ranges(frame: &Frame, here: &Dot, ranges: &[(f64, f64)]) -> Picture {
    let values: Vec<f64> = ranges.iter().flat_map(|of| [of.0, of.1]).chain([here.value]).collect();
    Picture::of(frame.label, |layout| {
        let axis = Axis::log(values.iter().copied(), frame.word, frame.axis);
        let lanes = Lanes::new(frame.names, axis, layout);
        let lanes = lanes.with_figures([here.figure.as_str()].into_iter());
        let mut plot = lanes.plot();
        for (lane, (low, high)) in (1..).zip(ranges) {
            let (middle, half) = lanes.place(lane, 0);
            plot.mark("range", frame.names[lane].clone());
            let thick = half * 0.7;
            plot.rectangle((low.log10(), middle - thick), (high.log10(), middle + thick), 0.45);
        }
        lanes.cross(&mut plot, here.value.log10(), &here.title);
        put(&mut plot, &frame.names[0], here, lanes.place(0, 0));
        plot
    })
}

/// The latencies of a row, counted in bins.
#[derive(Clone, Debug)]
pub struct Spread {
    /// The name of the row.
    pub name: String,
    /// The class that colours the mark.
    pub class: String,
    /// The bins in ascending order: the lower and the upper end, in nanoseconds, and the number of
    /// operations.
    pub bins: Vec<(f64, f64, u64)>,
}

/// Draws a histogram for each row over a common axis. The height of a bin is relative to the row's
/// fullest bin.
pub fn spreads(label: &str, spreads: &[Spread]) -> Picture {
    let names: Vec<String> = spreads.iter().map(|spread| spread.name.clone()).collect();
    let ends = || spreads.iter().flat_map(|spread| &spread.bins).flat_map(|bin| [bin.0, bin.1]);
    Picture::of(label, |layout| {
        let axis = Axis::log(ends(), axis::nanoseconds, "latency, less is better");
        let lanes = Lanes::new(&names, axis, layout).with_lines(2);
        let mut plot = lanes.plot();
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
                // A single slow operation must remain visible.
                let height = (bottom - top) * share.max(0.04);
                plot.rectangle((from.log10(), bottom - height), (to.log10(), bottom), 1.0);
            }
        }
        plot
    })
}

/// A mark over an axis of time.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The index of the row's name.
    pub row: usize,
    /// The line within the row's lane, from its top.
    pub line: u32,
    /// The class that colours the mark.
    pub class: &'static str,
    /// The beginning of the mark, in nanoseconds.
    pub from_ns: f64,
    /// The end of the mark, in nanoseconds.
    pub to_ns: f64,
    /// The tooltip.
    pub title: String,
}

/// The minimum width of a mark.
const MARK_PX_MIN: f64 = 3.0;

/// Draws marks in lanes of `lines` lines each, and lines across all of them.
pub fn timeline(
    label: &str,
    names: &[String],
    lines: u32,
    marks: &[Mark],
    across: &[Reference],
) -> Picture {
    let starts = marks.iter().map(|mark| mark.from_ns);
    let ends = marks.iter().map(|mark| mark.to_ns);
    let from_ns = starts.chain(across.iter().map(|line| line.value)).fold(f64::INFINITY, f64::min);
    let to_ns = ends.chain(across.iter().map(|line| line.value)).fold(0.0, f64::max);
    Picture::of(label, |layout| {
        let title = "time since the start of the program";
        let ends = (from_ns.min(to_ns), to_ns);
        let axis = Axis::between(ends, layout.ticks, nanoseconds, title);
        let per_px = (axis.max - axis.min) / f64::from(layout.width);
        let lanes = Lanes::new(names, axis, layout).with_lines(lines);
        let mut plot = lanes.plot();
        across.iter().for_each(|line| lanes.cross(&mut plot, line.value, &line.title));
        for mark in marks {
            let (middle, half) = lanes.place(mark.row, mark.line);
            let to_ns = mark.to_ns.max(mark.from_ns + MARK_PX_MIN * per_px);
            plot.mark(mark.class, mark.title.clone());
            plot.rectangle((mark.from_ns, middle - half), (to_ns, middle + half), 1.0);
        }
        plot
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::axis::ratio;

    fn drawn(interval: (f64, f64)) -> String {
        let names = ["a".to_owned()];
        let frame =
            Frame { label: "x", names: &names, word: ratio, axis: "ratio", reference: None };
        let dot = Dot {
            class: "power-loss".into(),
            value: 10.0,
            interval: Some(interval),
            figure: "10".into(),
            title: "a: 10".into(),
            ..Dot::default()
        };
        dots(&frame, &[dot]).wide
    }

    #[test]
    fn an_interval_that_leaves_the_axis_ends_in_an_arrow() {
        let [within, beyond] = [drawn((9.0, 12.0)), drawn((0.1, 900.0))];
        // An arrow has three points; a stroke has two.
        let is_arrow = |line: &&str| {
            line.split('"').next().is_some_and(|points| points.split(' ').count() == 3)
        };
        let arrows = |svg: &str| svg.split("<polyline points=\"").skip(1).filter(is_arrow).count();
        assert_eq!((arrows(&within), arrows(&beyond)), (0, 2), "{beyond}");
    }
}
