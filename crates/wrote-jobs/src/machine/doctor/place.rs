//! Checks of the file system and of the path: mount options, space, and attributes of the file.

use super::layers::is_discard;
use super::texts::say;
use super::world::{FileRoom, World};
use crate::machine::target::{USED_SHARE_MAX, device_of};
use rustix::fs::IFlags;
use wrote::Survives;
use wrote_result::doctor::{Check, Evidence};
use wrote_result::{quoted, units};

/// The default of ext4, and of ext3 (ext4(5)).
const COMMIT_S: u64 = 5;
/// The default of Btrfs (btrfs(5)), and the longest interval in common use.
const COMMIT_S_MAX: u64 = 30;

/// Returns the mount options that `which` selects, as evidence.
fn options(world: &World, which: impl Fn(&str) -> bool) -> Vec<Evidence> {
    let of = world.target.mount_options.iter().filter(|option| which(option));
    of.map(|option| Evidence::new("/proc/self/mountinfo", option.clone())).collect()
}

pub(super) fn in_memory(world: &World) -> Option<Check> {
    let (level, because) = world.target.limit()?;
    let check = say(world, "in-memory.memory", &[("because", &because)]);
    let check = check.found([Evidence::new("/proc/self/mountinfo", because)]);
    (level < Survives::OsCrash).then_some(check)
}

pub(super) fn journal(world: &World) -> Option<Check> {
    let because = world.target.doubt().filter(|_| world.target.device.is_ok())?;
    let key = if world.target.lacks_journal() { "journal.none" } else { "journal.unknown" };
    Some(say(world, key, &[("because", &because)]))
}

pub(super) fn no_device(world: &World) -> Option<Check> {
    let because = world.target.device.as_ref().err()?;
    let check = say(world, "no-block-device.unknown", &[("because", because)]);
    (!world.target.in_memory).then_some(check)
}

/// Returns the device's name in `/sys`, and its path, quoted for a shell; `None` if there is no
/// device.
fn device(world: &World) -> Option<(String, String)> {
    let name = &device_of(&world.target)?.name;
    Some((name.replace('/', "!"), quoted(&[format!("/dev/{name}")])))
}

pub(super) fn read_only(world: &World) -> Option<Check> {
    let (name, device) = device(world)?;
    let disk = world.root.see(&format!("sys/class/block/{name}/ro"));
    let key = match (world.target.read_only, disk.as_ref().and_then(Evidence::number)) {
        (_, Some(1)) => "read-only.device",
        (true, _) => "read-only.mount",
        (false, _) => return Some(say(world, "read-only.fine", &[]).found(disk)),
    };
    let options = options(world, |option| option == "ro");
    Some(say(world, key, &[("device", &device)]).found(disk).found(options))
}

pub(super) fn errors(world: &World) -> Option<Check> {
    let (name, device) = device(world)?;
    let found =
        world.root.see(&format!("sys/fs/{}/{name}/errors_count", world.target.filesystem))?;
    let count = found.number()?;
    let is_fine = count == 0;
    let key = if is_fine { "file-system-errors.fine" } else { "file-system-errors.some" };
    Some(say(world, key, &[("count", &count), ("device", &device)]).found([found]))
}

pub(super) fn sync(world: &World) -> Check {
    let found = options(world, |option| matches!(option, "sync" | "dirsync" | "wsync"));
    let key = match found.first().map(|option| option.value.as_str()) {
        None => "mount-sync.fine",
        Some("sync") => "mount-sync.sync",
        Some("dirsync") => "mount-sync.dirsync",
        Some(_) => "mount-sync.wsync",
    };
    say(world, key, &[]).found(found)
}

pub(super) fn discard(world: &World) -> Check {
    let found = options(world, is_discard);
    let key = match found.first().map(|option| option.value.as_str()) {
        None => "mount-discard.fine",
        Some("discard=async") => "mount-discard.async",
        Some(_) if world.target.filesystem == "xfs" => "mount-discard.xfs",
        Some(_) => "mount-discard.on",
    };
    say(world, key, &[]).found(found)
}

