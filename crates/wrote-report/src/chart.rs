//! Charts: each kind of chart in a room, drawn by plotters on a canvas that becomes SVG.

mod axis;
mod canvas;
mod dots;
mod heat;
mod lines;
mod plot;
mod scatter;
mod spread;
mod timeline;

pub use axis::{Axis, bytes, nanoseconds, per_second, rate, ratio};
pub use dots::{Dot, Frame, READING, dots, saved};
pub use heat::{Cell, heat};
pub use lines::{Bar, Line, Lines, Spot, lines};
pub use plot::{Layout, Picture, Reference};
pub use scatter::{Point, scatter};
pub use spread::{Spread, spreads};
pub use timeline::{Mark, timeline};
