//! The plot of a chart: a frame with axes, in the two layouts that every chart has.

use super::axis::Axis;
use super::canvas::{Anchor, BOTTOM, Canvas, MIDDLE, Pixel, TOP, text_width};

/// A layout of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The width of the chart, in pixels.
    pub width: u32,
    /// The maximum number of ticks of a linear axis along the width.
    pub ticks: usize,
    /// The height of a plot with two scales, in pixels.
    pub field_height: u32,
}

/// The layout for a wide screen or paper, and the one for a phone.
pub const WIDE: Layout = Layout { width: 860, ticks: 6, field_height: 380 };
const NARROW: Layout = Layout { width: 350, ticks: 3, field_height: 320 };

/// A chart in both layouts, as SVG. The page's style shows one of them.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// The layout for a wide screen and for paper.
    pub wide: String,
    /// The layout for a phone; empty for a small chart.
    pub narrow: String,
}

/// A line across a whole plot, such as the drive's rate or a knee.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    /// The value at which the line is drawn.
    pub value: f64,
    /// The meaning of the line.
    pub title: String,
    /// The word next to the line; empty if there is none.
    pub word: &'static str,
}

/// A plot with both axes drawn, ready for marks.
pub struct Plot {
    canvas: Canvas,
    x: Axis,
    y: Axis,
    /// The part of the canvas that the plot occupies, in pixels: its left, its top, and the
    /// positions just beyond its right and its bottom.
    pub frame: (i32, i32, i32, i32),
}

/// The height of a lane, without and with a name above it.
const LANE_PX: u32 = 26;
const LANE_ABOVE_PX: u32 = 44;
/// The maximum width of a name next to its lane. Longer names are drawn above their lanes.
const NAME_PX_MAX: i32 = 320;
const AXIS_PX: i32 = 46;

impl Picture {
    /// Draws a chart in both layouts. `label` is its name for screen readers.
    pub fn of(label: &str, draw: impl Fn(Layout) -> Plot) -> Picture {
        let svg = |layout, class| draw(layout).canvas.svg(label, class);
        Picture { wide: svg(WIDE, "wide"), narrow: svg(NARROW, "narrow") }
    }

    /// Draws a chart that is as wide as a phone in every layout, so that several fit side by side.
    pub fn small(label: &str, draw: impl Fn(Layout) -> Plot) -> Picture {
        let wide = draw(NARROW).canvas.svg(label, "small");
        Picture { wide, narrow: String::new() }
    }

    /// Returns whether the chart is small, so that several fit side by side.
    pub fn is_small(&self) -> bool {
        self.narrow.is_empty()
    }
}

/// The lanes of a chart over one axis, from the top to the bottom, each with a name.
pub struct Lanes<'a> {
    /// The names of the lanes.
    pub names: &'a [String],
    /// The axis of all lanes.
    pub axis: Axis,
    /// The space to the right of the plot, for figures after the marks.
    pub right_px: u32,
    /// The number of lines within each lane; 1 for a single mark.
    pub lines: u32,
    layout: Layout,
    is_above: bool,
}

