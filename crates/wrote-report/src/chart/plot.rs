//! The plot of a chart: a frame with axes, in the two layouts that every chart has.

use super::axis::Axis;
use super::canvas::{Area, Backend, Canvas, TEXT_PX, text_width};
use plotters::element::{Drawable, PointCollection};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::fmt::Debug;

/// A layout of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The width of the chart, in pixels.
    pub width: u32,
    /// The ticks of a linear axis along the width.
    pub ticks: usize,
    /// The height of a plot with two scales, in pixels.
    pub field_height: u32,
}

/// For a wide screen or paper, and for a phone.
pub const WIDE: Layout = Layout { width: 860, ticks: 6, field_height: 380 };
const NARROW: Layout = Layout { width: 350, ticks: 3, field_height: 320 };

/// A chart in both layouts, as SVG. The page's style shows one of them.
#[derive(Clone, Debug, Default)]
pub struct Picture {
    /// For a wide screen and for paper.
    pub wide: String,
    /// For a phone.
    pub narrow: String,
}

/// A line across a whole plot: the drive's own rate, or a knee.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    /// Its place.
    pub value: f64,
    /// Its meaning.
    pub title: String,
    /// The word beside it; empty if it has none.
    pub word: &'static str,
}

type Context<'a> = ChartContext<'a, Backend, Cartesian2d<Axis, Axis>>;

/// A plot with both axes drawn, ready for marks.
pub struct Plot<'a> {
    context: Context<'a>,
    canvas: Canvas,
}

/// The height of a lane, without and with its name above.
const LANE_PX: u32 = 26;
const LANE_ABOVE_PX: u32 = 44;
/// Names that need more room stand above their lanes.
const NAME_PX_MAX: i32 = 290;
const AXIS_PX: u32 = 46;

impl Picture {
    /// Draws a chart in both layouts. `label` names it for screen readers.
    pub fn of(label: &str, draw: impl Fn(Layout) -> Canvas) -> Picture {
        Picture { wide: draw(WIDE).svg(label, "wide"), narrow: draw(NARROW).svg(label, "narrow") }
    }

    /// Draws a chart that is as wide as a phone everywhere, to stand beside others.
    pub fn small(label: &str, draw: impl Fn(Layout) -> Canvas) -> Picture {
        let wide = draw(NARROW).svg(label, "small");
        Picture { wide, narrow: String::new() }
    }

    /// Returns whether it stands beside others.
    pub fn is_small(&self) -> bool {
        self.narrow.is_empty()
    }
}

/// Returns the result of drawing on a canvas, which never fails.
fn drawn<T, E: Debug>(result: Result<T, E>) -> T {
    result.expect("a canvas takes everything")
}

fn words() -> TextStyle<'static> {
    TextStyle::from(("sans-serif", TEXT_PX).into_font())
}

/// The lanes of a chart: a name for each, from the top to the bottom, over one axis.
pub struct Lanes<'a> {
    /// The names of the lanes.
    pub names: &'a [String],
    /// The axis of all lanes.
    pub axis: Axis,
    /// The room at the right of the plot, for figures after marks.
    pub right_px: u32,
    /// Lines within each lane; 1 for a single mark.
    pub lines: u32,
    layout: Layout,
    is_above: bool,
}

