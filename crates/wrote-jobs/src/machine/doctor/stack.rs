//! The files in `/proc` and `/sys`, and the devices that they show below a file system, from the
//! file system's own device down to the whole disks.

use std::fs;
use std::path::{Path, PathBuf};
use wrote_result::doctor::Evidence;

/// The maximum depth of stacked devices; anything deeper must be a cycle.
const DEPTH_MAX: usize = 16;

/// The folder that contains `proc`, `sys` and `etc`.
#[derive(Clone, Debug)]
pub(super) struct Root(PathBuf);

impl Root {
    pub fn new(folder: impl Into<PathBuf>) -> Root {
        Root(folder.into())
    }

    pub fn folder(&self) -> &Path {
        &self.0
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    /// Returns the trimmed text of a file; `None` if it is missing, empty or unreadable.
    pub fn text(&self, file: &str) -> Option<String> {
        crate::machine::text(&self.path(file))
    }

    /// Returns the text of a file as evidence; `None` if [`Root::text`] has none.
    pub fn see(&self, file: &str) -> Option<Evidence> {
        Some(Evidence::new(format!("/{file}"), self.text(file)?))
    }

    pub fn number(&self, file: &str) -> Option<i64> {
        self.see(file)?.number()
    }

    /// Returns the sorted names in a folder; empty if there is no such folder.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Returns the value of the line `name: value` or `name value` in a file of `/proc`; `None` if
    /// there is no such line.
    pub fn line(&self, file: &str, name: &str) -> Option<Evidence> {
        let text = self.text(file)?;
        let of_line = |line: &str| Some(line.strip_prefix(name)?.trim().to_owned());
        // Runs of blanks between columns become single spaces.
        let value = text.lines().find_map(of_line)?;
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        Some(Evidence::new(format!("/{file}, {}", name.trim_end_matches(':')), value))
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Stack {
    /// The device whose queue the file system uses: a whole disk or a layer.
    pub top: Option<String>,
    /// The whole disks at the bottom, each listed once.
    pub disks: Vec<Disk>,
    /// The devices built from other devices (dm, md, bcache), from the top down, each listed once.
    pub layers: Vec<String>,
    /// The partitions at any depth.
    pub partitions: Vec<Partition>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Disk {
    pub name: String,
    /// The kind of the disk, as far as it is known.
    pub kind: DiskKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Partition {
    pub name: String,
    pub disk: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DiskKind {
    /// A drive with an NVMe controller, real or emulated by a hypervisor.
    Nvme,
    /// A virtual disk of a hypervisor.
    Virtual,
    /// A loop device, which is backed by a file.
    Loop,
    /// A disk in main memory.
    Memory,
    /// A hard disk, according to the kernel.
    Turning,
    /// Flash on SATA, SAS, USB or MMC.
    Solid,
}

impl Stack {
    /// Returns the devices below the device called `name`.
    pub fn of(root: &Root, name: &str) -> Stack {
        let mut stack = Stack::default();
        // In `/sys`, an exclamation mark replaces each slash in a name.
        let name = name.replace('/', "!");
        stack.top = Some(stack.go_down(root, &name, 0));
        stack
    }

    /// Adds a device and everything below it. Returns the name of the whole device.
    fn go_down(&mut self, root: &Root, name: &str, depth: usize) -> String {
        let disk = disk_of(root, name);
        if disk != name {
            push_new(&mut self.partitions, Partition { name: name.to_owned(), disk: disk.clone() });
        }
        let slaves = root.names(&format!("sys/block/{disk}/slaves"));
        if slaves.is_empty() || depth >= DEPTH_MAX {
            let kind = kind(root, &disk);
            push_new(&mut self.disks, Disk { name: disk.clone(), kind });
            return disk;
        }
        push_new(&mut self.layers, disk.clone());
        for slave in slaves {
            self.go_down(root, &slave, depth + 1);
        }
        disk
    }
}

impl Disk {
    /// Returns a file of the disk's queue; `None` if it is missing or unreadable.
    pub fn queue(&self, root: &Root, file: &str) -> Option<Evidence> {
        root.see(&format!("sys/block/{}/queue/{file}", self.name))
    }

    pub fn queue_number(&self, root: &Root, file: &str) -> Option<i64> {
        self.queue(root, file)?.number()
    }
}

impl DiskKind {
    pub fn noun(self) -> &'static str {
        match self {
            DiskKind::Nvme => "NVMe disk",
            DiskKind::Virtual => "virtual disk",
            DiskKind::Loop => "loop device",
            DiskKind::Memory => "disk of memory",
            DiskKind::Turning => "hard disk",
            DiskKind::Solid => "flash disk",
        }
    }
}

/// Returns the whole device that `name` is a partition of, or else `name` itself. The folder of a
/// partition is inside the folder of its disk.
fn disk_of(root: &Root, name: &str) -> String {
    let link = root.path(&format!("sys/class/block/{name}"));
    let folder: PathBuf = link.canonicalize().unwrap_or(link);
    let parent = folder.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    match parent {
        Some(parent) if folder.join("partition").exists() => parent.to_owned(),
        _ => name.to_owned(),
    }
}

fn kind(root: &Root, disk: &str) -> DiskKind {
    let of = |file: &str| root.text(&format!("sys/block/{disk}/{file}")).unwrap_or_default();
    let stem = disk.trim_end_matches(|last: char| last.is_ascii_digit());
    if matches!(stem, "zram" | "ram" | "nullb") {
        return DiskKind::Memory;
    }
    if stem == "loop" {
        return DiskKind::Loop;
    }
    if disk.starts_with("nvme") {
        return DiskKind::Nvme;
    }
    let (vendor, model) = (of("device/vendor"), of("device/model"));
    let virtual_vendors = ["QEMU", "VMware", "Msft", "Google", "XENSRC", "NUTANIX"];
    let is_virtual = ["vd", "xvd"].iter().any(|prefix| disk.starts_with(prefix))
        || virtual_vendors.iter().any(|known| vendor.starts_with(known))
        || ["QEMU HARDDISK", "VBOX HARDDISK"].iter().any(|known| model.starts_with(known));
    match of("queue/rotational").as_str() {
        _ if is_virtual => DiskKind::Virtual,
        "1" => DiskKind::Turning,
        _ => DiskKind::Solid,
    }
}

fn push_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::doctor::fake::Fake;

    #[test]
    fn a_logical_volume_on_two_partitions_leads_down_to_their_disks() {
        let fake = Fake::new();
        fake.disk("sda", &[("rotational", "1")]);
        fake.disk("nvme0n1", &[("rotational", "0")]);
        fake.partition("sda", "sda2", 4096);
        fake.partition("nvme0n1", "nvme0n1p1", 2048);
        fake.disk("dm-0", &[]);
        fake.slave("dm-0", "sda2");
        fake.slave("dm-0", "nvme0n1p1");
        let stack = Stack::of(&fake.world("dm-0").root, "dm-0");
        assert_eq!(stack.top.as_deref(), Some("dm-0"));
        assert_eq!(stack.layers, ["dm-0"]);
        let disks: Vec<(&str, DiskKind)> =
            stack.disks.iter().map(|disk| (disk.name.as_str(), disk.kind)).collect();
        assert_eq!(disks, [("nvme0n1", DiskKind::Nvme), ("sda", DiskKind::Turning)]);
        let parts: Vec<&str> = stack.partitions.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(parts, ["nvme0n1p1", "sda2"]);
    }

    #[test]
    fn a_partition_stands_on_its_disk() {
        let fake = Fake::new();
        fake.disk("vda", &[("rotational", "1")]);
        fake.partition("vda", "vda1", 2048);
        let stack = Stack::of(&fake.world("vda1").root, "vda1");
        assert_eq!(stack.top.as_deref(), Some("vda"));
        assert_eq!(stack.disks, [Disk { name: "vda".into(), kind: DiskKind::Virtual }]);
        assert!(stack.layers.is_empty());
    }

    #[test]
    fn a_disk_is_told_by_its_name_its_vendor_or_whether_it_turns() {
        let fake = Fake::new();
        let of = |name: &str, files: &[(&str, &str)], vendor: &str| {
            fake.disk(name, files);
            fake.file(&format!("sys/block/{name}/device/vendor"), vendor);
            kind(&fake.world(name).root, name)
        };
        assert_eq!(of("sda", &[("rotational", "1")], "SEAGATE"), DiskKind::Turning);
        assert_eq!(of("sdb", &[("rotational", "0")], "ATA     "), DiskKind::Solid);
        assert_eq!(of("sdc", &[("rotational", "1")], "QEMU    "), DiskKind::Virtual);
        assert_eq!(of("zram0", &[], ""), DiskKind::Memory);
        assert_eq!(of("loop12", &[], ""), DiskKind::Loop);
        assert_eq!(of("mmcblk0", &[("rotational", "0")], ""), DiskKind::Solid);
    }
}
