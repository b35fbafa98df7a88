//! Checks of the mount options.

use super::shell::quoted;
use super::trim::is_discard;
use super::world::World;
use wrote_result::doctor::{Change, Check, Evidence};

/// ext4's default, and ext3's (ext4(5)).
const COMMIT_S: u64 = 5;
/// Btrfs's default (btrfs(5)), and the longest that is common.
const COMMIT_S_MAX: u64 = 30;

/// Returns the options that `which` selects, as evidence.
fn options(world: &World, which: impl Fn(&str) -> bool) -> Vec<Evidence> {
    let of = world.target.mount_options.iter().filter(|option| which(option));
    of.map(|option| Evidence::new("/proc/self/mountinfo", option.clone())).collect()
}

fn remount(world: &World, option: &str, risk: &str) -> Change {
    let point = quoted(&world.target.mount_point.to_string_lossy());
    Change::run(format!("mount -o remount,{option} {point}"), risk)
        .lasting(format!("the options of {point} in /etc/fstab"))
}

/// Suggests a new mount without an option that a remount cannot undo.
fn fstab(world: &World, option: &str, risk: &str) -> Change {
    let point = quoted(&world.target.mount_point.to_string_lossy());
    Change::how(
        format!(
            "take {option} out of the options of {point} in /etc/fstab, unmount it and mount it \
             again: a remount does not change it"
        ),
        risk,
    )
}

pub(super) fn in_memory(world: &World) -> Option<Check> {
    let filesystem = &world.target.filesystem;
    let text = format!(
        "{filesystem} that lies in the machine's memory: nothing here survives a power cut"
    );
    world.target.in_memory.then(|| {
        Check::risk(text)
            .found([Evidence::new("/proc/self/mountinfo", filesystem.clone())])
            .costs("No speed. No number that is measured here is a disk's.")
            .change(Change::how("use a folder on a disk for what must not be lost", "none"))
            .source("tmpfs(5)")
    })
}

pub(super) fn no_device(world: &World) -> Option<Check> {
    let Err(because) = &world.target.device else { return None };
    (!world.target.in_memory).then(|| {
        let text = "cannot inspect the underlying disk";
        let check = Check::unknown(text, because.clone());
        let how = "where the disk is known, wrote doctor looks at a folder on it, or at its device";
        check.change(Change::how(how, "none"))
    })
}

pub(super) fn read_only(world: &World) -> Option<Check> {
    let Ok(device) = &world.target.device else { return None };
    let name = device.name.replace('/', "!");
    let disk = world.root.see(&format!("sys/class/block/{name}/ro"));
    let disk_is = disk.as_ref().and_then(Evidence::number) == Some(1);
    if !world.target.read_only && !disk_is {
        return Some(Check::fine("the file system can be written to").found(disk));
    }
    let risk = "where an error made it read-only, writing to it can destroy more: look at dmesg \
                first, and run fsck while it is not mounted";
    let (text, change) = if disk_is {
        let device = quoted(&format!("/dev/{}", device.name));
        ("the device is read-only", Change::run(format!("blockdev --setrw {device}"), risk))
    } else {
        ("the file system is mounted read-only", remount(world, "rw", risk))
    };
    Check::risk(format!("{text}: nothing can be written"))
        .found(disk)
        .found(options(world, |option| option == "ro"))
        .costs("Everything.")
        .change(change)
        .source("mount(8); ext4(5), errors=")
        .into()
}

pub(super) fn errors(world: &World) -> Option<Check> {
    let Ok(device) = &world.target.device else { return None };
    let name = device.name.replace('/', "!");
    let found =
        world.root.see(&format!("sys/fs/{}/{name}/errors_count", world.target.filesystem))?;
    let count = found.number()?;
    if count == 0 {
        return Check::fine("no errors since the last fsck").found([found]).into();
    }
    let text = format!("the file system has met {count} errors since the last fsck");
    let device = quoted(&format!("/dev/{}", device.name));
    Check::risk(text)
        .found([found])
        .costs("No speed, but data: part of what is on it may be damaged.")
        .change(Change::run(
            format!("e2fsck -f {device}"),
            "only while it is not mounted, and after a copy of what can still be read",
        ))
        .source("kernel: Documentation/ABI/testing/sysfs-fs-ext4; e2fsck(8)")
        .into()
}