impl<'a> Lanes<'a> {
    /// Lanes with room for one mark each.
    pub fn new(names: &'a [String], axis: Axis, layout: Layout) -> Lanes<'a> {
        let widest = names.iter().map(|name| text_width(name)).max().unwrap_or(0);
        let is_above = layout == NARROW || widest > NAME_PX_MAX;
        Lanes { names, axis, right_px: 36, lines: 1, layout, is_above }
    }

    /// Leaves room for figures after the marks.
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

    /// Returns an empty canvas that has room for the lanes.
    pub fn canvas(&self) -> Canvas {
        let lane = if self.is_above { LANE_ABOVE_PX } else { LANE_PX };
        let lane = lane + (self.lines - 1) * 16;
        let height = self.names.len() as u32 * lane + AXIS_PX + 8;
        Canvas::new(self.layout.width, height)
    }

    /// The middle and the half height of the marks of a lane's line, in lanes.
    pub fn place(&self, lane: usize, line: u32) -> (f64, f64) {
        let (top, height) = if self.is_above { (0.40, 0.54) } else { (0.12, 0.76) };
        let each = height / f64::from(self.lines);
        (lane as f64 + top + each * (f64::from(line) + 0.5), each * 0.46)
    }

    /// Draws the axis and the names.
    pub fn plot<'c>(&self, canvas: &Canvas, area: &'c Area) -> Plot<'c> {
        let widest = self.names.iter().map(|name| text_width(name)).max().unwrap_or(0);
        let name_px = if self.is_above { 0 } else { widest + 12 };
        let left_px = if self.is_above { 4 } else { 0 };
        let width_px = canvas.width as i32 - name_px - left_px - self.right_px as i32;
        let axis = self.axis.thinned(width_px, name_px + left_px, self.right_px as i32);
        let from = self.names.len().max(1) as f64;
        // The first lane is at the top. The names are drawn below.
        let down = Axis { min: from, max: 0.0, ticks: Vec::new(), title: String::new() };
        canvas.class("axis");
        let mut context = drawn(
            ChartBuilder::on(area)
                .margin_top(4)
                .margin_right(self.right_px)
                .margin_left(left_px)
                .x_label_area_size(AXIS_PX)
                .y_label_area_size(name_px)
                .build_cartesian_2d(axis.clone(), down),
        );
        drawn(
            context
                .configure_mesh()
                .disable_y_mesh()
                .disable_y_axis()
                .axis_style(BLACK)
                .bold_line_style(BLACK)
                .light_line_style(TRANSPARENT)
                .set_tick_mark_size(LabelAreaPosition::Bottom, 5)
                .set_tick_mark_size(LabelAreaPosition::Left, 0)
                .label_style(words())
                .axis_desc_style(words())
                .x_desc(axis.title.clone())
                .draw(),
        );
        let mut plot = Plot { context, canvas: canvas.clone() };
        canvas.class("name");
        for (lane, name) in self.names.iter().enumerate() {
            let name = shortened(name, canvas.width as i32 - 8);
            let at = (axis.min, lane as f64 + 0.08);
            match self.is_above {
                true => plot.text(at, (0, 0), name, HPos::Left, VPos::Top),
                false => plot.text(
                    (axis.min, lane as f64 + 0.5),
                    (-10, 0),
                    name,
                    HPos::Right,
                    VPos::Center,
                ),
            }
        }
        plot
    }
}

/// Returns a text that fits into a width, with an ellipsis where it was cut.
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

/// A field between two axes, with a line at each tick.
pub fn field<'c>(canvas: &Canvas, area: &'c Area, x: &Axis, y: &Axis) -> Plot<'c> {
    framed(canvas, area, x, y, BLACK.to_rgba())
}

/// A field between two axes, without lines.
pub fn bare_field<'c>(canvas: &Canvas, area: &'c Area, x: &Axis, y: &Axis) -> Plot<'c> {
    framed(canvas, area, x, y, TRANSPARENT)
}

