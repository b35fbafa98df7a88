//! A block device and its queue, from `/sys/dev/block/MAJOR:MINOR`.

use super::target::BlockDevice;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

pub(super) const SYS: &str = "/sys";

/// The size of the block layer's sector, in bytes. It does not depend on the device's block size.
pub(super) const SECTOR_BYTES: u64 = 512;

/// Describes a device. Facts missing in `/sys` get the defaults documented in [`BlockDevice`].
pub(super) fn describe(sys: &Path, major: u32, minor: u32) -> BlockDevice {
    let folder = folder(sys, major, minor);
    let queue = disk_folder(&folder).join("queue");
    let mut disks = Vec::new();
    let mut models = Vec::new();
    for disk in disk_folders(&folder) {
        push_new(&mut models, model(&disk));
        if disk != folder {
            push_new(&mut disks, name_of(&disk));
        }
    }
    let logical_block_bytes = value(&queue, "logical_block_size").unwrap_or(512);
    BlockDevice {
        name: name_of(&folder).unwrap_or_else(|| format!("{major}:{minor}")),
        major,
        minor,
        disks,
        model: (!models.is_empty()).then(|| models.join(" + ")),
        capacity_bytes: value(&folder, "size").unwrap_or(0u64).saturating_mul(SECTOR_BYTES),
        rotational: flag(&queue, "rotational"),
        scheduler: text(&queue, "scheduler").map_or_else(|| "none".into(), |all| chosen(&all)),
        logical_block_bytes,
        physical_block_bytes: value(&queue, "physical_block_size").unwrap_or(logical_block_bytes),
        optimal_io_bytes: value(&queue, "optimal_io_size").unwrap_or(0),
        write_cache: text(&queue, "write_cache").unwrap_or_else(|| "unknown".into()),
        fua: flag(&queue, "fua"),
        io_poll: flag(&queue, "io_poll"),
        nr_requests: value(&queue, "nr_requests").unwrap_or(0),
        transfer_bytes_max: transfer_bytes_max(&queue),
        atomic_write_bytes_max: value(&queue, "atomic_write_unit_max_bytes").unwrap_or(0),
    }
}

/// Returns the maximum length of a transfer that is a single command at any memory address. Each
/// page may need its own segment, and a transfer that begins within a page needs one more. If the
/// device splits commands at certain boundaries (`chunk_sectors`), no length is guaranteed.
fn transfer_bytes_max(queue: &Path) -> u64 {
    let value = |file| value(queue, file).unwrap_or(0u64);
    if value("chunk_sectors") > 0 {
        return 0;
    }
    let segments = value("max_segments").saturating_sub(1);
    let scattered = segments.saturating_mul(rustix::param::page_size() as u64);
    value("max_sectors_kb").saturating_mul(1024).min(scattered)
}

/// Returns the device's folder in `/sys`, with symbolic links resolved if it exists.
pub(super) fn folder(sys: &Path, major: u32, minor: u32) -> PathBuf {
    let link = sys.join(format!("dev/block/{major}:{minor}"));
    link.canonicalize().unwrap_or(link)
}

/// Returns the folder of the whole disk. The folder of a partition is inside its disk's folder, and
/// only a whole disk has a queue.
pub(super) fn disk_folder(folder: &Path) -> &Path {
    match folder.parent() {
        Some(parent) if folder.join("partition").exists() => parent,
        _ => folder,
    }
}

/// Returns the underlying whole disks, below partitions and stacked devices (`slaves/`: dm, LVM,
/// md, bcache).
fn disk_folders(folder: &Path) -> Vec<PathBuf> {
    let disk = disk_folder(folder);
    let slaves = entries(disk.join("slaves"));
    let mut slaves: Vec<PathBuf> = slaves.filter_map(|slave| slave.canonicalize().ok()).collect();
    if slaves.is_empty() {
        return vec![disk.to_owned()];
    }
    slaves.sort();
    slaves.iter().flat_map(|slave| disk_folders(slave)).collect()
}

/// Returns the number of the device with this `name` below `/dev`.
pub(super) fn by_name(sys: &Path, name: &Path) -> Option<(u32, u32)> {
    // `/dev/cciss/c0d0` is `cciss!c0d0` in `/sys`, because names can't contain slashes.
    let name = name.to_str().filter(|name| !name.is_empty())?.replace('/', "!");
    let number = text(&sys.join("class/block").join(name), "dev")?;
    device_number(number.as_bytes())
}

