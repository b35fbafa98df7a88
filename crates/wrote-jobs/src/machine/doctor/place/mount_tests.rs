//! Tests that important mount options are reported, and that usual options are not.

use super::*;
use crate::machine::doctor::fake::{Fake, checks_of, command, mounted, only, state};
use wrote_result::doctor::State;

fn checks(world: &World) -> Vec<Check> {
    checks_of(
        world,
        &[
            "in-memory",
            "no-block-device",
            "journal",
            "read-only",
            "file-system-errors",
            "mount-sync",
            "mount-discard",
            "mount-atime",
            "mount-barrier",
            "mount-data",
            "mount-commit",
            "mount-copy-on-write",
        ],
    )
}

fn found(filesystem: &str, options: &[&str]) -> Vec<Check> {
    let (_fake, world) = mounted(filesystem, options);
    checks(&world)
}

#[test]
fn a_mount_with_the_usual_options_is_fine() {
    for (filesystem, options) in [
        ("ext4", &["relatime", "errors=remount-ro"][..]),
        ("ext4", &["noatime", "commit=30", "data=ordered"]),
        ("xfs", &["relatime", "attr2", "inode64", "logbufs=8", "noquota"]),
        ("btrfs", &["relatime", "ssd", "discard=async", "space_cache=v2", "subvol=/"]),
    ] {
        let checks = found(filesystem, options);
        let fine = checks.iter().all(|check| check.state == State::Fine);
        assert!(fine, "{filesystem} {options:?}: {checks:?}");
    }
}

#[test]
fn each_option_that_costs_or_endangers_is_named() {
    use State::{Advice, Risk};
    for (filesystem, option, id, state) in [
        ("ext4", "sync", "mount-sync", Advice),
        ("ext4", "dirsync", "mount-sync", Advice),
        ("xfs", "wsync", "mount-sync", Advice),
        ("ext4", "discard", "mount-discard", Advice),
        ("btrfs", "discard=sync", "mount-discard", Advice),
        ("ext4", "nobarrier", "mount-barrier", Risk),
        ("ext4", "barrier=0", "mount-barrier", Risk),
        ("btrfs", "nobarrier", "mount-barrier", Risk),
        ("ext4", "data=journal", "mount-data", Advice),
        ("ext4", "data=writeback", "mount-data", Risk),
        ("ext4", "commit=1", "mount-commit", Advice),
        ("ext4", "commit=300", "mount-commit", Risk),
        ("btrfs", "autodefrag", "mount-copy-on-write", Advice),
        ("btrfs", "compress=zstd:3", "mount-copy-on-write", Advice),
        ("btrfs", "compress-force=lzo", "mount-copy-on-write", Advice),
        ("btrfs", "nodatacow", "mount-copy-on-write", Risk),
        ("btrfs", "nodatasum", "mount-copy-on-write", Risk),
    ] {
        let checks = found(filesystem, &["relatime", option]);
        let worse: Vec<&Check> = checks.iter().filter(|check| check.state != State::Fine).collect();
        assert_eq!(worse.len(), 1, "{filesystem} {option}: {checks:?}");
        assert_eq!((worse[0].id.as_str(), worse[0].state), (id, state), "{filesystem} {option}");
        let shown = worse[0].evidence.iter().any(|evidence| evidence.value == option);
        assert!(shown, "{:?}", worse[0]);
        assert!(worse[0].change.is_some() && worse[0].costs.is_some(), "{:?}", worse[0]);
    }
}

#[test]
fn access_times_at_every_read_are_named() {
    let strict = found("ext4", &[]);
    let check = only(&strict, "mount-atime");
    assert_eq!(check.state, State::Advice);
    assert_eq!(command(check), "mount -o remount,relatime /mnt/data");
    assert_eq!(state(&found("ext4", &["noatime"]), "mount-atime"), Some(State::Fine));
}

#[test]
fn discard_is_switched_off_by_a_command_where_that_does_it() {
    let ext4 = found("ext4", &["relatime", "discard"]);
    let check = only(&ext4, "mount-discard");
    assert_eq!(command(check), "mount -o remount,nodiscard /mnt/data");
    // XFS accepts the remount but changes nothing.
    let xfs = found("xfs", &["relatime", "discard"]);
    let change = only(&xfs, "mount-discard").change.as_ref().expect("a change");
    assert!(change.commands.is_empty(), "{change:?}");
    assert!(change.how.as_deref().is_some_and(|how| how.contains("/etc/fstab")), "{change:?}");
}

