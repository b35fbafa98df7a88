//! The canvas of a chart: a backend of plotters that keeps shapes for a template.
//!
//! A shape has a class in place of a colour, so that the page's style decides on it, light or dark.

use askama::Template;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingErrorKind,
};
use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;

/// The height of text in a chart, in pixels.
pub const TEXT_PX: i32 = 13;

/// The width of a character of average width. A wide font such as DejaVu Sans has 8.
const CHARACTER_PX: f64 = 7.8;

/// Returns the width of a text on a chart, by a wide font.
pub fn text_width(text: &str) -> i32 {
    use unicode_width::UnicodeWidthStr;
    (text.width() as f64 * CHARACTER_PX).ceil() as i32
}

/// A drawing area of plotters on a canvas.
pub type Area = DrawingArea<Backend, Shift>;

/// Shapes that share a class and a tooltip.
#[derive(Debug, Default)]
struct Group {
    class: String,
    title: Option<String>,
    shapes: Vec<Shape>,
}

#[derive(Debug)]
enum Shape {
    Line { from: BackendCoord, to: BackendCoord, width: u32 },
    Path { points: String, width: u32 },
    Polygon { points: String },
    Rect { x: i32, y: i32, width: i32, height: i32, is_filled: bool, opacity: String },
    Circle { at: BackendCoord, radius: u32, is_filled: bool },
    Text { at: BackendCoord, anchor: &'static str, text: String, is_turned: bool },
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

/// A canvas of a size in pixels.
#[derive(Clone, Debug)]
pub struct Canvas {
    groups: Rc<RefCell<Vec<Group>>>,
    /// Its width, in pixels.
    pub width: u32,
    /// Its height, in pixels.
    pub height: u32,
}

impl Canvas {
    /// An empty canvas.
    pub fn new(width: u32, height: u32) -> Canvas {
        Canvas { groups: Rc::default(), width, height }
    }

    /// Returns the whole canvas as an area of plotters.
    pub fn area(&self) -> Area {
        Backend { canvas: self.clone() }.into_drawing_area()
    }

    /// Sets the class of the following shapes.
    pub fn class(&self, class: &str) {
        self.begin(class, None);
    }

    /// Sets the class and the tooltip of the following shapes.
    pub fn mark(&self, class: &str, title: impl Into<String>) {
        self.begin(class, Some(title.into()));
    }

    fn begin(&self, class: &str, title: Option<String>) {
        let group = Group { class: class.into(), title, shapes: Vec::new() };
        self.groups.borrow_mut().push(group);
    }

    fn push(&self, shape: Shape) {
        let mut groups = self.groups.borrow_mut();
        match groups.last_mut() {
            Some(group) => group.shapes.push(shape),
            None => groups.push(Group { shapes: vec![shape], ..Group::default() }),
        }
    }

    /// Returns the drawing as SVG. `label` is its name for screen readers; `class` is the class of
    /// the whole.
    pub fn svg(&self, label: &str, class: &str) -> String {
        let mut groups = self.groups.borrow_mut();
        groups.retain(|group| !group.shapes.is_empty());
        let drawing =
            Drawing { label, class, width: self.width, height: self.height, groups: &groups };
        drawing.render().expect("text takes every text")
    }
}

/// The backend behind a canvas.
#[derive(Debug)]
pub struct Backend {
    canvas: Canvas,
}

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

impl DrawingBackend for Backend {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        (self.canvas.width, self.canvas.height)
    }

    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }

    fn present(&mut self) -> Drawn {
        Ok(())
    }

    fn draw_pixel(&mut self, point: BackendCoord, _: BackendColor) -> Drawn {
        self.rect(point, (point.0 + 1, point.1 + 1), true, 1.0);
        Ok(())
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Drawn {
        if style.color().alpha > 0.0 && from != to {
            self.canvas.push(Shape::Line { from, to, width: style.stroke_width() });
        }
        Ok(())
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        upper_left: BackendCoord,
        bottom_right: BackendCoord,
        style: &S,
        fill: bool,
    ) -> Drawn {
        self.rect(upper_left, bottom_right, fill, style.color().alpha);
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        let points = points(path);
        if style.color().alpha > 0.0 && !points.is_empty() {
            self.canvas.push(Shape::Path { points, width: style.stroke_width() });
        }
        Ok(())
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        center: BackendCoord,
        radius: u32,
        _: &S,
        fill: bool,
    ) -> Drawn {
        self.canvas.push(Shape::Circle { at: center, radius, is_filled: fill });
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        vertices: I,
        _: &S,
    ) -> Drawn {
        self.canvas.push(Shape::Polygon { points: points(vertices) });
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Drawn {
        use plotters_backend::FontTransform;
        use plotters_backend::text_anchor::{HPos, VPos};
        let anchor = match style.anchor().h_pos {
            HPos::Left => "start",
            HPos::Center => "middle",
            HPos::Right => "end",
        };
        let is_turned = !matches!(style.transform(), FontTransform::None);
        // SVG places text by its baseline.
        let down = match style.anchor().v_pos {
            VPos::Top => TEXT_PX - 2,
            VPos::Center => TEXT_PX / 2 - 1,
            VPos::Bottom => -3,
        };
        let at = if is_turned { (at.0 + down, at.1) } else { (at.0, at.1 + down) };
        self.canvas.push(Shape::Text { at, anchor, text: text.into(), is_turned });
        Ok(())
    }

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        _: &S,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        Ok((text_width(text).max(0) as u32, TEXT_PX as u32))
    }
}

impl Backend {
    fn rect(&self, from: BackendCoord, to: BackendCoord, is_filled: bool, alpha: f64) {
        let (x, width) = (from.0.min(to.0), (to.0 - from.0).abs().max(1));
        let (y, height) = (from.1.min(to.1), (to.1 - from.1).abs().max(1));
        let opacity = if alpha < 1.0 { format!("{alpha:.2}") } else { String::new() };
        self.canvas.push(Shape::Rect { x, y, width, height, is_filled, opacity });
    }
}

/// Returns the points of a path in SVG syntax.
fn points(path: impl IntoIterator<Item = BackendCoord>) -> String {
    let mut text = String::new();
    for (x, y) in path {
        let gap = if text.is_empty() { "" } else { " " };
        text += &format!("{gap}{x},{y}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_text_a_title_or_a_label_stays_text() {
        let canvas = Canvas::new(100, 50);
        canvas.mark("a", "</title><script>1</script>");
        let style = ("sans-serif", 13).into_text_style(&canvas.area());
        canvas.area().draw_text("<b>&\"'", &style, (5, 5)).unwrap();
        let svg = canvas.svg("\"><script>2</script>", "wide");
        assert!(!svg.contains("<script") && !svg.contains("<b>"), "{svg}");
    }

    #[test]
    fn shapes_have_the_class_and_the_title_of_their_mark() {
        let canvas = Canvas::new(100, 50);
        canvas.mark("power-loss", "2.00 GB/s");
        let area = canvas.area();
        area.draw(&Rectangle::new([(10, 10), (30, 20)], BLACK.filled())).unwrap();
        let svg = canvas.svg("bars", "wide");
        assert!(svg.contains(r#"<g class="power-loss">"#), "{svg}");
        assert!(svg.contains("<title>2.00 GB/s</title>"), "{svg}");
        assert!(svg.contains(r#"x="10" y="10" width="20" height="10""#), "{svg}");
    }

    #[test]
    fn a_group_without_shapes_leaves_nothing() {
        let canvas = Canvas::new(10, 10);
        canvas.class("empty");
        assert!(!canvas.svg("nothing", "wide").contains("<g"));
    }
}
