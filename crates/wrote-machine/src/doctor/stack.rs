//! What a file system lies on, from its own device down to the whole disks, as `/sys` shows it.

use super::world::World;
use std::path::{Path, PathBuf};
use wrote_result::doctor::Evidence;

/// Devices below devices end somewhere; what goes deeper than this is a circle.
const DEPTH_MAX: usize = 16;

/// The devices below a path.
#[derive(Clone, Debug, Default)]
pub(super) struct Stack {
    /// The device whose queue the file system speaks to: a whole disk or a layer.
    pub top: Option<String>,
    /// The whole disks at the bottom, each once.
    pub disks: Vec<Disk>,
    /// What is made of other devices (dm, md, bcache), from the top down, each once.
    pub layers: Vec<String>,
    /// Partitions, wherever one is in between.
    pub partitions: Vec<Partition>,
}

/// A whole disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Disk {
    /// Its name in `/sys/block`.
    pub name: String,
    /// What it is, as far as that can be told.
    pub kind: Kind,
}

/// A part of a disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Partition {
    /// Its own name.
    pub name: String,
    /// The name of the disk that it is a part of.
    pub disk: String,
}

/// What a disk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Behind an NVMe controller, real or a hypervisor's.
    Nvme,
    /// A hypervisor's.
    Virtual,
    /// A file.
    Loop,
    /// Main memory.
    Memory,
    /// It turns, as far as the kernel knows.
    Turning,
    /// Flash behind SATA, SAS, USB or MMC.
    Solid,
}

impl Stack {
    /// What lies below the device of this name.
    pub fn of(world: &World, name: &str) -> Stack {
        let mut stack = Stack::default();
        // In `/sys` a slash in a name is an exclamation mark.
        let name = name.replace('/', "!");
        stack.top = Some(stack.go_down(world, &name, 0));
        stack
    }

    /// Notes a device and all below it; gives the name of the whole device that it is or is a part of.
    fn go_down(&mut self, world: &World, name: &str, depth: usize) -> String {
        let disk = disk_of(world, name);
        if disk != name {
            push_new(&mut self.partitions, Partition { name: name.to_owned(), disk: disk.clone() });
        }
        let slaves = world.names(&format!("sys/block/{disk}/slaves"));
        if slaves.is_empty() || depth >= DEPTH_MAX {
            let kind = kind(world, &disk);
            push_new(&mut self.disks, Disk { name: disk.clone(), kind });
            return disk;
        }
        push_new(&mut self.layers, disk.clone());
        for slave in slaves {
            self.go_down(world, &slave, depth + 1);
        }
        disk
    }
}

impl Disk {
    /// A file of its queue; `None` where there is none, or where the kernel does not give it.
    pub fn queue(&self, world: &World, file: &str) -> Option<Evidence> {
        world.see(&format!("sys/block/{}/queue/{file}", self.name))
    }

    /// The same, as a number.
    pub fn queue_number(&self, world: &World, file: &str) -> Option<i64> {
        self.queue(world, file)?.number()
    }
}

impl Kind {
    /// What a sentence calls it.
    pub fn noun(self) -> &'static str {
        match self {
            Kind::Nvme => "NVMe disk",
            Kind::Virtual => "virtual disk",
            Kind::Loop => "loop device",
            Kind::Memory => "disk of memory",
            Kind::Turning => "disk that turns",
            Kind::Solid => "disk of flash",
        }
    }
}

/// The whole device of which `name` is a part, or `name` itself: a partition's folder lies in that of
/// its disk.
fn disk_of(world: &World, name: &str) -> String {
    let link = world.path(&format!("sys/class/block/{name}"));
    let folder: PathBuf = link.canonicalize().unwrap_or(link);
    let parent = folder.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    match parent {
        Some(parent) if folder.join("partition").exists() => parent.to_owned(),
        _ => name.to_owned(),
    }
}

fn kind(world: &World, disk: &str) -> Kind {
    let of = |file: &str| world.text(&format!("sys/block/{disk}/{file}")).unwrap_or_default();
    let stem = disk.trim_end_matches(|last: char| last.is_ascii_digit());
    if matches!(stem, "zram" | "ram" | "nullb") {
        return Kind::Memory;
    }
    if stem == "loop" {
        return Kind::Loop;
    }
    if disk.starts_with("nvme") {
        return Kind::Nvme;
    }
    let (vendor, model) = (of("device/vendor"), of("device/model"));
    let virtual_vendors = ["QEMU", "VMware", "Msft", "Google", "XENSRC", "NUTANIX"];
    let is_virtual = ["vd", "xvd"].iter().any(|prefix| disk.starts_with(prefix))
        || virtual_vendors.iter().any(|known| vendor.starts_with(known))
        || ["QEMU HARDDISK", "VBOX HARDDISK"].iter().any(|known| model.starts_with(known));
    match of("queue/rotational").as_str() {
        _ if is_virtual => Kind::Virtual,
        "1" => Kind::Turning,
        _ => Kind::Solid,
    }
}

fn push_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

#[cfg(test)]
mod tests {
    use super::super::fake::Fake;
    use super::*;

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
        let stack = Stack::of(&fake.world("dm-0"), "dm-0");
        assert_eq!(stack.top.as_deref(), Some("dm-0"));
        assert_eq!(stack.layers, ["dm-0"]);
        let disks: Vec<(&str, Kind)> =
            stack.disks.iter().map(|disk| (disk.name.as_str(), disk.kind)).collect();
        assert_eq!(disks, [("nvme0n1", Kind::Nvme), ("sda", Kind::Turning)]);
        let parts: Vec<&str> = stack.partitions.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(parts, ["nvme0n1p1", "sda2"]);
    }

    #[test]
    fn a_partition_stands_on_its_disk() {
        let fake = Fake::new();
        fake.disk("vda", &[("rotational", "1")]);
        fake.partition("vda", "vda1", 2048);
        let stack = Stack::of(&fake.world("vda1"), "vda1");
        assert_eq!(stack.top.as_deref(), Some("vda"));
        assert_eq!(stack.disks, [Disk { name: "vda".into(), kind: Kind::Virtual }]);
        assert!(stack.layers.is_empty());
    }

    #[test]
    fn a_disk_is_told_by_its_name_its_vendor_or_whether_it_turns() {
        let fake = Fake::new();
        let of = |name: &str, files: &[(&str, &str)], vendor: &str| {
            fake.disk(name, files);
            fake.file(&format!("sys/block/{name}/device/vendor"), vendor);
            kind(&fake.world(name), name)
        };
        assert_eq!(of("sda", &[("rotational", "1")], "SEAGATE"), Kind::Turning);
        assert_eq!(of("sdb", &[("rotational", "0")], "ATA     "), Kind::Solid);
        assert_eq!(of("sdc", &[("rotational", "1")], "QEMU    "), Kind::Virtual);
        assert_eq!(of("zram0", &[], ""), Kind::Memory);
        assert_eq!(of("loop12", &[], ""), Kind::Loop);
        assert_eq!(of("mmcblk0", &[("rotational", "0")], ""), Kind::Solid);
    }
}
