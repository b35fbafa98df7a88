//! Measuring how fast a disk takes data: scenarios, each a question that is answered by rows in turn.

#![allow(missing_docs)]

pub mod bench;
pub mod choice;
pub mod measured;
pub mod rounds;
#[cfg(test)]
mod sample;
pub mod scenario;
pub mod scenarios;
pub mod scratch;
pub mod versus;

pub use bench::{Announcement, AppendAs, Listed, Observer, Progress, Request, bench, catalogue};
pub use scenarios::latency::knows as knows_save;