/// Parses `MAJOR:MINOR`.
pub(super) fn device_number(text: &[u8]) -> Option<(u32, u32)> {
    let (major, minor) = std::str::from_utf8(text).ok()?.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Returns the names of all devices of the Btrfs on `device`; empty for another file system.
pub(super) fn btrfs_devices(sys: &Path, (major, minor): (u32, u32)) -> Vec<String> {
    let folder = folder(sys, major, minor);
    let Some(name) = folder.file_name() else { return Vec::new() };
    let mut names: Vec<String> = entries(sys.join("fs/btrfs"))
        .map(|file_system| file_system.join("devices"))
        .find(|devices| devices.join(name).exists())
        .into_iter()
        .flat_map(entries)
        .filter_map(|device| name_of(&device))
        .collect();
    names.sort();
    names
}

fn entries(folder: PathBuf) -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path()))
}

/// Returns whether any part of the device is in memory (zram, brd `ram0`, null_blk `nullb0`).
pub(super) fn is_memory(sys: &Path, device: &BlockDevice) -> bool {
    let disks = disk_folders(&folder(sys, device.major, device.minor));
    disks.iter().any(|disk| {
        let name = name_of(disk).unwrap_or_default();
        let kind = name.trim_end_matches(|last: char| last.is_ascii_digit());
        matches!(kind, "zram" | "ram" | "nullb")
    })
}

/// Returns the file that backs a loop device or its partition, under the path used when the device
/// was set up.
pub(super) fn loop_file(sys: &Path, major: u32, minor: u32) -> Option<PathBuf> {
    backing_file(disk_folder(&folder(sys, major, minor)))
}

fn backing_file(disk: &Path) -> Option<PathBuf> {
    let bytes = std::fs::read(disk.join("loop/backing_file")).ok()?;
    Some(PathBuf::from(OsStr::from_bytes(bytes.trim_ascii_end())))
}

/// Returns the disk's model. SCSI, SATA and NVMe disks have a `model`, MMC cards a `name`, virtio
/// disks neither.
fn model(disk: &Path) -> Option<String> {
    let device = disk.join("device");
    text(&device, "model")
        .or_else(|| text(&device, "name"))
        .or_else(|| backing_file(disk).map(|file| format!("file {}", file.display())))
}

fn name_of(folder: &Path) -> Option<String> {
    let name = folder.file_name()?.to_str()?;
    // An unresolved folder ends in MAJOR:MINOR, which serves as the name.
    Some(name.replace('!', "/"))
}

fn push_new(list: &mut Vec<String>, item: Option<String>) {
    list.extend(item.filter(|item| !list.contains(item)));
}

/// Returns the name in brackets, as in `none [mq-deadline] kyber`; the whole text if there are no
/// brackets.
fn chosen(all: &str) -> String {
    let bracketed = all.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(all, |(chosen, _)| chosen).to_owned()
}

/// Reads a file's text and trims it; returns `None` if the file is missing or empty.
pub(super) fn text(folder: &Path, file: &str) -> Option<String> {
    let bytes = std::fs::read(folder.join(file)).ok()?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    (!text.is_empty()).then_some(text)
}

fn value<T: FromStr>(folder: &Path, file: &str) -> Option<T> {
    text(folder, file)?.parse().ok()
}

