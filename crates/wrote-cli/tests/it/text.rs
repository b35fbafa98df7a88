//! Tests of the texts of `wrote`: exports, help, and refusals of bad input. No test needs a disk.

mod export;
mod export_fit;
mod export_loops;
pub mod screen;
mod usage;
mod widths;