impl<'a> Lanes<'a> {
    /// Returns lanes with space for one mark each.
    pub fn new(names: &'a [String], axis: Axis, layout: Layout) -> Lanes<'a> {
        let widest = names.iter().map(|name| text_width(name)).max().unwrap_or(0);
        let is_above = layout == NARROW || widest > NAME_PX_MAX;
        Lanes { names, axis, right_px: 36, lines: 1, layout, is_above }
    }

    /// Leaves space for figures after the marks.
    pub fn with_figures<'t>(mut self, figures: impl Iterator<Item = &'t str>) -> Lanes<'a> {
        let widest = figures.map(text_width).max().unwrap_or(0);
        self.right_px = (widest + 20) as u32;
        self
    }

    /// Gives each lane several lines.
    pub fn with_lines(mut self, lines: u32) -> Lanes<'a> {
        self.lines = lines.max(1);
        self
    }

    /// Returns the middle and the half height of the marks on a line of a lane, in units of a lane.
    pub fn place(&self, lane: usize, line: u32) -> (f64, f64) {
        let (top, height) = if self.is_above { (0.40, 0.54) } else { (0.12, 0.76) };
        let each = height / f64::from(self.lines);
        (lane as f64 + top + each * (f64::from(line) + 0.5), each * 0.46)
    }

    /// Draws a line across all lanes at a position on the axis, without crossing names above the
    /// lanes.
    pub fn cross(&self, plot: &mut Plot, at: f64, title: &str) {
        plot.mark("reference", title);
        for lane in 0..self.names.len() {
            let ((first, half), (last, _)) =
                (self.place(lane, 0), self.place(lane, self.lines - 1));
            plot.line(vec![(at, first - half), (at, last + half)], 2);
        }
    }

    /// Draws the axis and the names on a canvas that is high enough for the lanes.
    pub fn plot(&self) -> Plot {
        let lane = if self.is_above { LANE_ABOVE_PX } else { LANE_PX };
        let lane = lane + (self.lines - 1) * 16;
        let height = self.names.len() as u32 * lane + AXIS_PX as u32 + 8;
        let canvas = Canvas::new(self.layout.width, height);
        let widest = self.names.iter().map(|name| text_width(name)).max().unwrap_or(0);
        let left_px = if self.is_above { 4 } else { widest + 12 };
        let right_px = self.right_px as i32;
        let x = self.axis.thinned(canvas.width as i32 - left_px - right_px, left_px, right_px);
        let from = self.names.len().max(1) as f64;
        // The first lane is at the top. The names are drawn further below.
        let y = Axis { min: from, max: 0.0, ticks: Vec::new(), title: String::new() };
        let mut plot = Plot::new(canvas, x, y, (left_px, 4, right_px));
        plot.class("axis");
        plot.draw_along(true);
        plot.class("name");
        for (lane, name) in self.names.iter().enumerate() {
            let name = shortened(name, self.layout.width as i32 - 8);
            let (min, lane) = (plot.x.min, lane as f64);
            match self.is_above {
                true => plot.text((min, lane + 0.08), (0, 0), name, Anchor::LEFT, TOP),
                false => plot.text((min, lane + 0.5), (-10, 0), name, Anchor::RIGHT, MIDDLE),
            }
        }
        plot
    }
}

/// Returns a text that fits into a width. A text that was cut ends with an ellipsis.
fn shortened(text: &str, width_px: i32) -> String {
    if text_width(text) <= width_px {
        return text.to_owned();
    }
    let mut short = String::new();
    for character in text.chars() {
        if text_width(&short) + 2 * text_width("…") > width_px {
            break;
        }
        short.push(character);
    }
    short + "…"
}

/// Returns a plot between two axes, with a line at each tick if `has_lines`.
pub fn field(canvas: Canvas, x: &Axis, y: &Axis, has_lines: bool) -> Plot {
    let y = y.above_its_end();
    let widest = y.ticks.iter().map(|(_, word)| text_width(word)).max().unwrap_or(0);
    let left_px = widest + 16;
    let x = x.thinned(canvas.width as i32 - left_px - 30, left_px, 30);
    let mut plot = Plot::new(canvas, x, y, (left_px, 26, 30));
    plot.class("axis");
    plot.draw_along(has_lines);
    plot.draw_up(has_lines);
    plot
}

impl Plot {
    /// Returns a plot with nothing drawn, with this much space to its left, above it and to its
    /// right, in pixels.
    fn new(canvas: Canvas, x: Axis, y: Axis, (left, top, right): (i32, i32, i32)) -> Plot {
        let frame = (left, top, canvas.width as i32 - right, canvas.height as i32 - AXIS_PX);
        Plot { canvas, x, y, frame }
    }

    /// Draws the axis below the plot with its labels, and lines across the plot if `has_lines`.
    fn draw_along(&mut self, has_lines: bool) {
        let (left, top, right, bottom) = self.frame;
        let ticks = self.x.ticks.clone();
        let ticks: Vec<_> =
            ticks.into_iter().map(|(at, word)| (self.pixel((at, self.y.min)).0, word)).collect();
        let title = self.x.title.clone();
        self.canvas.text(((left + right) / 2, bottom + AXIS_PX), title, Anchor::MIDDLE, BOTTOM);
        if has_lines {
            ticks.iter().for_each(|(x, _)| self.canvas.line((*x, bottom - 1), (*x, top)));
        }
        self.canvas.path([(left, bottom), (right - 1, bottom)], 1);
        for (x, word) in ticks {
            self.canvas.text((x, bottom + 10), word, Anchor::MIDDLE, TOP);
            self.canvas.path([(x, bottom), (x, bottom + 5)], 1);
        }
    }