/// Returns whether the file contains a number other than 0.
fn flag(folder: &Path, file: &str) -> bool {
    value(folder, file).unwrap_or(0u32) != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::fake::Sys;

    #[test]
    fn a_whole_disk_is_described_by_its_own_files() {
        let sys = Sys::new();
        sys.disk("nvme0n1", (259, 0), 1000);
        sys.file("devices/nvme0n1/device/model", "Sample SSD 1TB                  \n");
        for (file, content) in [
            ("scheduler", "none [mq-deadline] kyber \n"),
            ("logical_block_size", "512\n"),
            ("physical_block_size", "4096\n"),
            ("write_cache", "write back\n"),
            ("fua", "1\n"),
            ("io_poll", "1\n"),
            ("nr_requests", "1023\n"),
            ("max_sectors_kb", "1280\n"),
            ("max_segments", "127\n"),
            ("atomic_write_unit_max_bytes", "16384\n"),
            ("rotational", "0\n"),
        ] {
            sys.file(&format!("devices/nvme0n1/queue/{file}"), content);
        }
        let expected = BlockDevice {
            name: "nvme0n1".into(),
            major: 259,
            minor: 0,
            disks: Vec::new(),
            model: Some("Sample SSD 1TB".into()),
            capacity_bytes: 512_000,
            rotational: false,
            scheduler: "mq-deadline".into(),
            logical_block_bytes: 512,
            physical_block_bytes: 4096,
            optimal_io_bytes: 0,
            write_cache: "write back".into(),
            fua: true,
            io_poll: true,
            nr_requests: 1023,
            transfer_bytes_max: 126 * rustix::param::page_size() as u64,
            atomic_write_bytes_max: 16384,
        };
        assert_eq!(describe(sys.path(), 259, 0), expected);
    }

    #[test]
    fn a_partition_has_its_own_size_and_its_disks_queue() {
        let sys = Sys::new();
        sys.disk("sda", (8, 0), 1000);
        sys.partition("sda", "sda1", (8, 1), 600);
        sys.file("devices/sda/device/model", "Turning 4T\n");
        sys.file("devices/sda/queue/rotational", "1\n");
        let device = describe(sys.path(), 8, 1);
        assert_eq!((device.name.as_str(), device.capacity_bytes), ("sda1", 600 * 512));
        assert_eq!(device.disks, ["sda"]);
        assert_eq!(device.model.as_deref(), Some("Turning 4T"));
        assert!(device.rotational);
    }

    #[test]
    fn a_mapped_device_is_followed_down_to_its_whole_disks() {
        // LVM (dm-1) over dm-crypt (dm-0) over a partition, and over a second disk.
        let sys = Sys::new();
        sys.disk("sda", (8, 0), 1000);
        sys.partition("sda", "sda1", (8, 1), 600);
        sys.disk("sdb", (8, 16), 1000);
        sys.disk("dm-0", (252, 0), 600);
        sys.disk("dm-1", (252, 1), 900);
        sys.slave("dm-0", "sda/sda1");
        sys.slave("dm-1", "dm-0");
        sys.slave("dm-1", "sdb");
        sys.file("devices/sda/device/model", "One\n");
        sys.file("devices/sdb/device/model", "Two\n");
        sys.file("devices/dm-1/queue/write_cache", "write through\n");
        let device = describe(sys.path(), 252, 1);
        assert_eq!(device.name, "dm-1");
        assert_eq!(device.disks, ["sda", "sdb"]);
        assert_eq!(device.model.as_deref(), Some("One + Two"));
        assert_eq!(device.write_cache, "write through");
        assert_eq!((device.scheduler.as_str(), device.nr_requests), ("none", 0));
    }

    #[test]
    fn a_loop_device_is_a_disk_that_names_its_file() {
        let sys = Sys::new();
        sys.disk("loop3", (7, 3), 1000);
        sys.partition("loop3", "loop3p1", (259, 5), 600);
        sys.file("devices/loop3/loop/backing_file", "/data/an image\n");
        let whole = describe(sys.path(), 7, 3);
        assert_eq!(whole.disks, Vec::<String>::new());
        assert_eq!(whole.model.as_deref(), Some("file /data/an image"));
        assert_eq!(describe(sys.path(), 259, 5).disks, ["loop3"]);
        assert_eq!(loop_file(sys.path(), 259, 5), Some("/data/an image".into()));
    }

    #[test]
    fn a_device_that_sysfs_does_not_know_gets_defaults() {
        let sys = Sys::new();
        let device = describe(sys.path(), 8, 1);
        assert_eq!(device.name, "8:1");
        assert_eq!(device.disks, Vec::<String>::new());
        assert_eq!((device.capacity_bytes, device.logical_block_bytes), (0, 512));
        assert_eq!((device.scheduler.as_str(), device.write_cache.as_str()), ("none", "unknown"));
        assert!(!is_memory(sys.path(), &device));
    }

    #[test]
    fn a_name_with_a_slash_is_found() {
        let sys = Sys::new();
        sys.disk("cciss!c0d0", (104, 0), 1000);
        assert_eq!(by_name(sys.path(), Path::new("cciss/c0d0")), Some((104, 0)));
        assert_eq!(by_name(sys.path(), Path::new("")), None);
        assert_eq!(describe(sys.path(), 104, 0).name, "cciss/c0d0");
    }

    #[test]
    fn a_disk_that_is_memory_in_part_is_memory() {
        let sys = Sys::new();
        sys.disk("zram0", (253, 0), 1000);
        sys.disk("sda", (8, 0), 1000);
        sys.disk("dm-0", (252, 0), 600);
        sys.slave("dm-0", "sda");
        let is_memory = |major, minor| is_memory(sys.path(), &describe(sys.path(), major, minor));
        assert!(is_memory(253, 0));
        assert!(!is_memory(252, 0));
        sys.slave("dm-0", "zram0");
        assert!(is_memory(252, 0));
        assert!(!is_memory(8, 0));
    }
}