pub(super) fn sync(world: &World) -> Check {
    let found = options(world, |option| matches!(option, "sync" | "dirsync" | "wsync"));
    let Some(option) = found.first().map(|option| option.value.clone()) else {
        return Check::fine("writes wait for the disk only when they are asked to");
    };
    let risk = "programs that never call fsync and rely on this option lose what they wrote last \
                in a crash";
    let (text, change) = match option.as_str() {
        "sync" => ("sync: every write waits for the disk", remount(world, "async", risk)),
        "dirsync" => (
            "dirsync: every new, renamed or removed name waits for the disk",
            fstab(world, "dirsync", risk),
        ),
        _ => (
            "wsync: every new, renamed or removed name waits for the log",
            fstab(world, "wsync", risk),
        ),
    };
    Check::advice(text)
        .found(found)
        .costs(
            "A wait for the disk each time, also where the program wants none; the row \
             small/o_dsync-each of wrote bench shows what one such wait takes.",
        )
        .measured(&world.measure("ladder"))
        .change(change)
        .source("mount(8), sync and dirsync; xfs(5), wsync")
}

pub(super) fn discard(world: &World) -> Check {
    let found = options(world, is_discard);
    let option = found.first().map(|option| option.value.clone());
    match option.as_deref() {
        None => Check::fine("free blocks are not trimmed while files are removed"),
        Some("discard=async") => {
            Check::fine("discard=async: free blocks are trimmed in the background").found(found)
        }
        Some(_) => Check::advice("discard: blocks are trimmed as soon as they are free")
            .found(found)
            .costs(
                "Removing and replacing files makes the disk trim at once; xfs(5) calls the \
                     cost quite severe, and btrfs(5) says that it can severely degrade \
                     performance, neither with a figure.",
            )
            .measured(&world.measure("latency,ways"))
            .change(without_discard(world))
            .source("xfs(5), btrfs(5), ext4(5), discard; fstrim(8)"),
    }
}

/// XFS accepts a remount with `nodiscard`, and ignores it.
fn without_discard(world: &World) -> Change {
    let risk = "the disk, or the host of a thin volume, learns of free blocks only when fstrim \
                runs: enable fstrim.timer first";
    match world.target.filesystem.as_str() {
        "xfs" => fstab(world, "discard", risk),
        _ => remount(world, "nodiscard", risk),
    }
}

pub(super) fn atime(world: &World) -> Check {
    let has = |option: &str| world.is_mounted_with(option);
    let found = options(world, |option| option.contains("atime"));
    if has("noatime") || world.target.read_only {
        return Check::fine("reading a file writes nothing").found(found);
    }
    if has("relatime") {
        let text = "relatime: reading a file writes its access time once a day at most, or after \
            it changed";
        return Check::fine(text).found(found);
    }
    Check::advice("strictatime: every read of a file also writes its access time")
        .found(found)
        .found([Evidence::new("/proc/self/mountinfo", world.target.mount_options.join(","))])
        .costs("An inode that is written again and again while files are only read.")
        .measured(&world.measure("ways"))
        .change(remount(
            world,
            "relatime",
            "programs that compare access times to the second see old ones (mount(8))",
        ))
        .source("mount(8), strictatime and relatime")
}

pub(super) fn barrier(world: &World) -> Check {
    let found = options(world, |option| matches!(option, "nobarrier" | "barrier=0"));
    if found.is_empty() {
        return Check::fine("flushes reach the disk (barriers are on)");
    }
    let option = if world.target.filesystem == "btrfs" { "barrier" } else { "barrier=1" };
    Check::risk("barriers are off: an fsync returns before the disk has flushed its cache")
        .found(found)
        .costs(
            "It is fast for that reason alone, and only as safe as the disk's cache: after a power \
         cut data that was acknowledged is gone, and the file system itself may be damaged.",
        )
        .change(remount(world, option, "none; each fsync then takes as long as the disk's flush"))
        .source("ext4(5), barrier; btrfs(5), barrier")
}

pub(super) fn data(world: &World) -> Check {
    match world.mount_value("data") {
        Some("journal") => Check::advice("data=journal: all data is written twice")
            .costs(
                "At most half of the disk's throughput in the long run, and no direct writes: \
                 ext4 does them through the page cache then.",
            )
            .measured(&world.measure("stream"))
            .change(fstab(
                world,
                "data=journal",
                "programs without fsync that relied on data and names becoming durable together",
            )),
        Some("writeback") => Check::risk(
            "data=writeback: after a crash, files may hold what was on the disk before",
        )
        .costs("It saves waiting for data before a journal commit; how much was not measured here.")
        .change(fstab(
            world,
            "data=writeback",
            "a journal commit waits for the data of new blocks",
        )),
        _ => Check::fine("data is written once, and before what points to it"),
    }
    .found(options(world, |option| option.starts_with("data=")))
    .source("ext4(5), data=")
}

