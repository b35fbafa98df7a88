//! Lines over two axes, with dots, whiskers, bars and references.

use super::axis::Axis;
use super::canvas::{Anchor, Canvas, TOP, text_width};
use super::plot::{Layout, Picture, Reference, field};

/// The height of a small chart.
const SMALL_PX: u32 = 200;

/// The marks of a chart, in the coordinates of its axes.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    /// Whether the chart is one of many side by side.
    pub is_small: bool,
    pub bars: Vec<Bar>,
    /// Upright lines.
    pub references: Vec<Reference>,
    pub lines: Vec<Line>,
}

/// A bar that rises from the lower axis.
#[derive(Clone, Debug)]
pub struct Bar {
    pub from: f64,
    pub to: f64,
    pub value: f64,
    /// The tooltip.
    pub title: String,
}

/// A line through points.
#[derive(Clone, Debug)]
pub struct Line {
    pub class: String,
    /// The tooltip.
    pub title: String,
    pub points: Vec<(f64, f64)>,
    pub dots: Vec<Spot>,
    /// The radius of the dots, in pixels.
    pub radius: u32,
}

/// A dot on a line.
#[derive(Clone, Debug, Default)]
pub struct Spot {
    pub at: (f64, f64),
    /// The class that colours the dot.
    pub class: String,
    /// The tooltip.
    pub title: String,
    /// The ends of the dot's interval.
    pub whisker: Option<(f64, f64)>,
    /// The class and the sign of a change, which is shown at the top.
    pub change: Option<(&'static str, &'static str)>,
}

/// Draws bars, then references, and then lines, over the horizontal and the vertical axis that
/// `axes` returns for a layout.
pub fn lines(label: &str, axes: impl Fn(Layout) -> (Axis, Axis), of: &Lines) -> Picture {
    let draw = |layout: Layout| {
        let (x, y) = axes(layout);
        let height = if of.is_small { SMALL_PX } else { layout.field_height };
        let mut plot = field(Canvas::new(layout.width, height), &x, &y, true);
        for bar in &of.bars {
            plot.mark("bin", bar.title.clone());
            plot.rectangle((bar.from, 0.0), (bar.to, bar.value), 1.0);
        }
        for line in &of.references {
            plot.mark("reference", line.title.clone());
            plot.line(vec![(line.value, y.min), (line.value, y.max)], 2);
            if line.word.is_empty() {
                continue;
            }
            plot.class("figure");
            let top = (line.value, y.max);
            let end = plot.pixel(top).0 + text_width(line.word) + 12;
            let is_right = end < layout.width as i32;
            let (offset, side) = if is_right { (6, Anchor::LEFT) } else { (-6, Anchor::RIGHT) };
            plot.text(top, (offset, 2), line.word, side, TOP);
        }
        for line in &of.lines {
            plot.mark(format!("line {}", line.class).trim_end(), line.title.clone());
            plot.line(line.points.clone(), 2);
            for spot in &line.dots {
                let x = spot.at.0;
                if let Some((low, high)) = spot.whisker {
                    plot.mark("whisker", spot.title.clone());
                    plot.line(vec![(x, low.max(y.min)), (x, high.min(y.max))], 2);
                    if high > y.max {
                        plot.arrow_up(x);
                    }
                }
                plot.mark(&format!("dot {}", spot.class), spot.title.clone());
                plot.dot(spot.at, line.radius);
                if let Some((class, sign)) = spot.change {
                    plot.class(&format!("change {class}"));
                    plot.text((x, y.max), (0, 2), sign, Anchor::MIDDLE, TOP);
                }
            }
        }
        plot
    };
    if of.is_small { Picture::small(label, draw) } else { Picture::of(label, draw) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whisker_that_leaves_the_axis_ends_in_an_arrow() {
        let drawn = |high| {
            let spot = Spot { at: (1.0, 2.0), whisker: Some((1.0, high)), ..Spot::default() };
            let line = Line {
                class: String::new(),
                title: "line".into(),
                points: vec![(1.0, 2.0)],
                dots: vec![spot],
                radius: 5,
            };
            let axes = |_| {
                let axis = || Axis::from_zero(4.0, 4, |value| format!("{value}"), "axis");
                (axis(), axis())
            };
            lines("label", axes, &Lines { lines: vec![line], ..Lines::default() }).wide
        };
        let (within, beyond) = (drawn(3.0), drawn(9.0));
        let strokes = |svg: &str| svg.matches("<polyline").count();
        assert_eq!(strokes(&beyond), strokes(&within) + 1, "{beyond}");
    }
}
