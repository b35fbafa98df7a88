//! Evidence for tests.

use crate::findings::Evidence;
use wrote_result::document::{Row, Target};

pub use wrote_result::sample::*;

/// Evidence of these rows, measured without flaws.
pub fn evidence<'a>(target: &'a Target, rows: &'a [Row]) -> Evidence<'a> {
    Evidence {
        generator_bytes_per_s: 50e9,
        written_bytes_total: 100_000_000_000,
        host: host(),
        ..Evidence::of_rows(target, rows)
    }
}
