//! Sizes, rates and times as people write and read them.

mod parse;
mod show;

pub use parse::{parse_block_size, parse_duration, parse_size};
pub use show::{block_size, bytes, exact, nanoseconds, rate, seconds};
