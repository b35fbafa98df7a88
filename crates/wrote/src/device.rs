//! The storage below a path: the file system, the block device, and the required alignment.
//!
//! The description comes from `statx(2)`, `statvfs(3)`, `/proc/self/mountinfo` (proc(5)) and
//! `/sys/dev/block` (the kernel's `Documentation/ABI/stable/sysfs-block`). Nothing is opened for
//! writing, and no privileges are needed. If a file is missing in `/sys`, as in a container or with
//! an older kernel, the field gets its documented default; that is never an error.

mod atomic;
mod block;
#[cfg(test)]
mod fake;
mod mounts;
mod target;

pub use atomic::{AtomicWrites, atomic_writes};
pub(crate) use target::alignment_told;
pub use target::{BlockDevice, Target, alignment};

use crate::error::{Action, Error, Tried};
use block::SYS;
use mounts::{Location, Mount};
use rustix::fs::StatVfsMountFlags;
use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Examines the storage below `path`, an existing folder or file. If `path` is a block device,
/// describes the device itself, with the file system `none`.
///
/// Fails with the kernel's error if the path can't be resolved or `/proc/self/mountinfo` can't be
/// read.
///
/// ```
/// use wrote::device::examine;
///
/// # fn main() -> Result<(), wrote::Error> {
/// let target = examine(".")?;
/// println!("{}, {} bytes free", target.filesystem, target.free_bytes);
/// if let Ok(device) = &target.device {
///     println!("{}: its cache is {}", device.name, device.write_cache);
/// }
/// if let Some((level, because)) = target.limit() {
///     println!("a flushed write survives {level} here: {because}");
/// }
/// # Ok(())
/// # }
/// ```
pub fn examine(path: impl AsRef<Path>) -> Result<Target, Error> {
    let path = path.as_ref();
    let named = path;
    let path = std::fs::canonicalize(named).tried(named, Action::Examine)?;
    let metadata = path.metadata().tried(named, Action::Examine)?;
    let mounts = mounts::read()?;
    if let Some(device) = bare(&path, &metadata, &mounts, Path::new(SYS)) {
        return Ok(device);
    }
    let place = Location::of(&path).tried(named, Action::Examine)?;
    let space = rustix::fs::statvfs(&path).tried(named, Action::Examine)?;
    let mount = mounts::find(&mounts, &place).cloned().unwrap_or_else(|| Mount::unseen(&place));
    Ok(Target {
        capacity_bytes: space.f_blocks.saturating_mul(space.f_frsize),
        free_bytes: space.f_bavail.saturating_mul(space.f_frsize),
        read_only: space.f_flag.contains(StatVfsMountFlags::RDONLY),
        ..described(&mount, &place, &mounts, Path::new(SYS))
    })
}

/// Describes the file system at `place`, except its capacity and free space.
fn described(mount: &Mount, place: &Location, mounts: &[Mount], sys: &Path) -> Target {
    let (device, in_memory, below) = below(mount, place, mounts, sys);
    Target {
        path: place.path.clone(),
        mount_options: mount.all_options(),
        mount_point: mount.point.clone(),
        filesystem: mount.filesystem.clone(),
        in_memory,
        has_journal: has_journal(device.as_ref().ok(), sys),
        below: below.map(Box::new),
        device,
        ..Target::default()
    }
}

/// Returns the block device that `path` names or is stored on; `None` if there is none, or more
/// than one.
pub fn device_at(path: impl AsRef<Path>) -> Option<BlockDevice> {
    examine(path).ok()?.device.ok()
}

/// Describes a block device itself, as a target that has no file system or free space and is
/// written in place. Returns `None` for anything else.
fn bare(path: &Path, metadata: &Metadata, mounts: &[Mount], sys: &Path) -> Option<Target> {
    if !metadata.file_type().is_block_device() {
        return None;
    }
    let (major, minor) = (rustix::fs::major(metadata.rdev()), rustix::fs::minor(metadata.rdev()));
    let device = block::describe(sys, major, minor);
    let below = below_loop(&device, mounts, sys);
    Some(Target {
        mount_point: path.to_owned(),
        path: path.to_owned(),
        filesystem: "none".into(),
        mount_options: Vec::new(),
        capacity_bytes: device.capacity_bytes,
        free_bytes: 0,
        read_only: false,
        in_memory: is_memory(&device, below.as_ref(), sys),
        has_journal: None,
        below: below.map(Box::new),
        device: Ok(device),
    })
}

