//! Measuring how fast a disk takes data.

pub mod advice;
mod append;
mod bench;
pub mod compare;
pub mod data;
pub mod doctor;
mod error;
pub mod findings;
pub mod fio;
pub mod fio_json;
mod gates;
mod grid;
mod held;
pub mod host;
pub mod import;
mod job;
pub mod jobs;
mod ladder;
mod latency;
mod load;
mod machine;
mod plan;
pub mod rate;
pub mod report;
pub mod result;
mod run;
mod runs;
#[cfg(test)]
mod sample;
mod scenario;
pub mod scratch;
mod shown;
pub mod space;
pub mod spec;
pub mod stats;
mod stop;
mod sustained;
pub mod units;
pub mod usage;
pub mod versus;
mod ways;
mod worker;

pub use bench::{Announcement, AppendAs, Listed, Observer, Progress, Request, bench, catalogue};
pub use error::Error;
pub use latency::{SyncCost, knows as knows_save, sync_costs};
pub use stop::Stop;