pub(super) fn allocation(world: &World) -> Option<Check> {
    if world.target.filesystem != "ext4" {
        return None;
    }
    if !world.is_mounted_with("nodelalloc") {
        return Some(Check::fine("blocks are allocated when data is written out"));
    }
    Check::advice("nodelalloc: blocks are allocated at each write into the page cache")
        .found(options(world, |option| option == "nodelalloc"))
        .costs("More work for each write, and files in more pieces.")
        .measured(&world.measure("stream,ways"))
        .change(remount(
            world,
            "delalloc",
            "a program that replaces files without fsync more often leaves an empty one in a crash",
        ))
        .source("ext4(5), nodelalloc; kernel: Documentation/filesystems/ext4/")
        .into()
}

pub(super) fn commit(world: &World) -> Option<Check> {
    let seconds: u64 = world.mount_value("commit")?.parse().ok()?;
    let found = options(world, |option| option.starts_with("commit="));
    let usual = if world.target.filesystem == "btrfs" { COMMIT_S_MAX } else { COMMIT_S };
    let check = if seconds > COMMIT_S_MAX {
        let text =
            format!("commit={seconds}: unsynced data may be {seconds} s old and still be lost");
        Check::risk(text).costs("No speed. What was synced is safe in any case.")
    } else if seconds < COMMIT_S {
        let text = format!("commit={seconds}: the journal is committed every {seconds} s");
        let costs = format!("Metadata is written more often. {}", world.measure("stream,ways"));
        Check::advice(text).costs(costs)
    } else {
        return Check::fine(format!("the journal is committed every {seconds} s"))
            .found(found)
            .into();
    };
    let risk = "with a longer time a crash loses more unsynced data, with a shorter one the disk \
                is written more often";
    let change = remount(world, &format!("commit={usual}"), risk);
    Some(check.found(found).change(change).source("ext4(5), commit; btrfs(5), commit"))
}

pub(super) fn copy_on_write(world: &World) -> Option<Check> {
    if world.target.filesystem != "btrfs" {
        return None;
    }
    let found = |option: &str| options(world, |known| known == option);
    let has = |option: &str| world.is_mounted_with(option);
    let compression = options(world, |known| known.starts_with("compress"));
    let check = if has("nodatacow") {
        let text = "nodatacow: new files have no checksums, and damage to them is not noticed";
        let risk = "what is written in place is copied again: slower for databases, which can be \
                    given chattr +C on their own folder";
        Check::risk(text)
            .found(found("nodatacow"))
            .costs("No speed: writes in place are faster here.")
            // `nodatacow` turned checksums off as well, and `datacow` alone does not turn them on.
            .change(remount(world, "datacow,datasum", risk))
    } else if has("nodatasum") {
        let text = "nodatasum: new files have no checksums, and damage to them is not noticed";
        Check::risk(text)
            .found(found("nodatasum"))
            .costs("No speed: there is less to compute.")
            .change(remount(world, "datasum", "CPU time for a checksum of each block"))
    } else if has("autodefrag") {
        let risk = "files that are written in small pieces stay in pieces";
        Check::advice("autodefrag: small writes are queued to be written once more")
            .found(found("autodefrag"))
            .costs(
                "Each small write inside a file is read and written again in a larger piece; not \
                 for databases, says btrfs(5).",
            )
            .measured(&world.measure("small,rand"))
            .change(remount(world, "noautodefrag", risk))
    } else if !compression.is_empty() {
        let text = "compression: what is written may be less than what was given, and direct \
                    writes go through the page cache";
        let risk = "files that are written from then on take more space";
        Check::advice(text)
            .found(compression)
            .costs(
                "CPU time for each byte, and past the page cache there is no way (btrfs(5)); data \
                 that compresses well may be written faster.",
            )
            .measured(&world.measure("stream"))
            .change(remount(world, "compress=no", risk))
    } else {
        Check::fine("copy on write with checksums, without compression")
    };
    Some(check.source("btrfs(5), MOUNT OPTIONS and COMPRESSION"))
}

#[cfg(test)]
mod tests;
