//! I/O jobs: their specifications in fio's terms, their runs and their reports; also the machine
//! that they run on, and the doctor's checks of it. This file only declares the modules.

pub mod clock;
pub mod data;
pub mod findings;
pub mod fio;
pub mod fio_report;
mod gates;
pub mod import;
pub mod jobs;
pub mod machine;
pub mod page_cache;
pub mod peers;
pub mod rate;
pub mod report;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
pub mod spec;
pub mod steps;
mod worker;
mod written;

pub use worker::{histogram, pace};