pub(super) fn atime(world: &World) -> Check {
    let found = options(world, |option| option.contains("atime"));
    if world.is_mounted_with("noatime") || world.target.read_only {
        return say(world, "mount-atime.noatime", &[]).found(found);
    }
    if world.is_mounted_with("relatime") {
        return say(world, "mount-atime.relatime", &[]).found(found);
    }
    let all = Evidence::new("/proc/self/mountinfo", world.target.mount_options.join(","));
    say(world, "mount-atime.strict", &[]).found(found).found([all])
}

pub(super) fn barrier(world: &World) -> Option<Check> {
    let Some((level, because)) = world.target.limit() else {
        return Some(say(world, "mount-barrier.fine", &[]));
    };
    let found = options(world, |option| world.target.no_barrier() == Some(option));
    let key = if found.is_empty() { "mount-barrier.below" } else { "mount-barrier.off" };
    let option = if world.target.filesystem == "btrfs" { "barrier" } else { "barrier=1" };
    let check = say(world, key, &[("option", &option), ("because", &because)]).found(found);
    (level == Survives::OsCrash).then_some(check)
}

pub(super) fn data(world: &World) -> Check {
    let key = match world.mount_value("data") {
        Some("journal") => "mount-data.journal",
        Some("writeback") => "mount-data.writeback",
        _ => "mount-data.fine",
    };
    say(world, key, &[]).found(options(world, |option| option.starts_with("data=")))
}

pub(super) fn commit(world: &World) -> Option<Check> {
    let seconds: u64 = world.mount_value("commit")?.parse().ok()?;
    let found = options(world, |option| option.starts_with("commit="));
    let usual = if world.target.filesystem == "btrfs" { COMMIT_S_MAX } else { COMMIT_S };
    let key = match seconds {
        ..COMMIT_S => "mount-commit.often",
        COMMIT_S..=COMMIT_S_MAX => "mount-commit.fine",
        _ => "mount-commit.late",
    };
    Some(say(world, key, &[("seconds", &seconds), ("usual", &usual)]).found(found))
}

pub(super) fn copy_on_write(world: &World) -> Option<Check> {
    if world.target.filesystem != "btrfs" {
        return None;
    }
    const KEYS: [(&str, &str); 4] = [
        ("nodatacow", "mount-copy-on-write.nodatacow"),
        ("nodatasum", "mount-copy-on-write.nodatasum"),
        ("autodefrag", "mount-copy-on-write.autodefrag"),
        ("compress", "mount-copy-on-write.compress"),
    ];
    let found = |option: &str| match option {
        "compress" => options(world, |known| known.starts_with(option)),
        _ => options(world, |known| known == option),
    };
    let first = KEYS.iter().map(|(option, key)| (found(option), *key));
    let first = first.into_iter().find(|(found, _)| !found.is_empty());
    let (found, key) = first.unwrap_or((Vec::new(), "mount-copy-on-write.fine"));
    Some(say(world, key, &[]).found(found))
}

/// Checks for atomic writes. Without them, a power loss may tear the pages of a database.
pub(super) fn atomic_writes(world: &World) -> Option<Check> {
    let Some(example) = &world.example else {
        return Some(say(world, "atomic-writes.unknown", &[]));
    };
    let units = match wrote::device::atomic_writes(example, &world.target) {
        Ok(units) => units,
        Err(because) => return Some(say(world, "atomic-writes.none", &[("because", &because)])),
    };
    let shown = |bytes: u32| units::bytes(bytes.into());
    let (min, max) = (shown(units.bytes_min), shown(units.bytes_max));
    let device = shown(units.device_bytes_max);
    let key = match units.device_bytes_max {
        0 => "atomic-writes.copied",
        by_device if by_device < units.bytes_max => "atomic-writes.both",
        _ => "atomic-writes.device",
    };
    let found =
        Evidence::new("statx(2), stx_atomic_write_unit_min and _max", format!("{min} to {max}"));
    let check = say(world, key, &[("min", &min), ("max", &max), ("device", &device)]);
    Some(check.found([found]))
}

/// The share of used inodes above which the check reports a problem. A lack of inodes slows no
/// write until the last inode is used.
const INODES_USED_SHARE_MAX: f64 = 0.95;

