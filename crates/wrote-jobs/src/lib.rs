//! I/O jobs: described as fio describes them, run, and reported.

pub mod buffers;
pub mod clock;
pub mod data;
pub mod findings;
pub mod fio;
pub mod fio_json;
pub mod gates;
pub mod import;
pub mod jobs;
pub mod page_cache;
pub mod rate;
pub mod report;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
pub mod spec;
#[allow(missing_docs)]
pub mod worker;
