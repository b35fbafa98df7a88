//! The check for poll queues of the device under a folder.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whether reads and writes in `folder` can be polled: the `queue/io_poll` of its device is 1
/// (`Documentation/ABI/stable/sysfs-block`). A file system without a device of its own cannot.
pub fn has_poll_queues(folder: &Path) -> bool {
    let Ok(metadata) = folder.metadata() else { return false };
    let device = metadata.dev();
    let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    polls(&Path::new("/sys/dev/block").join(number))
}

/// Reads an entry of `/sys/dev/block`, or for a partition that of the whole device.
fn polls(device: &Path) -> bool {
    let read = |queue| std::fs::read_to_string(device.join(queue).join("io_poll"));
    read("queue").or_else(|_| read("../queue")).is_ok_and(|text| text.trim() == "1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};

    #[test]
    fn a_partition_polls_where_its_device_does() {
        let sys = tempfile::tempdir().expect("a temporary folder");
        let disk = sys.path().join("nvme0n1");
        create_dir_all(disk.join("nvme0n1p1")).expect("room");
        create_dir_all(disk.join("queue")).expect("room");
        assert!(!polls(&disk), "nothing is said");
        for (text, expected) in [("1\n", true), ("0\n", false)] {
            write(disk.join("queue/io_poll"), text).expect("room");
            assert_eq!(polls(&disk), expected);
            assert_eq!(polls(&disk.join("nvme0n1p1")), expected);
        }
    }

    #[test]
    fn what_has_no_device_cannot_be_polled() {
        assert!(!has_poll_queues(Path::new("/proc")));
    }
}