pub(super) fn space(world: &World) -> Option<Check> {
    let target = &world.target;
    if target.capacity_bytes == 0 || target.filesystem == "none" {
        return None;
    }
    let used_share = 1.0 - target.free_bytes as f64 / target.capacity_bytes as f64;
    let (free, all) = (units::bytes(target.free_bytes), units::bytes(target.capacity_bytes));
    let key = match target.free_bytes {
        _ if used_share <= USED_SHARE_MAX => "space.fine",
        0 => "space.full",
        _ => "space.nearly",
    };
    let used = format!("{:.0}", used_share * 100.0);
    let found = [Evidence::new("statvfs(3), f_bavail and f_blocks", format!("{free} of {all}"))];
    Some(say(world, key, &[("free", &free), ("all", &all), ("used", &used)]).found(found))
}

pub(super) fn inodes(world: &World) -> Option<Check> {
    let (all, free) = world.inodes;
    // Btrfs and others create inodes on demand, and report 0.
    if all == 0 || world.target.filesystem == "none" {
        return None;
    }
    let is_fine = 1.0 - free as f64 / all as f64 <= INODES_USED_SHARE_MAX;
    let key = if is_fine { "inodes.fine" } else { "inodes.few" };
    let found = [Evidence::new("statvfs(3), f_favail and f_files", format!("{free} of {all}"))];
    Some(say(world, key, &[("free", &free), ("all", &all)]).found(found))
}

/// `FS_ENCRYPT_FL` from `linux/fs.h`, which rustix does not define.
const ENCRYPTED: u32 = 0x800;
/// The minimum unwritten space in a file for the check to report it.
const UNWRITTEN_BYTES_MIN: u64 = 1 << 20;

pub(super) fn attributes(world: &World) -> Option<Check> {
    let flags = match world.file.attributes.as_ref()? {
        Ok(flags) => *flags,
        Err(because) => {
            return Some(say(world, "file-attributes.unknown", &[("because", because)]));
        }
    };
    let has = |flag: IFlags| flags.contains(flag);
    let key = if has(IFlags::IMMUTABLE) {
        "file-attributes.immutable"
    } else if has(IFlags::SYNC) {
        "file-attributes.sync"
    } else if has(IFlags::JOURNALING) {
        "file-attributes.journal"
    } else if has(IFlags::COMPRESSED) {
        "file-attributes.compressed"
    } else if flags.bits() & ENCRYPTED != 0 {
        "file-attributes.encrypted"
    } else if has(IFlags::NOCOW) && world.target.filesystem == "btrfs" {
        "file-attributes.nocow"
    } else if has(IFlags::APPEND) {
        "file-attributes.append"
    } else {
        "file-attributes.fine"
    };
    let path = quoted(&[world.target.path.to_string_lossy()]);
    let shown = format!("{:#x}", flags.bits());
    let found = [Evidence::new("ioctl_iflags(2), FS_IOC_GETFLAGS", shown)];
    Some(say(world, key, &[("path", &path)]).found(found))
}

pub(super) fn extents(world: &World) -> Option<Check> {
    let room = match world.file.room.as_ref()? {
        Ok(room) => *room,
        Err(because) => return Some(say(world, "file-extents.unknown", &[("because", because)])),
    };
    let FileRoom { allocated_bytes, written_bytes } = room;
    let unwritten_bytes = allocated_bytes.saturating_sub(written_bytes);
    let found = [
        Evidence::new("stat(2), st_blocks", units::bytes(allocated_bytes)),
        Evidence::new("lseek(2), SEEK_DATA", units::bytes(written_bytes)),
    ];
    // The rest of a file's last block, and the map of its blocks, are allocated, too.
    let is_fine = unwritten_bytes <= UNWRITTEN_BYTES_MIN.max(allocated_bytes / 100);
    let key = if is_fine { "file-extents.fine" } else { "file-extents.unwritten" };
    Some(say(world, key, &[("unwritten", &units::bytes(unwritten_bytes))]).found(found))
}

#[cfg(test)]
mod mount_tests;

#[cfg(test)]
mod space_tests {
    use super::*;
    use crate::machine::doctor::fake::{checks_of, mounted, state};
    use wrote_result::doctor::State;

    fn checks(world: &World) -> Vec<Check> {
        checks_of(world, &["space", "inodes"])
    }

    #[test]
    fn a_file_system_is_nearly_full_above_the_share_and_not_at_it() {
        let (_fake, mut world) = mounted("ext4", &["relatime"]);
        world.target.capacity_bytes = 1000;
        for (free_bytes, wanted) in
            [(150, State::Fine), (149, State::Advice), (1, State::Advice), (0, State::Risk)]
        {
            world.target.free_bytes = free_bytes;
            assert_eq!(state(&checks(&world), "space"), Some(wanted), "{free_bytes}");
        }
    }

