//! Measuring how fast a disk takes data.

pub mod advice;
mod append;
mod bench;
pub mod data;
mod error;
pub mod findings;
pub mod fio;
pub mod fio_json;
mod gates;
mod grid;
pub mod host;
mod job;
pub mod jobs;
mod ladder;
mod plan;
pub mod report;
pub mod result;
mod run;
#[cfg(test)]
mod sample;
pub mod scratch;
mod session;
pub mod space;
pub mod spec;
pub mod stats;
mod stop;
pub mod units;
pub mod usage;
mod ways;
mod worker;

pub use bench::{Announcement, AppendAs, Listed, Observer, Progress, Request, bench, catalogue};
pub use error::Error;
pub use stop::Stop;
