//! Places for tests.

use wrote::device;

/// A place on a disk of this size with `free_bytes` free, as the library examines it.
pub fn place(capacity_bytes: u64, free_bytes: u64) -> device::Target {
    device::Target {
        path: "/data".into(),
        mount_point: "/".into(),
        filesystem: "ext4".into(),
        mount_options: Vec::new(),
        capacity_bytes,
        free_bytes,
        read_only: false,
        in_memory: false,
        backing: device::Backing::None { because: String::new() },
    }
}