/// Returns whether the ext4 on this device has a journal, as its folder in `/sys` reports.
fn has_journal(device: Option<&BlockDevice>, sys: &Path) -> Option<bool> {
    let path = sys.join("fs/ext4").join(&device?.name).join("journal_task");
    std::fs::read_to_string(path).ok().map(|task| task.trim() != "<none>")
}

/// The device below a mount, or the reason why there is none; whether writes to it stay in memory;
/// and the file system below an overlay or a loop device.
type Below = (Result<BlockDevice, String>, bool, Option<Target>);

fn below(mount: &Mount, place: &Location, mounts: &[Mount], sys: &Path) -> Below {
    if mount.filesystem == "overlay" {
        return below_overlay(mount, mounts, sys);
    }
    if keeps_in_memory(&mount.filesystem) {
        let because = format!("{} keeps files in memory: no block device", mount.filesystem);
        return (Err(because), true, None);
    }
    let devices = match devices_of(mount, place, sys) {
        Ok(devices) => devices,
        Err(because) => return (Err(because), false, None),
    };
    // A mount may hide the file that backs its own device.
    let others: Vec<Mount> =
        mounts.iter().filter(|other| other.device != mount.device).cloned().collect();
    let mut below: Vec<Option<Target>> =
        devices.iter().map(|device| below_loop(device, &others, sys)).collect();
    let in_memory =
        devices.iter().zip(&below).any(|(device, below)| is_memory(device, below.as_ref(), sys));
    below.sort_by_key(|below| below.as_ref().is_none_or(|below| below.limit().is_none()));
    let below = below.swap_remove(0);
    let device = <[BlockDevice; 1]>::try_from(devices).map(|[device]| device);
    let because = |devices: Vec<BlockDevice>| {
        let names: Vec<_> = devices.iter().map(|device| device.name.as_str()).collect();
        let (filesystem, count) = (&mount.filesystem, names.len());
        format!("{filesystem} spreads over {count} block devices: {}", names.join(", "))
    };
    (device.map_err(because), in_memory, below)
}

/// Returns the storage of a loop device's file.
fn below_loop(device: &BlockDevice, mounts: &[Mount], sys: &Path) -> Option<Target> {
    let path = block::loop_file(sys, device.major, device.minor)?;
    // The file may be a block device, for example `/dev/mapper/NAME`: its name is in a file system
    // in memory, but its content is not.
    let found = path.metadata().ok().and_then(|metadata| bare(&path, &metadata, mounts, sys));
    if found.is_some() {
        return found;
    }
    let unseen = || Location { path: path.clone(), mount_id: None, device: (0, 0) };
    let place = Location::of(&path).unwrap_or_else(|_| unseen());
    Some(described(mounts::find(mounts, &place)?, &place, mounts, sys))
}

fn is_memory(device: &BlockDevice, below: Option<&Target>, sys: &Path) -> bool {
    block::is_memory(sys, device) || below.is_some_and(|below| below.in_memory)
}

/// Describes the storage of an overlay's upper folder, to which the overlay writes.
fn below_overlay(mount: &Mount, mounts: &[Mount], sys: &Path) -> Below {
    let nothing = |because: String| (Err(because), false, None);
    let Some(upper) = mount.upper_folder() else {
        return nothing("overlay without an upper folder: nothing can be written".into());
    };
    let unseen = || format!("overlay: upper folder {} cannot be seen from here", upper.display());
    // In a container, the mount names the upper folder by its path on the host. In the container,
    // that path is missing, or leads back into an overlay, and so can't be the upper folder: the
    // kernel does not accept a folder on an overlay as one.
    let place = upper.is_absolute().then(|| Location::of(&upper).ok()).flatten();
    let Some(place) = place else { return nothing(unseen()) };
    let Some(below) = mounts::find(mounts, &place).filter(|below| below.filesystem != "overlay")
    else {
        return nothing(unseen());
    };
    let below = described(below, &place, mounts, sys);
    let because = |because| format!("overlay: upper folder {}: {because}", upper.display());
    (below.device.clone().map_err(because), below.in_memory, Some(below))
}

