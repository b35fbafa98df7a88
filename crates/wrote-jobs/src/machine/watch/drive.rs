//! The temperature of drives, and the speed of their links, from `/sys`.

use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// Facts about drives, from `/sys`. Facts that `/sys` does not report are absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drives {
    /// The temperature sensors that report a limit.
    pub heat: Vec<Heat>,
    /// The links that report their current and their maximum speed.
    pub links: Vec<Link>,
    /// The loop devices that use the page cache of their files.
    pub cached_loops: Vec<CachedLoop>,
}

/// A loop device that uses the page cache of its file. Data written to it with direct I/O may be
/// only in memory until it is flushed (loop(4), `losetup --direct-io`).
#[derive(Clone, Debug, PartialEq)]
pub struct CachedLoop {
    /// The disk: `loop0`.
    pub disk: String,
    /// The file below the loop device.
    pub file: String,
}

/// A temperature sensor, in degrees Celsius.
#[derive(Clone, Debug, PartialEq)]
pub struct Heat {
    /// The disk: `nvme0n1`.
    pub disk: String,
    /// The sensor's label, `Composite`, or else the name of its file.
    pub sensor: String,
    /// The current temperature.
    pub celsius: f64,
    /// The drive's limit, above which it may slow down.
    pub celsius_max: f64,
}

/// A link between the machine and a drive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Link {
    /// The disk: `nvme0n1`.
    pub disk: String,
    /// The measured quantity: `PCI Express, GT/s a lane`, `PCI Express, lanes`, `SATA, Gbps`.
    pub what: String,
    /// The current value.
    pub now: f64,
    /// The maximum value.
    pub most: f64,
}

impl Drives {
    /// Reads the facts about disks, given by the kernel's names.
    ///
    /// Temperatures come from hwmon (the kernel's `Documentation/hwmon/sysfs-interface.rst`): for
    /// NVMe drives since Linux 5.5, and for SATA drives with the module `drivetemp`. Links come
    /// from the PCI device's `current_link_*` and `max_link_*`
    /// (`Documentation/ABI/testing/sysfs-bus-pci`), and from libata's `sata_spd` and `id`
    /// (`Documentation/ABI/testing/sysfs-ata`).
    pub(super) fn look(root: &Path, disks: &[String]) -> Drives {
        let mut drives = Drives::default();
        for disk in disks {
            for device in devices(root, disk) {
                drives.heat.extend(heat(disk, &device));
                drives.links.extend(pci_links(disk, &device));
                drives.links.extend(sata_link(disk, &device));
                drives.cached_loops.extend(cached_loop(disk, &device));
            }
        }
        drives
    }
}

