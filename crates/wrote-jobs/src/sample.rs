//! Evidence for tests. It is a separate file because only tests and a feature of this crate have
//! it.

use crate::findings::Evidence;
use wrote::device;
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

/// Returns a place on a disk of this size with `free_bytes` free, as the library examines it.
pub fn place(capacity_bytes: u64, free_bytes: u64) -> device::Target {
    let mut place = device::Target::default();
    place.path = "/data".into();
    place.mount_point = "/".into();
    place.filesystem = "ext4".into();
    (place.capacity_bytes, place.free_bytes) = (capacity_bytes, free_bytes);
    place
}