    #[test]
    fn inodes_are_told_of_when_few_are_left_and_the_file_system_has_a_number_of_them() {
        let (_fake, mut world) = mounted("ext4", &["relatime"]);
        for (inodes, wanted) in [
            ((1000, 50), Some(State::Fine)),
            ((1000, 49), Some(State::Advice)),
            ((1000, 0), Some(State::Advice)),
            ((0, 0), None),
        ] {
            world.inodes = inodes;
            assert_eq!(state(&checks(&world), "inodes"), wanted, "{inodes:?}");
        }
    }

    #[test]
    fn a_block_device_itself_is_never_full() {
        let (_fake, mut world) = mounted("none", &[]);
        world.target.free_bytes = 0;
        assert!(checks(&world).is_empty());
    }
}

#[cfg(test)]
mod file_tests {
    use super::*;
    use crate::machine::doctor::checks;
    use crate::machine::doctor::fake::{checks_of, command, mounted, only, state};
    use crate::machine::doctor::world::FileFacts;
    use rustix::fs::Mode;
    use std::io::Write;
    use wrote_result::doctor::State;

    fn judged(filesystem: &str, flags: IFlags) -> Check {
        let (_fake, mut world) = mounted(filesystem, &["relatime"]);
        world.file.attributes = Some(Ok(flags));
        only(&checks(&world), "file-attributes").clone()
    }

    #[test]
    fn each_attribute_that_matters_is_named_and_others_are_not() {
        for (flags, wanted, undo) in [
            (IFlags::IMMUTABLE, State::Risk, "-i"),
            (IFlags::SYNC, State::Advice, "-S"),
            (IFlags::JOURNALING, State::Advice, "-j"),
            (IFlags::COMPRESSED, State::Advice, "-c"),
            (IFlags::APPEND, State::Advice, "-a"),
        ] {
            let check = judged("ext4", flags);
            assert_eq!(check.state, wanted, "{flags:?}");
            assert_eq!(command(&check), format!("chattr {undo} /mnt/data"));
        }
        let encrypted = IFlags::from_bits_retain(ENCRYPTED);
        assert_eq!(judged("ext4", encrypted).state, State::Advice);
        assert_eq!(judged("btrfs", IFlags::NOCOW).state, State::Risk);
        assert_eq!(judged("ext4", IFlags::NODUMP).state, State::Fine);
        assert_eq!(judged("ext4", IFlags::empty()).state, State::Fine);
    }

    #[test]
    fn space_that_was_set_aside_and_never_written_is_named() {
        let (_fake, mut world) = mounted("ext4", &["relatime"]);
        for (allocated_bytes, written_bytes, wanted) in [
            (64 << 20, 16 << 20, State::Advice),
            (64 << 20, 64 << 20, State::Fine),
            (512 << 10, 0, State::Fine),
            (4 << 10, 64 << 20, State::Fine),
        ] {
            world.file.room = Some(Ok(FileRoom { allocated_bytes, written_bytes }));
            let found = state(&checks(&world), "file-extents");
            assert_eq!(found, Some(wanted), "{allocated_bytes} {written_bytes}");
        }
    }

    #[test]
    fn a_path_that_cannot_be_examined_is_unknown_with_the_reason() {
        let (_fake, mut world) = mounted("ext4", &["relatime"]);
        world.file.attributes = Some(Err("no".into()));
        world.file.room = Some(Err("no".into()));
        let checks = checks_of(&world, &["file-attributes", "file-extents"]);
        assert!(checks.iter().all(|check| check.state == State::Unknown), "{checks:?}");
        assert_eq!(checks.len(), 2);
    }

    #[test]
    fn a_file_is_looked_at_and_a_fifo_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(&[1; 8192]).unwrap();
        file.sync_all().unwrap();
        let room = FileFacts::of(&path).room.unwrap().unwrap();
        assert_eq!(room.written_bytes, 8192);
        assert!(FileFacts::of(folder.path()).is_folder);
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RUSR, 0)
            .unwrap();
        let facts = FileFacts::of(&fifo);
        assert!(!facts.is_file && facts.attributes.is_none() && facts.room.is_none());
    }
}