pub(super) fn number(root: &Path, disk: &str) -> Option<(u32, u32)> {
    let number = text(&root.join("sys/class/block").join(disk.replace('/', "!")), "dev")?;
    let (major, minor) = number.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Returns the folders of a disk's devices: the disk's folder, or, for an NVMe drive with several
/// paths (multipath), a folder for the controller of each path.
fn devices(root: &Path, disk: &str) -> Vec<PathBuf> {
    let link = root.join("sys/class/block").join(disk.replace('/', "!"));
    let Ok(folder) = link.canonicalize() else { return Vec::new() };
    let subsystem = folder.parent().filter(|parent| name(parent).starts_with("nvme-subsys"));
    let Some(subsystem) = subsystem else { return vec![folder] };
    let mut controllers: Vec<PathBuf> = entries(subsystem)
        .into_iter()
        .filter(|entry| is_numbered(&name(entry), "nvme"))
        .filter_map(|entry| entry.canonicalize().ok())
        .collect();
    controllers.sort();
    controllers
}

/// Returns the sensors in the nearest folder above the disk that has any.
fn heat(disk: &str, device: &Path) -> Vec<Heat> {
    let sensors = device.ancestors().map(|folder| {
        // Sensors may be in a folder `hwmon`. The folder's links to devices with a class of their
        // own are ignored.
        let own = entries(folder).into_iter().chain(entries(&folder.join("hwmon")));
        let mut own: Vec<PathBuf> =
            own.filter(|entry| is_numbered(&name(entry), "hwmon")).collect();
        own.sort();
        own.iter().flat_map(|hwmon| sensors(disk, hwmon)).collect::<Vec<Heat>>()
    });
    let mut sensors = sensors.skip_while(Vec::is_empty);
    sensors.next().unwrap_or_default()
}

fn sensors(disk: &str, hwmon: &Path) -> Vec<Heat> {
    let mut inputs: Vec<String> = entries(hwmon)
        .iter()
        .filter_map(|file| name(file).strip_suffix("_input").map(str::to_owned))
        .filter(|sensor| is_numbered(sensor, "temp"))
        .collect();
    inputs.sort();
    let sensor = |sensor: String| {
        // The unit is a thousandth of a degree.
        let celsius = |kind: &str| {
            let value = text(hwmon, &format!("{sensor}_{kind}"))?;
            Some(value.parse::<f64>().ok()? / 1000.0)
        };
        // A drive without a limit reports 0 K or 65535 K.
        let told = |most: &f64| (1.0..1000.0).contains(most);
        let celsius_max = celsius("max").filter(told).or_else(|| celsius("crit").filter(told))?;
        let celsius = celsius("input")?;
        let label = text(hwmon, &format!("{sensor}_label")).unwrap_or(sensor);
        Some(Heat { disk: disk.into(), sensor: label, celsius, celsius_max })
    };
    inputs.into_iter().filter_map(sensor).collect()
}

/// Returns the links of the nearest PCI device above the disk.
fn pci_links(disk: &str, device: &Path) -> Vec<Link> {
    let mut above = device.ancestors();
    let Some(pci) = above.find(|folder| folder.join("current_link_speed").exists()) else {
        return Vec::new();
    };
    let link = |what: &str, kind: &str| {
        // A speed is `8.0 GT/s PCIe` or `Unknown`; a width is only a number.
        let value = |file: String| {
            let text = text(pci, &file)?;
            text.split(' ').next()?.parse::<f64>().ok().filter(|value| *value > 0.0)
        };
        let now = value(format!("current_link_{kind}"))?;
        let most = value(format!("max_link_{kind}"))?;
        // A device without a link reports 255 lanes.
        let told = now < 255.0 && most < 255.0;
        told.then(|| Link { disk: disk.into(), what: what.into(), now, most })
    };
    [link("PCI Express, GT/s a lane", "speed"), link("PCI Express, lanes", "width")]
        .into_iter()
        .flatten()
        .collect()
}

/// Returns the current speed of the disk's SATA link, and the drive's maximum speed; `None` if
/// either is unknown. The link's own limit (`sata_spd_limit`) is not used: the kernel lowers it
/// when it slows a link down, and a port may be faster than its drive.
fn sata_link(disk: &str, device: &Path) -> Option<Link> {
    let port = device.ancestors().find(|folder| is_numbered(&name(folder), "ata"))?;
    let link = entries(port).into_iter().find(|entry| is_numbered(&name(entry), "link"))?;
    // The speed is `6.0 Gbps`, or `<unknown>` without a link.
    let now = text(&link.join("ata_link").join(name(&link)), "sata_spd")?;
    let now = now.strip_suffix(" Gbps")?.parse().ok()?;
    // On parallel ATA, two drives share a link.
    let drive = entries(&link).into_iter().find(|entry| name(entry).starts_with("dev"))?;
    let identity = text(&drive.join("ata_device").join(name(&drive)), "id")?;
    Some(Link { disk: disk.into(), what: "SATA, Gbps".into(), now, most: sata_gbps(&identity)? })
}

/// Returns the highest speed in word 76 of the drive's response to IDENTIFY DEVICE (ATA8-ACS);
/// `None` if it names none.
fn sata_gbps(identity: &str) -> Option<f64> {
    let word = u16::from_str_radix(identity.split_whitespace().nth(76)?, 16).ok()?;
    // All bits are set if no drive answered.
    let speeds = [(3, 6.0), (2, 3.0), (1, 1.5)].into_iter().filter(|_| word != u16::MAX);
    speeds.into_iter().find_map(|(bit, gbps)| (word >> bit & 1 == 1).then_some(gbps))
}

fn cached_loop(disk: &str, device: &Path) -> Option<CachedLoop> {
    let (file, dio) = (text(device, "loop/backing_file")?, text(device, "loop/dio")?);
    (dio == "0").then(|| CachedLoop { disk: disk.into(), file })
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

fn name(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn is_numbered(name: &str, word: &str) -> bool {
    let number = name.strip_prefix(word).unwrap_or_default();
    !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn text(folder: &Path, file: &str) -> Option<String> {
    crate::machine::text(&folder.join(file))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fixtures::Tree;

    const PCI: &str = "sys/devices/pci0000:00/0000:00:1d.0/0000:3b:00.0";

    /// Returns an NVMe drive with a limit of 82 degrees, on 4 lanes of 16 GT/s.
    fn nvme(celsius: &str) -> Tree {
        let fake = Tree::new();
        let controller = format!("{PCI}/nvme/nvme0");
        fake.folder(&format!("{controller}/nvme0n1"));
        fake.file(&format!("{controller}/nvme0n1/dev"), "259:3\n");
        fake.link("sys/class/block/nvme0n1", &format!("{controller}/nvme0n1"));
        for (file, content) in [
            ("temp1_input", celsius),
            ("temp1_max", "81850"),
            ("temp1_crit", "84850"),
            ("temp1_label", "Composite\n"),
            ("temp2_input", "90000"),
            ("temp2_max", "65261850"),
        ] {
            fake.file(&format!("{controller}/hwmon3/{file}"), content);
        }
        for (file, content) in [
            ("current_link_speed", "16.0 GT/s PCIe\n"),
            ("max_link_speed", "16.0 GT/s PCIe\n"),
            ("current_link_width", "4\n"),
            ("max_link_width", "4\n"),
        ] {
            fake.file(&format!("{PCI}/{file}"), content);
        }
        fake
    }

    fn look(fake: &Tree, disk: &str) -> Drives {
        Drives::look(fake.path(), &[disk.to_owned()])
    }

    #[test]
    fn an_nvme_drive_tells_its_heat_and_its_link() {
        let drives = look(&nvme("70850"), "nvme0n1");
        let heat = Heat {
            disk: "nvme0n1".into(),
            sensor: "Composite".into(),
            celsius: 70.85,
            celsius_max: 81.85,
        };
        assert_eq!(drives.heat, [heat], "a sensor without a limit tells nothing");
        let links: Vec<(&str, f64, f64)> =
            drives.links.iter().map(|link| (link.what.as_str(), link.now, link.most)).collect();
        assert_eq!(
            links,
            [("PCI Express, GT/s a lane", 16.0, 16.0), ("PCI Express, lanes", 4.0, 4.0)]
        );
    }

    #[test]
    fn the_controllers_of_a_drive_with_several_ways_to_it_are_found() {
        let fake = nvme("70850");
        let subsystem = "sys/devices/virtual/nvme-subsystem/nvme-subsys0";
        fake.folder(&format!("{subsystem}/nvme1n1"));
        fake.link("sys/class/block/nvme1n1", &format!("{subsystem}/nvme1n1"));
        fake.link(&format!("{subsystem}/nvme0"), &format!("{PCI}/nvme/nvme0"));
        let drives = look(&fake, "nvme1n1");
        assert_eq!((drives.heat.len(), drives.links.len()), (1, 2));
        assert_eq!(drives.heat[0].disk, "nvme1n1");
    }

    #[test]
    fn a_sata_drive_tells_its_heat_and_the_speed_of_its_link() {
        let fake = Tree::new();
        let port = "sys/devices/pci0000:00/0000:00:17.0/ata3";
        let drive = format!("{port}/host2/target2:0:0/2:0:0:0");
        fake.folder(&format!("{drive}/block/sda"));
        fake.link("sys/class/block/sda", &format!("{drive}/block/sda"));
        fake.file(&format!("{drive}/hwmon/hwmon1/temp1_input"), "44000\n");
        fake.file(&format!("{drive}/hwmon/hwmon1/temp1_max"), "60000\n");
        let link = format!("{port}/link3");
        fake.file(&format!("{link}/ata_link/link3/sata_spd"), "1.5 Gbps\n");
        // These are the kernel's values after it has slowed the link down because of errors.
        fake.file(&format!("{link}/ata_link/link3/hw_sata_spd_limit"), "<unknown>\n");
        fake.file(&format!("{link}/ata_link/link3/sata_spd_limit"), "1.5 Gbps\n");
        let identity = format!("{link}/dev3.0/ata_device/dev3.0/id");
        let most = |word_76: &str| {
            let words: Vec<&str> =
                (0..256).map(|word| if word == 76 { word_76 } else { "0000" }).collect();
            let lines: Vec<String> = words.chunks(8).map(|line| line.join(" ") + "\n").collect();
            fake.file(&identity, &lines.concat());
            look(&fake, "sda").links.first().map(|link| (link.now, link.most))
        };
        // A drive with all three speeds, an older drive with two, and no response.
        assert_eq!(most("850e"), Some((1.5, 6.0)));
        assert_eq!(most("0506"), Some((1.5, 3.0)));
        assert_eq!((most("ffff"), most("0000")), (None, None));
        let drives = look(&fake, "sda");
        assert_eq!((drives.heat[0].sensor.as_str(), drives.heat[0].celsius), ("temp1", 44.0));
    }

    #[test]
    fn a_loop_device_tells_whether_it_goes_through_the_page_cache() {
        let fake = Tree::new();
        let device = "sys/devices/virtual/block/loop0";
        fake.file(&format!("{device}/loop/backing_file"), "/data/an image\n");
        fake.file(&format!("{device}/loop/dio"), "0\n");
        fake.link("sys/class/block/loop0", device);
        let cached = CachedLoop { disk: "loop0".into(), file: "/data/an image".into() };
        assert_eq!(look(&fake, "loop0").cached_loops, [cached]);
        fake.file(&format!("{device}/loop/dio"), "1\n");
        assert_eq!(look(&fake, "loop0"), Drives::default());
    }

    #[test]
    fn of_a_drive_that_tells_nothing_nothing_is_known() {
        let fake = Tree::new();
        assert_eq!(look(&fake, "vda"), Drives::default());
        fake.folder("sys/devices/pci0000:00/0000:00:04.0/virtio2/block/vda");
        fake.link("sys/class/block/vda", "sys/devices/pci0000:00/0000:00:04.0/virtio2/block/vda");
        fake.file("sys/devices/pci0000:00/0000:00:04.0/current_link_speed", "Unknown\n");
        fake.file("sys/devices/pci0000:00/0000:00:04.0/max_link_speed", "Unknown\n");
        fake.file("sys/devices/pci0000:00/0000:00:04.0/current_link_width", "0\n");
        fake.file("sys/devices/pci0000:00/0000:00:04.0/max_link_width", "255\n");
        assert_eq!(look(&fake, "vda"), Drives::default());
    }

    #[test]
    fn a_disk_has_a_number() {
        let fake = nvme("1");
        assert_eq!(number(fake.path(), "nvme0n1"), Some((259, 3)));
        assert_eq!(number(fake.path(), "sda"), None);
    }
}
