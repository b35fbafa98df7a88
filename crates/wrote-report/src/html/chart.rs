//! Charts: each kind of chart in a room, drawn by plotters on a canvas that becomes SVG.

mod axis;
mod bars;
mod beside;
mod canvas;
mod course;
mod forest;
mod heat;
mod load;
mod percentiles;
mod plot;
mod scatter;
mod spread;
mod strips;
mod time;

pub use axis::{per_second, rate};
pub use bars::{Bar, Reference, bars};
pub use beside::{Mark, beside};
pub use course::course;
pub use forest::{Ratio, forest};
pub use heat::{Cell, heat};
pub use load::{Rate, load};
pub use percentiles::{Curve, percentiles};
pub use plot::Picture;
pub use scatter::{Dot, scatter};
pub use spread::{Spread, spreads};
pub use strips::{Strip, strips};
pub use time::{Moment, over_time};
