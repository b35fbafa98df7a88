//! Measuring how fast a disk takes data.

pub mod result;
pub mod stats;
