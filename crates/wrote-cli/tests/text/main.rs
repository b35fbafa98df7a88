//! The texts of `wrote`, none of which needs a disk: exports, help, and refusals of bad input.

#[path = "../support/mod.rs"]
mod support;

mod export;
mod export_langs;
mod export_loops;
mod screen;
mod usage;
