//! A heat map: a figure for each cell of a grid; darker is more. It is a separate file, as each
//! kind of chart is.

use super::axis::Axis;
use super::canvas::{Anchor, Canvas, MIDDLE, text_width};
use super::plot::{Picture, WIDE, field};

/// A cell.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Its line, from 0 at the top.
    pub side: usize,
    /// Its column.
    pub head: usize,
    /// Its value.
    pub value: f64,
    /// The value in words.
    pub figure: String,
    /// The value in fewer characters, in a unit that the page names.
    pub short: String,
    /// The tooltip.
    pub title: String,
    /// Whether it is the best.
    pub is_best: bool,
}

const CELL_PX: u32 = 30;

/// Draws the cells of a grid. `title` names the sides.
pub fn heat(label: &str, title: &str, sides: &[&str], heads: &[&str], cells: &[Cell]) -> Picture {
    let most = cells.iter().map(|cell| cell.value).fold(f64::MIN_POSITIVE, f64::max);
    let axis = |names: &[&str], is_down: bool, title: &str| {
        let place = |number: usize| match is_down {
            true => (names.len() - number) as f64 - 0.5,
            false => number as f64 + 0.5,
        };
        let ticks =
            names.iter().enumerate().map(|(number, name)| (place(number), (*name).to_owned()));
        Axis { min: 0.0, max: names.len() as f64, ticks: ticks.collect(), title: title.into() }
    };
    let (x, y) = (axis(heads, false, ""), axis(sides, true, title));
    Picture::of(label, |layout| {
        let height = CELL_PX * sides.len() as u32 + 72;
        let widest = sides.iter().map(|side| text_width(side)).max().unwrap_or(0);
        let figures = cells.iter().map(|cell| text_width(&cell.figure)).max().unwrap_or(0);
        let column = heads.iter().map(|head| text_width(head)).fold(figures, i32::max) + 24;
        let wanted = widest + 44 + column * heads.len() as i32;
        let width = match layout == WIDE {
            true => (wanted as u32).clamp(420, layout.width),
            false => layout.width,
        };
        let room = (width as i32 - widest - 44) / heads.len().max(1) as i32;
        let mut plot = field(Canvas::new(width, height), &x, &y, false);
        for cell in cells {
            let low = (cell.head as f64, (sides.len() - cell.side) as f64 - 1.0);
            let high = (low.0 + 1.0, low.1 + 1.0);
            plot.mark("cell", cell.title.clone());
            plot.rectangle(low, high, 0.04 + 0.56 * (cell.value / most).max(0.0));
            if cell.is_best {
                plot.class("best");
                plot.border(low, high);
            }
            let figure =
                if text_width(&cell.figure) + 4 > room { &cell.short } else { &cell.figure };
            plot.class("figure");
            let middle = (low.0 + 0.5, low.1 + 0.5);
            plot.text(middle, (0, 0), &**figure, Anchor::MIDDLE, MIDDLE);
        }
        plot
    })
}
