//! The documents that `wrote` writes and reads, and everything computed from them: statistics,
//! units, comparison.

pub mod compare;
pub mod doctor;
pub mod document;
mod figures;
pub mod finding;
pub mod histogram;
pub mod langs;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
pub mod saves;
pub mod shell;
pub mod stats;
mod stop;
pub mod trace;
pub mod units;
mod words;

pub use stop::{Error, Stop};