/// Returns the file system's block devices, or the reason why there are none.
fn devices_of(mount: &Mount, place: &Location, sys: &Path) -> Result<Vec<BlockDevice>, String> {
    let filesystem = &mount.filesystem;
    let described = |(major, minor)| block::describe(sys, major, minor);
    if place.device.0 != 0 {
        return Ok(vec![described(place.device)]);
    }
    // A FUSE server may give its source any name, so a device's name there proves nothing.
    // (`fuseblk` has a real device, and therefore an st_dev, which was returned above.)
    let device = (!filesystem.starts_with("fuse")).then(|| mounts::source_device(mount, sys));
    let Some(device) = device.flatten() else {
        return Err(format!("{filesystem} has no block device that the kernel names"));
    };
    let names = block::btrfs_devices(sys, device);
    let all = names.iter().filter_map(|name| block::by_name(sys, Path::new(name)));
    let all: Vec<BlockDevice> = all.map(described).collect();
    Ok(if all.is_empty() { vec![described(device)] } else { all })
}

fn keeps_in_memory(filesystem: &str) -> bool {
    matches!(filesystem, "tmpfs" | "ramfs" | "devtmpfs" | "rootfs")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Survives;
    use fake::Sys;

    fn mount(filesystem: &str, source: &str, super_options: &str) -> Mount {
        let line = format!("40 1 0:40 / /m rw - {filesystem} {source} {super_options}\n");
        mounts::parse(line.as_bytes()).remove(0)
    }

    fn place(device: (u32, u32)) -> Location {
        Location { path: "/m".into(), mount_id: Some(40), device }
    }

    fn because(device: Result<BlockDevice, String>) -> String {
        device.unwrap_err()
    }

    #[test]
    fn a_path_that_does_not_exist_gives_the_kernels_words() {
        let error = examine(Path::new("/does/not/exist")).unwrap_err();
        assert!(error.to_string().contains("No such file or directory"), "{error}");
        assert!(error.to_string().starts_with("/does/not/exist: examine"), "{error}");
    }

    #[test]
    fn the_folder_of_the_tests_lies_on_something() {
        let target = examine(Path::new(".")).unwrap();
        assert!(target.path.starts_with(&target.mount_point), "{target:?}");
        assert!(target.capacity_bytes >= target.free_bytes, "{target:?}");
        assert_eq!(examine(&target.path).unwrap().mount_point, target.mount_point);
    }

    #[test]
    fn memory_fuse_and_network_file_systems_have_no_block_device() {
        let sys = Sys::new();
        let tmpfs = below(&mount("tmpfs", "none", "rw"), &place((0, 40)), &[], sys.path());
        assert!(tmpfs.1);
        assert_eq!(because(tmpfs.0), "tmpfs keeps files in memory: no block device");
        for (filesystem, source) in [("fuse.strange", "/dev/sda"), ("nfs4", "host:/export")] {
            sys.disk("sda", (8, 0), 1000);
            let found = below(&mount(filesystem, source, "rw"), &place((0, 40)), &[], sys.path());
            assert!(!found.1);
            assert_eq!(
                because(found.0),
                format!("{filesystem} has no block device that the kernel names")
            );
        }
    }

    #[test]
    fn an_anonymous_st_dev_is_resolved_by_the_source_of_the_mount() {
        let sys = Sys::new();
        sys.disk("wrotetest7", (8, 0), 1000);
        let btrfs = mount("btrfs", "/dev/wrotetest7", "rw");
        let (found, in_memory, _) = below(&btrfs, &place((0, 40)), &[], sys.path());
        let device = found.unwrap();
        assert_eq!((device.name.as_str(), device.major, device.minor), ("wrotetest7", 8, 0));
        assert!(!in_memory);
    }

    #[test]
    fn a_btrfs_over_two_disks_has_no_single_device() {
        let sys = Sys::new();
        sys.disk("wrotetest7", (8, 0), 1000);
        sys.disk("wrotetest8", (8, 16), 1000);
        sys.folder("fs/btrfs/features");
        sys.folder("fs/btrfs/0f-a1/devices/wrotetest7");
        sys.folder("fs/btrfs/0f-a1/devices/wrotetest8");
        let btrfs = mount("btrfs", "/dev/wrotetest7", "rw");
        let (found, ..) = below(&btrfs, &place((0, 40)), &[], sys.path());
        assert_eq!(because(found), "btrfs spreads over 2 block devices: wrotetest7, wrotetest8");
    }

    #[test]
    fn a_source_that_is_not_there_is_resolved_by_st_dev() {
        let sys = Sys::new();
        sys.disk("vda", (254, 0), 1000);
        let root = mount("ext4", "/dev/root", "rw");
        let (found, ..) = below(&root, &place((254, 0)), &[], sys.path());
        let device = found.unwrap();
        assert_eq!(device.name, "vda");
    }

    #[test]
    fn an_overlay_whose_upper_folder_is_the_hosts_says_so() {
        let sys = Sys::new();
        let overlay = mount("overlay", "overlay", "rw,upperdir=/not/here/diff,workdir=/w");
        let (found, in_memory, _) = below(&overlay, &place((0, 40)), &[], sys.path());
        assert!(!in_memory);
        assert_eq!(because(found), "overlay: upper folder /not/here/diff cannot be seen from here");
        let read_only = mount("overlay", "overlay", "ro,lowerdir=/l");
        let (found, ..) = below(&read_only, &place((0, 40)), &[], sys.path());
        assert_eq!(because(found), "overlay without an upper folder: nothing can be written");
    }

    #[test]
    fn a_file_system_on_a_disk_of_memory_is_in_memory() {
        let sys = Sys::new();
        sys.disk("zram0", (253, 0), 1000);
        sys.disk("loop0", (7, 0), 1000);
        sys.file("devices/loop0/loop/backing_file", "/shm/image\n");
        let ext4 = mount("ext4", "/dev/zram0", "rw");
        let mounts = mounts::parse(b"1 0 8:1 / / rw - ext4 x rw\n2 1 0:5 / /shm rw - tmpfs x rw\n");
        assert!(below(&ext4, &place((253, 0)), &mounts, sys.path()).1);
        assert!(below(&ext4, &place((7, 0)), &mounts, sys.path()).1);
        sys.file("devices/loop0/loop/backing_file", "/data/image\n");
        assert!(!below(&ext4, &place((7, 0)), &mounts, sys.path()).1);
    }

    #[test]
    fn ext4_says_whether_it_keeps_a_journal_and_other_file_systems_say_nothing() {
        let sys = Sys::new();
        sys.disk("vda", (254, 0), 1000);
        let device = block::describe(sys.path(), 254, 0);
        assert_eq!(has_journal(Some(&device), sys.path()), None);
        sys.file("fs/ext4/vda/journal_task", "<none>\n");
        assert_eq!(has_journal(Some(&device), sys.path()), Some(false));
        sys.file("fs/ext4/vda/journal_task", "165\n");
        assert_eq!(has_journal(Some(&device), sys.path()), Some(true));
        assert_eq!(has_journal(None, sys.path()), None);
    }

    #[test]
    fn only_known_file_systems_write_in_place_and_flush_as_they_are_mounted() {
        let target = |filesystem: &str, options: &[&str]| Target {
            filesystem: filesystem.into(),
            mount_options: options.iter().map(|&option| option.to_owned()).collect(),
            ..Target::default()
        };
        assert!(target("ext4", &["rw", "relatime"]).writes_in_place());
        assert!(target("xfs", &["rw"]).writes_in_place());
        assert!(!target("ext4", &["rw", "data=journal"]).writes_in_place());
        assert!(!target("btrfs", &["rw"]).writes_in_place());
        assert!(!target("fuse.strange", &[]).writes_in_place());
        assert_eq!(target("ext4", &["rw", "volatile"]).limit(), None, "an overlay's option");
        for option in ["nobarrier", "barrier=0"] {
            let limit = target("ext4", &["rw", option]).limit();
            assert_eq!(limit, Some((Survives::OsCrash, format!("ext4, {option}"))));
        }
    }

    #[test]
    fn a_limit_of_the_file_system_below_is_one_of_what_lies_on_it() {
        let on = |filesystem: &str, below: Option<Target>| {
            let in_memory =
                filesystem == "tmpfs" || below.as_ref().is_some_and(|below| below.in_memory);
            let below = below.map(Box::new);
            Target { filesystem: filesystem.into(), in_memory, below, ..Target::default() }
        };
        let with = |option: &str, target: Target| {
            let mount_options = vec![option.to_owned()];
            Target { mount_options, ..target }
        };
        let tmpfs = || Some(on("tmpfs", None));
        let volatile = || with("volatile", on("overlay", Some(on("ext4", None))));
        let nobarrier = || with("nobarrier", on("ext4", None));
        for (target, level, because) in [
            (on("tmpfs", None), Survives::ProcessCrash, "tmpfs"),
            (on("overlay", tmpfs()), Survives::ProcessCrash, "overlay over tmpfs"),
            (on("ext4", tmpfs()), Survives::ProcessCrash, "loop device over memory"),
            (volatile(), Survives::ProcessCrash, "overlay, volatile"),
            (
                with("nobarrier", on("xfs", Some(volatile()))),
                Survives::ProcessCrash,
                "loop device over overlay, volatile",
            ),
            (on("overlay", Some(nobarrier())), Survives::OsCrash, "overlay over ext4, nobarrier"),
        ] {
            assert_eq!(target.limit(), Some((level, because.into())));
            assert_eq!(target.doubt(), None, "{because}");
            assert_eq!(target.survives(Survives::PowerLoss), level, "{because}");
        }
        for (target, because) in [
            (on("vfat", None), "vfat has no journal"),
            (on("nfs4", None), "nfs4: not tried"),
            (on("ext2", None), "ext2 has no journal"),
            (on("overlay", Some(on("ext2", None))), "ext2 has no journal"),
            (Target { has_journal: Some(false), ..on("ext4", None) }, "ext4 has no journal"),
            (on("ext4", Some(on("nfs4", None))), "nfs4: not tried"),
        ] {
            assert_eq!((target.limit(), target.doubt()), (None, Some(because.into())));
        }
        assert_eq!(on("ext4", Some(on("ext2", None))).doubt(), None);
    }

    #[test]
    fn what_sys_does_not_show_is_a_doubt() {
        let sys = Sys::new();
        let doubt = |filesystem: &str, device: (u32, u32)| {
            let mount = mount(filesystem, "/dev/wrotetest", "rw");
            described(&mount, &place(device), &[], sys.path()).doubt()
        };
        let unseen = |name| Some(format!("what device {name} is cannot be seen from here"));
        assert_eq!(doubt("xfs", (8, 0)), unseen("8:0"));
        sys.disk("sda", (8, 0), 1000);
        sys.disk("loop0", (7, 0), 1000);
        assert_eq!(doubt("xfs", (8, 0)), None);
        assert_eq!(doubt("xfs", (7, 0)), unseen("loop0"));
        let journal =
            |filesystem| Some(format!("whether {filesystem} has a journal cannot be seen"));
        assert_eq!(doubt("ext4", (8, 0)), journal("ext4"));
        assert_eq!(doubt("ext3", (8, 0)), journal("ext3"));
        sys.file("fs/ext4/sda/journal_task", "165\n");
        assert_eq!(doubt("ext4", (8, 0)), None);
    }
}
