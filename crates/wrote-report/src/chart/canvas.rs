//! The canvas of a chart, which collects shapes for a template.
//!
//! A shape has a class instead of a colour, so that the style of the page, light or dark, decides
//! on the colour.

use askama::Template;

/// The height of text in a chart, in pixels.
pub const TEXT_PX: i32 = 13;

/// The width of an average character, in pixels. A wide font such as DejaVu Sans needs 8.
const CHARACTER_PX: f64 = 7.8;

/// Returns the width of a text in a chart, in a wide font.
pub fn text_width(text: &str) -> i32 {
    use unicode_width::UnicodeWidthStr;
    (text.width() as f64 * CHARACTER_PX).ceil() as i32
}

/// A position on a canvas, in pixels from the left and the top.
pub type Pixel = (i32, i32);

/// The part of a text that is aligned with its position: its left end, its middle or its right end.
#[derive(Clone, Copy, Debug)]
pub struct Anchor(&'static str);

impl Anchor {
    pub const LEFT: Anchor = Anchor("start");
    pub const MIDDLE: Anchor = Anchor("middle");
    pub const RIGHT: Anchor = Anchor("end");
}

/// The distance of a text's baseline below its top, its middle and its bottom, in pixels. SVG
/// positions a text by its baseline.
pub const TOP: i32 = TEXT_PX - 2;
pub const MIDDLE: i32 = TEXT_PX / 2 - 1;
pub const BOTTOM: i32 = -3;

/// Shapes that share a class and a tooltip.
#[derive(Debug)]
struct Group {
    class: String,
    title: Option<String>,
    shapes: Vec<Shape>,
}

#[derive(Debug)]
enum Shape {
    Line { from: Pixel, to: Pixel },
    Path { points: String, width: u32 },
    Rect { x: i32, y: i32, width: i32, height: i32, is_filled: bool, opacity: String },
    Circle { at: Pixel, radius: u32 },
    Text { at: Pixel, anchor: &'static str, text: String },
}

/// The drawing as SVG.
#[derive(Template)]
#[template(path = "chart.svg")]
struct Drawing<'a> {
    label: &'a str,
    class: &'a str,
    width: u32,
    height: u32,
    groups: &'a [Group],
}

/// A canvas with a size in pixels.
#[derive(Debug)]
pub struct Canvas {
    groups: Vec<Group>,
    /// The width, in pixels.
    pub width: u32,
    /// The height, in pixels.
    pub height: u32,
}

impl Canvas {
    /// Returns an empty canvas.
    pub fn new(width: u32, height: u32) -> Canvas {
        Canvas { groups: Vec::new(), width, height }
    }

    /// Sets the class of the following shapes.
    pub fn class(&mut self, class: &str) {
        self.groups.push(Group { class: class.into(), title: None, shapes: Vec::new() });
    }

    /// Sets the class and the tooltip of the following shapes.
    pub fn mark(&mut self, class: &str, title: impl Into<String>) {
        self.class(class);
        self.groups.last_mut().expect("it was begun").title = Some(title.into());
    }

    fn push(&mut self, shape: Shape) {
        self.groups.last_mut().expect("shapes have a class").shapes.push(shape);
    }

    /// Draws a grid line.
    pub fn line(&mut self, from: Pixel, to: Pixel) {
        self.push(Shape::Line { from, to });
    }

    /// Draws a line through points.
    pub fn path(&mut self, path: impl IntoIterator<Item = Pixel>, width: u32) {
        let points: Vec<String> = path.into_iter().map(|(x, y)| format!("{x},{y}")).collect();
        if !points.is_empty() {
            self.push(Shape::Path { points: points.join(" "), width });
        }
    }

    /// Draws a rectangle between two corners: only its border if `opacity` is `None`, otherwise
    /// filled.
    pub fn rectangle(&mut self, from: Pixel, to: Pixel, opacity: Option<f64>) {
        let (x, width) = (from.0.min(to.0), (to.0 - from.0).abs().max(1));
        let (y, height) = (from.1.min(to.1), (to.1 - from.1).abs().max(1));
        let share = opacity.filter(|share| *share < 1.0);
        let share = share.map_or(String::new(), |share| format!("{:.2}", share.max(0.0)));
        let is_filled = opacity.is_some();
        self.push(Shape::Rect { x, y, width, height, is_filled, opacity: share });
    }

    /// Draws a dot.
    pub fn dot(&mut self, at: Pixel, radius: u32) {
        self.push(Shape::Circle { at, radius });
    }

    /// Draws a text. `down` is [`TOP`], [`MIDDLE`] or [`BOTTOM`].
    pub fn text(&mut self, (x, y): Pixel, text: impl Into<String>, anchor: Anchor, down: i32) {
        let (at, anchor, text) = ((x, y + down), anchor.0, text.into());
        self.push(Shape::Text { at, anchor, text });
    }

    /// Returns the drawing as SVG. `label` is its name for screen readers; `class` is the class of
    /// the whole drawing.
    pub fn svg(mut self, label: &str, class: &str) -> String {
        self.groups.retain(|group| !group.shapes.is_empty());
        let (width, height, groups) = (self.width, self.height, &self.groups);
        let drawing = Drawing { label, class, width, height, groups };
        drawing.render().expect("text takes every text")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_text_a_title_or_a_label_stays_text() {
        let mut canvas = Canvas::new(100, 50);
        canvas.mark("a", "</title><script>1</script>");
        canvas.text((5, 5), "<b>&\"'", Anchor::LEFT, TOP);
        let svg = canvas.svg("\"><script>2</script>", "wide");
        assert!(!svg.contains("<script") && !svg.contains("<b>"), "{svg}");
    }

    #[test]
    fn shapes_have_the_class_and_the_title_of_their_mark() {
        let mut canvas = Canvas::new(100, 50);
        canvas.mark("power-loss", "2.00 GB/s");
        canvas.rectangle((10, 10), (30, 20), Some(1.0));
        let svg = canvas.svg("bars", "wide");
        assert!(svg.contains(r#"<g class="power-loss">"#), "{svg}");
        assert!(svg.contains("<title>2.00 GB/s</title>"), "{svg}");
        assert!(svg.contains(r#"x="10" y="10" width="20" height="10""#), "{svg}");
    }

    #[test]
    fn a_group_without_shapes_leaves_nothing() {
        let mut canvas = Canvas::new(10, 10);
        canvas.class("empty");
        assert!(!canvas.svg("nothing", "wide").contains("<g"));
    }
}
