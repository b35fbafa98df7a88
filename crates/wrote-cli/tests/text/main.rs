//! The texts of `wrote`: exports, help, and refusals of bad input. No test needs a disk.

#[path = "../support/mod.rs"]
mod support;

mod export;
mod export_langs;
mod export_loops;
mod screen;
mod usage;
