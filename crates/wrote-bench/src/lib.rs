//! Measuring how fast a disk takes data.

mod bench;
pub mod data;
mod error;
pub mod host;
pub mod result;
pub mod scratch;
pub mod space;
pub mod stats;
mod stop;
pub mod units;
pub mod usage;

pub use bench::{Announcement, Listed, Observer, Progress, Request, bench, catalogue};
pub use error::Error;
pub use stop::Stop;