#[test]
fn a_mount_point_with_a_space_stays_one_word_of_the_command() {
    let (_fake, mut world) = mounted("ext4", &["sync", "relatime"]);
    world.target.mount_point = "/mnt/my disk".into();
    let checks = checks(&world);
    assert_eq!(command(only(&checks, "mount-sync")), "mount -o remount,async '/mnt/my disk'");
}

#[test]
fn a_read_only_place_is_a_risk() {
    let (fake, mut world) = mounted("ext4", &["relatime"]);
    world.target.read_only = true;
    assert_eq!(command(only(&checks(&world), "read-only")), "mount -o remount,rw /mnt/data");
    fake.file("sys/block/sda/ro", "1");
    assert_eq!(command(only(&checks(&world), "read-only")), "blockdev --setrw /dev/sda");
    world.target.read_only = false;
    assert_eq!(state(&checks(&world), "read-only"), Some(State::Risk));
    fake.file("sys/block/sda/ro", "0");
    assert_eq!(state(&checks(&world), "read-only"), Some(State::Fine));
}

#[test]
fn checksums_come_back_with_the_command_that_is_named() {
    for (options, command_of_it) in [
        // The kernel shows a mount with only `nodatacow` like this.
        (&["relatime", "nodatasum", "nodatacow"][..], "datacow,datasum"),
        (&["relatime", "nodatasum"], "datasum"),
    ] {
        let checks = found("btrfs", options);
        let expected = format!("mount -o remount,{command_of_it} /mnt/data");
        assert_eq!(command(only(&checks, "mount-copy-on-write")), expected);
    }
}

#[test]
fn errors_that_the_file_system_has_met_are_a_risk() {
    let (fake, world) = mounted("ext4", &["relatime"]);
    assert_eq!(state(&checks(&world), "file-system-errors"), None);
    fake.file("sys/fs/ext4/sda/errors_count", "0");
    assert_eq!(state(&checks(&world), "file-system-errors"), Some(State::Fine));
    fake.file("sys/fs/ext4/sda/errors_count", "3");
    assert_eq!(state(&checks(&world), "file-system-errors"), Some(State::Risk));
}

#[test]
fn memory_is_a_risk_and_a_disk_that_is_not_seen_is_unknown() {
    let mut world = Fake::new().world_without_device();
    world.target.filesystem = "fuse.strange".into();
    let unseen = checks(&world);
    assert_eq!(state(&unseen, "no-block-device"), Some(State::Unknown));
    assert_eq!(only(&unseen, "no-block-device").because.as_deref(), Some("strange has none"));
    assert_eq!(state(&unseen, "in-memory"), None);
    world.target.filesystem = "tmpfs".into();
    world.target.in_memory = true;
    let memory = checks(&world);
    assert_eq!(state(&memory, "in-memory"), Some(State::Risk));
    assert_eq!(state(&memory, "no-block-device"), None);
}

#[test]
fn a_place_where_flushes_do_nothing_or_keep_less_is_a_risk_with_what_lies_below() {
    let (_fake, mut world) = mounted("overlay", &["relatime", "volatile"]);
    let below = world.target.clone();
    let below = |filesystem: &str, options: &[&str]| {
        let mount_options = options.iter().map(|&option| option.to_owned()).collect();
        let mut target = below.clone();
        (target.filesystem, target.mount_options) = (filesystem.into(), mount_options);
        Some(Box::new(target))
    };
    world.target.below = below("ext4", &[]);
    assert_eq!(state(&checks(&world), "in-memory"), Some(State::Risk));
    assert_eq!(state(&checks(&world), "mount-barrier"), None);
    world.target.mount_options.pop();
    world.target.below = below("ext4", &["nobarrier"]);
    let of_below = checks(&world);
    assert!(only(&of_below, "mount-barrier").text.starts_with("overlay over ext4, nobarrier: "));
    assert_eq!(state(&of_below, "in-memory"), None);
    for (filesystem, wanted) in
        [("ext2", Some(State::Risk)), ("f2fs", Some(State::Unknown)), ("xfs", None)]
    {
        world.target.below = below(filesystem, &[]);
        assert_eq!(state(&checks(&world), "journal"), wanted, "{filesystem}");
    }
}

#[test]
fn of_a_block_device_itself_no_mount_is_judged() {
    let (_fake, mut world) = mounted("none", &[]);
    world.target.mount_options.clear();
    assert!(checks(&world).is_empty());
}