    /// Draws the axis to the left of the plot with its labels, and lines across the plot if
    /// `has_lines`.
    fn draw_up(&mut self, has_lines: bool) {
        let (left, top, right, bottom) = self.frame;
        let ticks = self.y.ticks.clone();
        let ticks: Vec<_> =
            ticks.into_iter().map(|(at, word)| (self.pixel((self.x.min, at)).1, word)).collect();
        if has_lines {
            ticks.iter().for_each(|(y, _)| self.canvas.line((left, *y), (right - 1, *y)));
        }
        self.canvas.path([(left - 1, top), (left - 1, bottom - 1)], 1);
        for (y, word) in ticks {
            self.canvas.text((left - 10, y), word, Anchor::RIGHT, MIDDLE);
            self.canvas.path([(left - 6, y), (left - 1, y)], 1);
        }
        self.canvas.text((2, 2), self.y.title.clone(), Anchor::LEFT, TOP);
    }

    /// Returns the pixel of a point.
    pub fn pixel(&self, (x, y): (f64, f64)) -> Pixel {
        let (left, top, right, bottom) = self.frame;
        (self.x.pixel(x, (left, right - 1)), self.y.pixel(y, (bottom - 1, top)))
    }

    /// Sets the class and the tooltip of the following marks.
    pub fn mark(&mut self, class: &str, title: impl Into<String>) {
        self.canvas.mark(class, title);
    }

    /// Sets the class of the following marks.
    pub fn class(&mut self, class: &str) {
        self.canvas.class(class);
    }

    /// Draws a filled rectangle between two corners. `share` is its opacity, from 0 to 1.
    pub fn rectangle(&mut self, one: (f64, f64), other: (f64, f64), share: f64) {
        self.canvas.rectangle(self.pixel(one), self.pixel(other), Some(share));
    }

    /// Draws the border of a rectangle.
    pub fn border(&mut self, one: (f64, f64), other: (f64, f64)) {
        self.canvas.rectangle(self.pixel(one), self.pixel(other), None);
    }

    /// Draws a line through points.
    pub fn line(&mut self, points: Vec<(f64, f64)>, width_px: u32) {
        let points: Vec<Pixel> = points.into_iter().map(|point| self.pixel(point)).collect();
        self.canvas.path(points, width_px);
    }

    /// Draws the end of an interval: a stroke, or, if the interval continues, an arrow to the left
    /// (-1) or to the right (1).
    pub fn end(&mut self, (x, y): (f64, f64), half: f64, arrow: i32) {
        if arrow == 0 {
            return self.line(vec![(x, y - half), (x, y + half)], 2);
        }
        let back = f64::from(arrow) * 0.012 * (self.x.max - self.x.min);
        self.line(vec![(x - back, y - half), (x, y), (x - back, y + half)], 2);
    }

    /// Draws an arrow at the top, to show that an interval continues.
    pub fn arrow_up(&mut self, x: f64) {
        let (aside, top) = (0.008 * (self.x.max - self.x.min), self.y.max);
        let below = top - 0.04 * (top - self.y.min);
        self.line(vec![(x - aside, below), (x, top), (x + aside, below)], 2);
    }

    /// Draws a dot.
    pub fn dot(&mut self, at: (f64, f64), radius_px: u32) {
        self.canvas.dot(self.pixel(at), radius_px);
    }

    /// Draws a text near a point. `down` is [`TOP`] or [`MIDDLE`].
    pub fn text(
        &mut self,
        at: (f64, f64),
        offset: Pixel,
        text: impl Into<String>,
        anchor: Anchor,
        down: i32,
    ) {
        let (x, y) = self.pixel(at);
        self.canvas.text((x + offset.0, y + offset.1), text, anchor, down);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_cut_to_its_room() {
        let name = "a-job-with-a-very-long-name".repeat(4);
        let short = shortened(&name, 300);
        assert!(text_width(&short) <= 300 && short.ends_with('…'), "{short}");
        assert_eq!(shortened("short", 300), "short");
    }
}
