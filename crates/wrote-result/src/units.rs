//! Sizes, rates, durations and times as text.

mod moment;
mod parse;
mod show;

pub use moment::parse_moment;
pub use parse::{parse_block_size, parse_count, parse_duration, parse_pause, parse_size};
pub use show::{
    COUNTS, RATES, TIMES, alike, block_size, bytes, counted, exact, nanoseconds, part, rate,
    rounded, seconds, significant, some_of,
};