fn framed<'c>(canvas: &Canvas, area: &'c Area, x: &Axis, y: &Axis, lines: RGBAColor) -> Plot<'c> {
    let y = y.above_its_end();
    let widest = y.ticks.iter().map(|(_, word)| text_width(word)).max().unwrap_or(0);
    let left_px = widest + 16;
    let x = x.thinned(canvas.width as i32 - left_px - 30, left_px, 30);
    canvas.class("axis");
    let mut context = drawn(
        ChartBuilder::on(area)
            .margin_top(26)
            .margin_right(30)
            .x_label_area_size(AXIS_PX)
            .y_label_area_size(left_px)
            .build_cartesian_2d(x.clone(), y.clone()),
    );
    drawn(
        context
            .configure_mesh()
            .axis_style(BLACK)
            .bold_line_style(lines)
            .light_line_style(TRANSPARENT)
            .set_tick_mark_size(LabelAreaPosition::Bottom, 5)
            .set_tick_mark_size(LabelAreaPosition::Left, 5)
            .label_style(words())
            .axis_desc_style(words())
            .x_desc(x.title.clone())
            .draw(),
    );
    let title = words().pos(Pos::new(HPos::Left, VPos::Top));
    drawn(area.draw_text(&y.title, &title, (2, 2)));
    Plot { context, canvas: canvas.clone() }
}

impl Plot<'_> {
    /// Sets the class and the tooltip of the following marks.
    pub fn mark(&self, class: &str, title: impl Into<String>) {
        self.canvas.mark(class, title);
    }

    /// Sets the class of the following marks.
    pub fn class(&self, class: &str) {
        self.canvas.class(class);
    }

    fn put<E>(&mut self, element: E)
    where
        for<'e> &'e E: PointCollection<'e, (f64, f64)>,
        E: Drawable<Backend>,
    {
        drawn(self.context.draw_series(std::iter::once(element)));
    }

    /// Draws a filled rectangle between two corners. `share` is its opacity, from 0 to 1.
    pub fn rectangle(&mut self, one: (f64, f64), other: (f64, f64), share: f64) {
        self.put(Rectangle::new([one, other], BLACK.mix(share.clamp(0.0, 1.0)).filled()));
    }

    /// Draws the border of a rectangle.
    pub fn border(&mut self, one: (f64, f64), other: (f64, f64)) {
        self.put(Rectangle::new([one, other], BLACK.stroke_width(2)));
    }

    /// Draws a line through points.
    pub fn line(&mut self, points: Vec<(f64, f64)>, width_px: u32) {
        self.put(PathElement::new(points, BLACK.stroke_width(width_px)));
    }

    /// Draws the end of an interval: a stroke, or an arrow to the left (-1) or the right (1) where
    /// the interval continues.
    pub fn end(&mut self, (x, y): (f64, f64), half: f64, arrow: i32) {
        if arrow == 0 {
            return self.line(vec![(x, y - half), (x, y + half)], 2);
        }
        let axis = self.context.x_range();
        let back = f64::from(arrow) * 0.012 * (axis.end - axis.start);
        self.line(vec![(x - back, y - half), (x, y), (x - back, y + half)], 2);
    }

    /// Draws an arrow at the top, where an interval continues.
    pub fn arrow_up(&mut self, x: f64) {
        let (along, up) = (self.context.x_range(), self.context.y_range());
        let (aside, top) = (0.008 * (along.end - along.start), up.end);
        let below = top - 0.04 * (top - up.start);
        self.line(vec![(x - aside, below), (x, top), (x + aside, below)], 2);
    }

    /// Draws a dot.
    pub fn dot(&mut self, at: (f64, f64), radius_px: u32) {
        self.put(Circle::new(at, radius_px, BLACK.filled()));
    }

    /// Draws text near a point.
    pub fn text(
        &mut self,
        at: (f64, f64),
        offset: (i32, i32),
        text: impl Into<String>,
        h_pos: HPos,
        v_pos: VPos,
    ) {
        let style = words().pos(Pos::new(h_pos, v_pos));
        self.put(EmptyElement::at(at) + Text::new(text.into(), offset, style));
    }

    /// Returns the pixel of a point.
    pub fn pixel(&self, at: (f64, f64)) -> (i32, i32) {
        self.context.backend_coord(&at)
    }

    /// Returns the plot's own part of the canvas: left, top, right, bottom, in pixels.
    pub fn frame(&self) -> (i32, i32, i32, i32) {
        let (x, y) = self.context.plotting_area().get_pixel_range();
        (x.start, y.start, x.end, y.end)
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
