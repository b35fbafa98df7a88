//! Checks of the mount options.

use super::shell::quoted;
use super::trim::is_discard;
use super::world::World;
use wrote_result::doctor::{Check, Evidence};

/// ext4's default, and ext3's (ext4(5)).
const COMMIT_S: u64 = 5;
/// Btrfs's default (btrfs(5)), and the longest that is common.
const COMMIT_S_MAX: u64 = 30;

/// Returns the options that `which` selects, as evidence.
fn options(world: &World, which: impl Fn(&str) -> bool) -> Vec<Evidence> {
    let of = world.target.mount_options.iter().filter(|option| which(option));
    of.map(|option| Evidence::new("/proc/self/mountinfo", option.clone())).collect()
}

pub(super) fn in_memory(world: &World) -> Option<Check> {
    let filesystem = &world.target.filesystem;
    let found = [Evidence::new("/proc/self/mountinfo", filesystem.clone())];
    let check = world.say("in-memory.memory", &[("filesystem", filesystem)]).found(found);
    world.target.in_memory.then_some(check)
}

pub(super) fn no_device(world: &World) -> Option<Check> {
    let because = world.target.device.as_ref().err()?;
    let check = world.say("no-block-device.unknown", &[("because", because)]);
    (!world.target.in_memory).then_some(check)
}

pub(super) fn read_only(world: &World) -> Option<Check> {
    let Ok(device) = &world.target.device else { return None };
    let name = device.name.replace('/', "!");
    let disk = world.root.see(&format!("sys/class/block/{name}/ro"));
    let device = quoted(&format!("/dev/{}", device.name));
    let key = match (world.target.read_only, disk.as_ref().and_then(Evidence::number)) {
        (_, Some(1)) => "read-only.device",
        (true, _) => "read-only.mount",
        (false, _) => return Some(world.say("read-only.fine", &[]).found(disk)),
    };
    let options = options(world, |option| option == "ro");
    Some(world.say(key, &[("device", &device)]).found(disk).found(options))
}

pub(super) fn errors(world: &World) -> Option<Check> {
    let Ok(device) = &world.target.device else { return None };
    let name = device.name.replace('/', "!");
    let found =
        world.root.see(&format!("sys/fs/{}/{name}/errors_count", world.target.filesystem))?;
    let count = found.number()?;
    let is_fine = count == 0;
    let key = if is_fine { "file-system-errors.fine" } else { "file-system-errors.some" };
    let device = quoted(&format!("/dev/{}", device.name));
    Some(world.say(key, &[("count", &count), ("device", &device)]).found([found]))
}

pub(super) fn sync(world: &World) -> Check {
    let found = options(world, |option| matches!(option, "sync" | "dirsync" | "wsync"));
    let key = match found.first().map(|option| option.value.as_str()) {
        None => "mount-sync.fine",
        Some("sync") => "mount-sync.sync",
        Some("dirsync") => "mount-sync.dirsync",
        Some(_) => "mount-sync.wsync",
    };
    world.say(key, &[]).found(found)
}

pub(super) fn discard(world: &World) -> Check {
    let found = options(world, is_discard);
    let key = match found.first().map(|option| option.value.as_str()) {
        None => "mount-discard.fine",
        Some("discard=async") => "mount-discard.async",
        Some(_) if world.target.filesystem == "xfs" => "mount-discard.xfs",
        Some(_) => "mount-discard.on",
    };
    world.say(key, &[]).found(found)
}

pub(super) fn atime(world: &World) -> Check {
    let found = options(world, |option| option.contains("atime"));
    if world.is_mounted_with("noatime") || world.target.read_only {
        return world.say("mount-atime.noatime", &[]).found(found);
    }
    if world.is_mounted_with("relatime") {
        return world.say("mount-atime.relatime", &[]).found(found);
    }
    let all = Evidence::new("/proc/self/mountinfo", world.target.mount_options.join(","));
    world.say("mount-atime.strict", &[]).found(found).found([all])
}

pub(super) fn barrier(world: &World) -> Check {
    let found = options(world, |option| matches!(option, "nobarrier" | "barrier=0"));
    if found.is_empty() {
        return world.say("mount-barrier.fine", &[]);
    }
    let option = if world.target.filesystem == "btrfs" { "barrier" } else { "barrier=1" };
    world.say("mount-barrier.off", &[("option", &option)]).found(found)
}

pub(super) fn data(world: &World) -> Check {
    let key = match world.mount_value("data") {
        Some("journal") => "mount-data.journal",
        Some("writeback") => "mount-data.writeback",
        _ => "mount-data.fine",
    };
    world.say(key, &[]).found(options(world, |option| option.starts_with("data=")))
}

pub(super) fn allocation(world: &World) -> Option<Check> {
    if world.target.filesystem != "ext4" {
        return None;
    }
    let found = options(world, |option| option == "nodelalloc");
    let is_fine = found.is_empty();
    let key = if is_fine { "mount-allocation.fine" } else { "mount-allocation.early" };
    Some(world.say(key, &[]).found(found))
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
    Some(world.say(key, &[("seconds", &seconds), ("usual", &usual)]).found(found))
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
    Some(world.say(key, &[]).found(found))
}

#[cfg(test)]
mod tests;
