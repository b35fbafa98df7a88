//! A heat map: a figure for each cell of a grid. A darker cell has a higher figure. Each kind of
//! chart has a separate file.

use super::axis::Axis;
use super::canvas::{Anchor, Canvas, MIDDLE, TOP, text_width};
use super::plot::{Picture, WIDE, field};

/// A cell of a heat map.
#[derive(Clone, Debug)]
pub struct Cell {
    /// The line of the cell, from 0 at the top.
    pub side: usize,
    /// The column of the cell.
    pub head: usize,
    /// The value of the cell.
    pub value: f64,
    /// The value in words.
    pub figure: String,
    /// The value in fewer characters, in a unit that the page names.
    pub short: String,
    /// The tooltip.
    pub title: String,
    /// Whether the cell is the best one.
    pub is_best: bool,
}

const CELL_PX: u32 = 30;

/// Draws the cells of a grid. `title` describes the sides.
pub fn heat(label: &str, title: &str, sides: &[&str], heads: &[&str], cells: &[Cell]) -> Picture {
    let most = cells.iter().map(|cell| cell.value).fold(f64::MIN_POSITIVE, f64::max);
    let axis = |number: usize, ticks, title: &str| Axis {
        min: 0.0,
        max: number as f64,
        ticks,
        title: title.into(),
    };
    let down = sides.iter().rev().enumerate();
    let down = down.map(|(number, side)| (number as f64 + 0.5, (*side).to_owned())).collect();
    let (x, y) = (axis(heads.len(), Vec::new(), ""), axis(sides.len(), down, title));
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
        let is_narrow = heads.iter().any(|head| text_width(head) + 4 > room);
        for (number, head) in heads.iter().enumerate() {
            // If a column is narrower than its name, every second name is placed lower.
            let below_px = if is_narrow && number % 2 == 1 { 26 } else { 10 };
            plot.text((number as f64 + 0.5, 0.0), (0, below_px), *head, Anchor::MIDDLE, TOP);
        }
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
