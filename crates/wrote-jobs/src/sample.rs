//! Evidence for tests.

use crate::findings::Evidence;
use wrote_machine::watch::Watched;
use wrote_result::document::{Row, Target};

pub use wrote_result::sample::*;

/// Evidence of these rows, measured as well as can be.
pub fn evidence<'a>(target: &'a Target, rows: &'a [Row]) -> Evidence<'a> {
    Evidence {
        target,
        rows,
        debug_build: false,
        device_counts: true,
        in_memory: false,
        generator_bytes_per_s: 50e9,
        written_bytes_total: 100_000_000_000,
        host: host(),
        watched: Watched::default(),
        overlaps: Vec::new(),
        leftovers: Vec::new(),
        left_out: Vec::new(),
        shortened: None,
        burst: None,
        interrupted: false,
        sharing: None,
    }
}
