//! Evidence for tests. This is a separate file because it is compiled only for tests and with one
//! of this crate's features.

use crate::findings::Evidence;
use wrote::device;
use wrote_result::document::{Row, Target};

pub use wrote_result::sample::*;

/// Returns evidence of these rows, as if measured without flaws.
pub fn evidence<'a>(target: &'a Target, rows: &'a [Row]) -> Evidence<'a> {
    Evidence {
        generator_bytes_per_s: 50e9,
        written_bytes_total: 100_000_000_000,
        host: host(),
        ..Evidence::of_rows(target, rows)
    }
}

/// Returns a target on a disk of this capacity with `free_bytes` free, as the library describes it.
pub fn place(capacity_bytes: u64, free_bytes: u64) -> device::Target {
    let mut place = device::Target::default();
    place.path = "/data".into();
    place.mount_point = "/".into();
    place.filesystem = "ext4".into();
    (place.capacity_bytes, place.free_bytes) = (capacity_bytes, free_bytes);
    place
}
