//! Measuring how fast a disk takes data.

pub mod advice;
mod bench;
pub mod data;
mod error;
pub mod findings;
pub mod host;
pub mod result;
#[cfg(test)]
mod sample;
pub mod scratch;
pub mod space;
pub mod stats;
mod stop;
pub mod units;
pub mod usage;

pub use bench::{Announcement, Listed, Observer, Progress, Request, bench, catalogue};
pub use error::Error;
pub use stop::Stop;
