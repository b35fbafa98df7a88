//! A timeline: marks from their beginning to their end, in each row's lane over one axis of time.

use super::axis::{Axis, nanoseconds};
use super::plot::{Lanes, Picture, Reference};

/// A mark.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The index of the row's name.
    pub row: usize,
    /// The line within the row's lane, from its top.
    pub line: u32,
    /// The class that colours it.
    pub class: &'static str,
    /// Its beginning, in nanoseconds.
    pub from_ns: f64,
    /// Its end, in nanoseconds.
    pub to_ns: f64,
    /// The tooltip.
    pub title: String,
}

/// A mark is at least this wide.
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
        let axis = Axis::between(ends, layout.ticks(), nanoseconds, title);
        let per_px = (axis.max - axis.min) / f64::from(layout.width());
        let lanes = Lanes::new(names, axis, layout).with_lines(lines);
        let canvas = lanes.canvas();
        let area = canvas.area();
        let mut plot = lanes.plot(&canvas, &area);
        for line in across {
            plot.mark("reference", line.title.clone());
            plot.line(vec![(line.value, 0.0), (line.value, names.len() as f64)], 2);
        }
        for mark in marks {
            let (middle, half) = lanes.place(mark.row, mark.line);
            let to_ns = mark.to_ns.max(mark.from_ns + MARK_PX_MIN * per_px);
            plot.mark(mark.class, mark.title.clone());
            plot.rectangle((mark.from_ns, middle - half), (to_ns, middle + half), 1.0);
        }
        canvas
    })
}
