//! Charts: a module for each kind of chart, drawn on a canvas that becomes SVG. This file only
//! names the modules.

mod axis;
mod canvas;
mod heat;
mod lanes;
mod lines;
mod plot;

pub use axis::{Axis, bytes, nanoseconds, per_second, rate, ratio};
pub use heat::{Cell, heat};
pub use lanes::{Dot, Frame, Mark, READING, Spread, dots, ranges, saved, spreads, timeline};
pub use lines::{Bar, Line, Lines, Spot, lines};
pub use plot::{Layout, Picture, Reference};
