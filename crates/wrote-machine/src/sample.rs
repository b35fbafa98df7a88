//! Places for tests.

use wrote::device;

/// A place on a disk of this size with `free_bytes` free, as the library examines it.
pub fn place(capacity_bytes: u64, free_bytes: u64) -> device::Target {
    let mut place = device::Target::default();
    place.path = "/data".into();
    place.mount_point = "/".into();
    place.filesystem = "ext4".into();
    (place.capacity_bytes, place.free_bytes) = (capacity_bytes, free_bytes);
    place
}
