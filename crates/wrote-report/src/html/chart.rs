//! Charts: each kind of chart in a room, drawn by plotters on a canvas that becomes SVG.

mod axis;
mod canvas;
mod course;
mod dots;
mod heat;
mod load;
mod percentiles;
mod plot;
mod scatter;
mod spread;
mod strips;
mod time;

pub use axis::{per_second, rate, ratio};
pub use course::course;
pub use dots::{Dot, Frame, Reference, dots};
pub use heat::{Cell, heat};
pub use load::{Rate, load};
pub use percentiles::{Curve, percentiles};
pub use plot::Picture;
pub use scatter::{Point, scatter};
pub use spread::{Spread, spreads};
pub use strips::{Strip, strips};
pub use time::{Moment, over_time};
